"""The ledger as it grows, read by the harness beside the processes: who leads, which runs are still under way."""

from __future__ import annotations

import logging
import uuid
from typing import Final

from dueline.scheduler.kafka.client import ClientLog
from dueline.scheduler.kafka.vocabulary import Consumer, KafkaException, TopicPartition
from dueline.schemas.codec import decode
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, RunState, Summary

log = logging.getLogger(__name__)

ENDS: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED})
BATCH: Final = 2_000


class Ledger:
    """A read-committed reader of `runs`. One thread."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._next = 0
        self._consumer = self._open()
        self.barriers: list[Barrier] = []
        self.decided = False
        """Whether the last barrier's term has written anything else."""
        self.alive: dict[str, int] = {}
        """Due time of each run that has not ended."""
        self.reached_ms = 0
        """Leader time of the last record."""

    def poll(self, timeout_s: float) -> None:
        """Read on."""
        try:
            first = self._consumer.poll(timeout_s)
            rest = self._consumer.consume(BATCH, 0) if first is not None else []
        except (SystemError, KafkaException):  # the client fails so now and then, when a broker goes away
            log.exception("the reader failed: it is opened anew at offset %d", self._next)
            self.close()
            self._consumer = self._open()
            return
        for message in [first, *rest]:
            if message is None or message.error() is not None:
                continue
            self._next = (message.offset() or 0) + 1
            value = message.value()
            if value is not None:
                self._take(decode(value))

    def _open(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers, "group.id": f"proof-{uuid.uuid4().hex}", "enable.auto.commit": False,
                "isolation.level": "read_committed", "auto.offset.reset": "earliest", "reconnect.backoff.max.ms": 500,
                "fetch.wait.max.ms": 50,
            },
            logger=ClientLog(),
        )  # fmt: skip
        consumer.assign([TopicPartition(self._topic, 0, self._next)])
        return consumer

    def _take(self, record: object) -> None:
        match record:
            case Barrier():
                self.barriers.append(record)
                self.decided = False
                return
            case Run():
                if record.state in ENDS:
                    self.alive.pop(record.key, None)
                else:
                    self.alive[record.key] = record.due_ms
            case Summary():
                pass
        self.decided = True
        self.reached_ms = max(self.reached_ms, getattr(record, "leader_ms", 0))

    @property
    def leader_pid(self) -> int:
        """Of the process that wrote the last barrier; -1 before the first."""
        return int(self.barriers[-1].process.rpartition(":")[2]) if self.barriers else -1

    def unended(self, until_ms: int) -> list[str]:
        """Keys of runs due by then that have not ended."""
        return sorted(key for key, due in self.alive.items() if due <= until_ms)

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()
