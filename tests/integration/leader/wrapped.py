"""Ports that misbehave as a test asks: a fold that lags, one that loses a record, a `jobs` that lost a key."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import monotonic

from dueline.scheduler.core.ports import Kafka, LogReader, Partition, Received
from tests.integration.leader.rig import WrappedKafka


class Lagging:
    """A reader that brings nothing until an instant."""

    def __init__(self, reader: LogReader, until_s: float) -> None:
        self._reader, self._until_s = reader, until_s

    def assign(self, starts: Mapping[Partition, int]) -> None:
        self._reader.assign(starts)

    def poll(self, timeout_s: float, limit: int) -> list[Received]:
        if monotonic() < self._until_s:
            threading.Event().wait(timeout_s)
            return []
        return self._reader.poll(timeout_s, limit)

    def position(self, partition: Partition) -> int:
        return self._reader.position(partition)

    def close(self) -> None:
        self._reader.close()


class LossyKafka(WrappedKafka):
    """Its fold reader loses the first run record."""

    def __init__(self, cluster: Kafka) -> None:
        super().__init__(cluster)
        self.lost = False

    def log_reader(self, name: str, *, uncommitted: bool = False) -> object:
        reader = self._cluster.log_reader(name, uncommitted=uncommitted)
        return Lossy(reader, self) if name == "fold" else reader


class Lossy(Lagging):
    def __init__(self, reader: LogReader, kafka: LossyKafka) -> None:
        super().__init__(reader, 0.0)
        self._kafka = kafka

    def poll(self, timeout_s: float, limit: int) -> list[Received]:
        records = super().poll(timeout_s, limit)
        if not self._kafka.lost:
            for record in records:
                if dict(record.headers).get("type") == b"Run":
                    self._kafka.lost = True
                    return [other for other in records if other is not record]
        return records


class WithoutKey(WrappedKafka):
    """A cluster whose `jobs` was compacted: the records of one key are gone."""

    def __init__(self, cluster: Kafka, topic: str, key: bytes) -> None:
        super().__init__(cluster)
        self._topic, self._key = topic, key

    def admin(self) -> object:
        return AdminWithout(self._cluster.admin(), self._topic, self._key)


class AdminWithout:
    def __init__(self, admin: object, topic: str, key: bytes) -> None:
        self._admin, self._topic, self._key = admin, topic, key

    def __getattr__(self, name: str) -> object:
        return getattr(self._admin, name)

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> object:
        for record in self._admin.read_range(partition, start, end, timeout_s=timeout_s):  # type: ignore[attr-defined]
            if partition[0] != self._topic or record.key != self._key:
                yield record
