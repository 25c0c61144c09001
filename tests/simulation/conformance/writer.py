"""A transactional producer as `TransactionalProducer` opens it, without any of its guards."""

from __future__ import annotations

from functools import partial
from typing import Any

from confluent_kafka import Producer, TopicPartition

from tests.simulation.conformance.bench import Bench, told, tried

CALL_S = 15.0


class Writer:
    """`reports`: the delivery reports in their order, "offset" or the error."""

    def __init__(self, bench: Bench, transactional_id: str, *, timeout_ms: int = 10_000, init: bool = True) -> None:
        self._bench = bench
        self.reports: list[str] = []
        self.offsets: list[int] = []
        self.stamps: list[tuple[int, int]] = []
        self.client: Producer = bench.producer(
            client_id=transactional_id,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            socket_timeout_ms=timeout_ms - 100,
        )
        if init:
            self.client.init_transactions(CALL_S)

    def init(self) -> str:
        """Once more, or for the first time."""
        return tried(self.client.init_transactions, CALL_S)

    def begin(self) -> str:
        """Begin."""
        return tried(self.client.begin_transaction)

    def queue(self, topic: str, value: str, partition: int = 0, key: bytes | None = b"k") -> str:
        """Produce without a flush."""
        return tried(partial(self.client.produce, topic, value.encode(), key, partition, on_delivery=self._reported))

    def flush(self, seconds: float = CALL_S) -> str:
        """What flush returned or raised."""
        return tried(self.client.flush, seconds)

    def write(self, topic: str, value: str, partition: int = 0) -> list[str]:
        """Produce and flush one: what produce and flush said and the reports that came (an acknowledged one as "sent")."""
        before = len(self.reports)
        said = [self.queue(topic, value, partition), self.flush()]
        return [*said, *self.reports[before:]]

    def fence(self, topic: str, offset: int, metadata: Any, partition: int = 0) -> str:
        """Offsets into the transaction."""
        return tried(self.client.send_offsets_to_transaction, [TopicPartition(topic, partition, offset)], metadata, CALL_S)

    def commit(self) -> str:
        """Commit."""
        return tried(self.client.commit_transaction, CALL_S)

    def abort(self) -> str:
        """Abort."""
        return tried(self.client.abort_transaction, CALL_S)

    def transaction(self, topic: str, *values: str, partition: int = 0) -> list[int]:
        """One committed transaction; the records' offsets."""
        before = len(self.offsets)
        assert self.begin() == "ok"
        for value in values:
            assert self.write(topic, value, partition) == ["ok", "0", "sent"]
        assert self.commit() == "ok"
        return self.offsets[before:]

    def _reported(self, error: Any, message: Any) -> None:
        if error is not None:
            self.reports.append(told(error))
            return
        self.reports.append("sent")
        self.offsets.append(message.offset())
        self.stamps.append(message.timestamp())
