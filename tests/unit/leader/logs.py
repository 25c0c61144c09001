"""Scripted ports for the parts of a leader: an admin that knows sizes, readers that bring what a test put into them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dueline.scheduler.core.ports import Assignment, Delivered, Outgoing, Partition, Received, Unavailable


@dataclass
class ScriptedAdmin:
    """Port `LogAdmin`: every topic has `sizes` partitions, or `default`, all empty."""

    default: int = 1
    sizes: dict[str, int] = field(default_factory=dict)
    away: bool = False
    without_leader: dict[str, set[int]] = field(default_factory=dict)
    asked: int = 0
    ends: dict[Partition, int] = field(default_factory=dict)
    open: dict[Partition, int] = field(default_factory=dict)

    def partitions(self, topic: str) -> int:
        if self.away:
            raise Unavailable("no answer")
        return self.sizes.get(topic, self.default)

    def leaderless(self, topic: str) -> frozenset[int]:
        self.asked += 1
        if self.away:
            raise Unavailable("no answer")
        return frozenset(self.without_leader.get(topic, ()))

    def topic_id(self, topic: str) -> str:
        return f"{topic}-id"

    def start_offset(self, _: Partition) -> int:
        return 0

    def end_offset(self, partition: Partition) -> int:
        if self.away:
            raise Unavailable("no answer")
        return self.ends.get(partition, 0)

    def stable_offset(self, _: Partition) -> int:
        return 0

    def open_from(self, partition: Partition) -> int | None:
        self.asked += 1
        if self.away:
            raise Unavailable("no answer")
        return self.open.get(partition)

    def read_range(self, *_: Any, **__: Any) -> Iterator[Received]:
        return iter(())


class ScriptedKafka:
    """The part of the port `Kafka` that an intake asks for."""

    def __init__(self, admin: ScriptedAdmin) -> None:
        self._admin = admin

    def admin(self) -> ScriptedAdmin:
        return self._admin


class ScriptedReader:
    """Port `LogReader`: brings what was put into it, `limit` records at a time."""

    def __init__(self) -> None:
        self.waiting: deque[Received] = deque()
        self.assigned: dict[Partition, int] = {}
        self.at = 0

    def put(self, topic: str, value: bytes, *, partition: int = 0, append_ms: int = 0) -> None:
        """One record more."""
        offset = len(self.waiting)
        self.waiting.append(
            Received(topic=topic, partition=partition, offset=offset, append_ms=append_ms, key=b"", value=value)
        )

    def assign(self, starts: Mapping[Partition, int]) -> None:
        self.assigned = dict(starts)

    def poll(self, _: float, limit: int) -> list[Received]:
        there = [record for record in self.waiting if (record.topic, record.partition) in self.assigned][:limit]
        for record in there:
            self.waiting.remove(record)
        return there

    def position(self, _: Partition) -> int:
        return self.at

    def close(self) -> None:
        pass


class ScriptedPlainWriter:
    """Port `PlainWriter` whose reports come when a test says so, the oldest first."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self._reports: deque[Callable[[Delivered | None, str], None] | None] = deque()

    def send(self, record: Outgoing, on_delivery: Callable[[Delivered | None, str], None] | None = None) -> None:
        self.sent.append(record)
        self._reports.append(on_delivery)

    def answer(self, place: Delivered | None) -> None:
        """Of the oldest record: where it stands, or None."""
        report = self._reports.popleft()
        if report is not None:
            report(place, "" if place else "no broker took it")

    def flush(self, _: float) -> int:
        return len(self._reports)

    def close(self) -> None:
        pass


class ScriptedElection:
    """Port `GroupReader` of a leader to whom nobody sends commands."""

    def poll(self, *_: Any) -> tuple[Assignment | None, list[Received]]:
        return None, []

    def assignment(self) -> Assignment | None:
        return None

    def committed(self, _: Sequence[Partition]) -> dict[Partition, int]:
        return {}

    def seek(self, partition: Partition, offset: int) -> None:
        pass

    def close(self) -> None:
        pass


class ScriptedFencer:
    """Port `Fencer` that never has a result."""

    def start(self, incarnation: str, transactional_ids: Sequence[str], home: int, group: str) -> None:
        pass

    def results(self) -> list[object]:
        return []

    def close(self) -> None:
        pass
