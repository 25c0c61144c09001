"""Readers as `KafkaLogReader` opens them, and what they saw as short texts."""

from __future__ import annotations

from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.simulation.conformance.bench import SLICE_S, Bench, told

EARLIEST = -2
LATEST = -1


class Reader:
    """Assigned partitions, no group. `seen`: "value@offset", "end@offset", "error NAME"."""

    def __init__(self, bench: Bench, **own: Any) -> None:
        self._bench = bench
        self.seen: list[str] = []
        self.client = bench.consumer(group_id="none.unused", **{"auto_offset_reset": "error", "fetch_wait_max_ms": 20, **own})

    def assign(self, topic: str, start: int = 0, partitions: int = 1) -> None:
        """Read these from there."""
        self.client.assign([TopicPartition(topic, number, start) for number in range(partitions)])

    def poll(self, seconds: float = SLICE_S) -> str | None:
        """Once."""
        message = self.client.poll(seconds)
        if message is not None:
            self.seen.append(text(message))
            return self.seen[-1]
        return None

    def until(self, event: str) -> list[str]:
        """All that came up to the first that begins so."""
        before = len(self.seen)

        def probe() -> bool | None:
            self.poll()
            return True if any(one.startswith(event) for one in self.seen[before:]) else None

        self._bench.until(probe, f"{event!r} after {self.seen}")
        return self.seen[before:]

    def until_end(self, topic: str, offset: int) -> list[str]:
        """Read it from its start until the end is there."""
        self.assign(topic)
        return self.until(f"end@{offset}")

    def rest(self, seconds: float = 0.3) -> list[str]:
        """All that comes within that time."""
        before = len(self.seen)
        end = self._bench.monotonic_s() + seconds
        while self._bench.monotonic_s() < end:
            self.poll(0.02)
        return self.seen[before:]


def text(message: Any) -> str:
    """One message."""
    error = message.error()
    if error is None:
        return f"{(message.value() or b'-').decode()}@{message.offset()}"
    if error.name() == "_PARTITION_EOF":
        return f"end@{message.offset()}"
    return f"error {told(error)}"


def committed_values(bench: Bench, topic: str) -> list[str]:
    """The values of the first partition that a read-committed reader sees, once no transaction is open there."""
    settled_end(bench, topic)
    reader = Reader(bench)
    reader.assign(topic)
    return [one.rpartition("@")[0] for one in reader.until("end") if not one.startswith("end")]


def end_offset(bench: Bench, topic: str, partition: int = 0, *, committed: bool = False, earliest: bool = False) -> int:
    """By the admin client."""
    asked = TopicPartition(topic, partition)
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    spec = OffsetSpec.earliest() if earliest else OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return bench.admin().list_offsets({asked: spec}, isolation_level=level, request_timeout=5)[asked].result(6).offset


def settled_end(bench: Bench, topic: str, partition: int = 0) -> int:
    """The end once no transaction is open there: a commit is answered before its markers are written."""

    def probe() -> int | None:
        end = end_offset(bench, topic, partition)
        return end if end_offset(bench, topic, partition, committed=True) == end else None

    return bench.until(probe, "the markers")
