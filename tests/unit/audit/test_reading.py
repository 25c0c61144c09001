"""A partition that is compacted and written to while it is read. The port is played by a log in memory: a real broker
can't be told to compact between two records of a read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dueline.scheduler.audit.reading import Extent, TopicMissing, read_partition, read_topic
from dueline.scheduler.core.ports import Expired, Partition, Received

TOPIC = ("t", 0)


class MemoryLog:
    """One partition, as `LogAdmin` shows it, hence arguments that a single one does not need. `between` is called before
    each record is handed out."""

    def __init__(self, keys: str) -> None:
        self.records: dict[int, bytes] = {offset: key.encode() for offset, key in enumerate(keys)}
        self.end = len(keys)
        self.start = 0
        self.between: Callable[[MemoryLog, int], None] = lambda log, offset: None

    def append(self, key: str) -> None:
        self.records[self.end] = key.encode()
        self.end += 1

    def compact(self) -> None:
        latest = {key: offset for offset, key in sorted(self.records.items())}
        self.records = {offset: key for offset, key in self.records.items() if latest[key] == offset}

    def cut(self, start: int) -> None:
        self.start = start
        self.records = {offset: key for offset, key in self.records.items() if offset >= start}

    def partitions(self, topic: str) -> int:
        return 1 if topic == TOPIC[0] else 0

    def leaderless(self, topic: str) -> frozenset[int]:  # noqa: ARG002
        return frozenset()

    def topic_id(self, topic: str) -> str:  # noqa: ARG002
        return "id"

    def start_offset(self, partition: Partition) -> int:  # noqa: ARG002
        return self.start

    def end_offset(self, partition: Partition) -> int:  # noqa: ARG002
        return self.end

    def stable_offset(self, partition: Partition) -> int:  # noqa: ARG002
        return self.end

    def open_from(self, partition: Partition) -> int | None:  # noqa: ARG002
        return None

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:  # noqa: ARG002
        if start < self.start:
            raise Expired("gone")
        for offset in range(start, end):
            self.between(self, offset)
            if offset in self.records:
                key = self.records[offset]
                yield Received(topic="t", partition=0, offset=offset, append_ms=0, key=key, value=key)


def keys(log: MemoryLog, extent: Extent | None = None) -> list[str]:
    return [(received.key or b"").decode() for received in read_topic(log, "t", extent=extent)]


def test_everything_is_read_once() -> None:
    extent = Extent()
    assert keys(MemoryLog("abcab"), extent) == list("abcab")
    assert extent.whole and extent.ends == {0: 5}


def test_a_key_that_moves_behind_the_end_during_the_read_is_still_found() -> None:
    log = MemoryLog("abc")

    def rewrite(log: MemoryLog, offset: int) -> None:
        if offset == 1 and log.end == 3:
            log.append("c")
            log.compact()

    log.between = rewrite
    assert keys(log) == ["a", "b", "c"]


def test_it_ends_although_somebody_writes_all_the_time() -> None:
    log = MemoryLog("a" * 10)
    log.between = lambda log, offset: log.append("x")
    assert len(keys(log)) >= 10


def test_a_front_that_is_deleted_is_passed() -> None:
    log = MemoryLog("abcdef")
    answers = iter([0, 4, 4, 4])
    log.start_offset = lambda partition: next(answers)  # type: ignore[method-assign]
    log.cut(4)
    assert keys(log) == ["e", "f"]


def test_what_lost_its_front_is_not_whole() -> None:
    log, extent = MemoryLog("abcd"), Extent()
    log.cut(2)
    assert keys(log, extent) == ["c", "d"]
    assert not extent.whole


def test_from_an_offset_on() -> None:
    assert [received.offset for received in read_partition(MemoryLog("abcd"), TOPIC, start=2)] == [2, 3]


def test_a_topic_that_is_not_there_says_what_to_do() -> None:
    with pytest.raises(TopicMissing, match="dueline init"):
        list(read_topic(MemoryLog(""), "other"))
