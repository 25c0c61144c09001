"""Reads assigned partitions, read-committed unless told otherwise, and knows how far it has come.

librdkafka's own position is the last record's offset + 1: it does not pass control markers, aborted records and what
compaction removed. The end-of-partition event carries the fetch position, which does; it fires at the last stable
offset. So a position is the later of the two.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from dueline.scheduler.core.ports import Expired, Partition, Received, Unavailable

from . import client
from .clock import monotonic_s
from .config import KafkaConfig
from .errors import NotAuthorized
from .failure import AUTHORIZATION
from .outage import AWAY, Outage

log = logging.getLogger(__name__)


class KafkaLogReader:
    """Port `LogReader`. `fetch_wait_ms`: how long the broker holds an empty fetch, so how late an end is noticed."""

    def __init__(self, config: KafkaConfig, name: str, *, fetch_wait_ms: int = 20, uncommitted: bool = False) -> None:
        self._name = name
        self._outage = Outage(name)
        self._missing: set[str] = set()
        self._fault: Expired | NotAuthorized | None = None
        self._positions: dict[Partition, int] = {}
        self._consumer = client.consumer(
            config,
            self._outage.note,
            client_id=name,
            group_id=f"{name}.unused",  # librdkafka wants one; assigned partitions join no group and commit nothing
            auto_offset_reset="error",
            fetch_wait_max_ms=fetch_wait_ms,
            isolation_level="read_uncommitted" if uncommitted else "read_committed",
        )

    def assign(self, starts: Mapping[Partition, int]) -> None:
        """Read exactly these partitions from these offsets (or EARLIEST, LATEST: the client's numbers are the same)."""
        self._fault = None
        self._positions = {partition: max(offset, -1) for partition, offset in starts.items()}
        self._consumer.assign([TopicPartition(topic, number, offset) for (topic, number), offset in starts.items()])

    def poll(self, timeout_s: float, limit: int) -> list[Received]:
        """Raises Expired when the log does not have the offset asked for, until `assign` is called anew; NotAuthorized.
        What was read before the trouble is returned first."""
        deadline = monotonic_s() + timeout_s
        while True:
            self._raise_fault()
            message = self._consumer.poll(max(0.0, deadline - monotonic_s()))
            if message is None:
                return []
            received = self._take([message])
            if received:
                # `consume` waits for all it was asked for or the whole time-out: without one, it takes what is there.
                return received + self._take(self._consumer.consume(limit - 1, 0) if limit > 1 else [])

    def position(self, partition: Partition) -> int:
        """The next offset to read; -1 while unknown."""
        return self._positions.get(partition, -1)

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()

    def _take(self, messages: list[Message]) -> list[Received]:
        taken = []
        for message in messages:
            error = message.error()
            if error is not None:
                self._on_event(error, message)
                continue
            record = received(message)
            self._positions[record.topic, record.partition] = record.offset + 1
            taken.append(record)
        if taken:
            self._outage.back()
        return taken

    def _on_event(self, error: KafkaError, message: Message) -> None:
        code = error.code()
        number = message.partition()
        partition = (message.topic() or "", -1 if number is None else number)
        if code == KafkaError._PARTITION_EOF:
            self._pass(partition, message.offset() or 0)
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION):
            self._fault = Expired(
                f"{self._name}: partition {partition[1]} of {partition[0]!r} has no record at offset "
                f"{self.position(partition)}: the log starts later or ends earlier "
                f"({error.str()})"
            )
        elif code in AUTHORIZATION:
            self._fault = self._fault or NotAuthorized(f"topic {partition[0]!r}", "READ")
        elif code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
            self._say_missing(partition[0])
        elif code in AWAY:
            self._outage.away(error.str())
        else:
            log.warning("%s: %s", self._name, error, extra={"action": "reader.error", "topic": partition[0]})

    def _raise_fault(self) -> None:
        fault = self._fault
        if isinstance(fault, NotAuthorized):
            self._fault = None  # the client tries again by itself; a partition out of range stays so
        if fault is not None:
            raise fault

    def _pass(self, partition: Partition, offset: int) -> None:
        self._outage.back()
        if offset > self._positions.get(partition, offset):
            self._positions[partition] = offset

    def _say_missing(self, topic: str) -> None:
        if topic not in self._missing:
            self._missing.add(topic)
            log.error(
                "%s: topic %r does not exist; create it with `dueline init`",
                self._name,
                topic,
                extra={"action": "topic.missing", "topic": topic},
            )


def received(message: Message) -> Received:
    """A record of the client as the port's."""
    headers = message.headers()
    return Received(
        topic=message.topic(),  # type: ignore[arg-type] # a record without an error has a place
        partition=message.partition(),  # type: ignore[arg-type]
        offset=message.offset(),  # type: ignore[arg-type]
        append_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(headers) if headers else (),  # type: ignore[arg-type] # a list of (str, bytes) when read
    )


def unavailable(what: str, exception: KafkaException) -> Unavailable:
    """The client's exception as the port's."""
    return Unavailable(f"{what}: Kafka did not answer ({client.kafka_error(exception)})")
