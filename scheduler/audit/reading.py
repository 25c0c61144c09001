"""Reads a partition as it stands, by committed records, while others write and the broker compacts.

A compacted partition may lose a record between the moment its end was taken and the moment it is read, because a newer
record of the same key was written meanwhile. That newer record stands beyond the end. So the tail written during a pass
is read too, until a pass brings nothing new (or after a few passes: a tail that short is in the active segment, which
the broker never compacts).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dueline.scheduler.core.ports import Expired, LogAdmin, Partition, Received

TAIL_PASSES: Final = 5
"""How often the tail is followed. Each pass is as long as what was written during the one before: they shrink fast."""

READ_TIMEOUT_S: Final = 60.0
"""For one pass. A writer that died in a transaction holds readers back for its time-out plus the sweep, about 15 s."""


class TopicMissing(Exception):
    """A topic that every namespace has does not exist. The message says which and what to do."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic}: the namespace is not set up; run `dueline init`, or name another")
        self.topic = topic


@dataclass(slots=True, kw_only=True)
class Extent:
    """What a read covered: the first offset that stood, and the next offset after the last one looked at."""

    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether nothing has been deleted from the front of any partition."""
        return all(start == 0 for start in self.starts.values())


def read_topic(
    admin: LogAdmin, topic: str, *, extent: Extent | None = None, timeout_s: float = READ_TIMEOUT_S
) -> Iterator[Received]:
    """Every committed record of the topic, partition by partition. Raises TopicMissing, Unavailable."""
    count = admin.partitions(topic)
    if count == 0:
        raise TopicMissing(topic)
    extent = extent if extent is not None else Extent()
    for number in range(count):
        yield from read_partition(admin, (topic, number), extent=extent, timeout_s=timeout_s)


def read_partition(
    admin: LogAdmin,
    partition: Partition,
    *,
    start: int | None = None,
    extent: Extent | None = None,
    timeout_s: float = READ_TIMEOUT_S,
) -> Iterator[Received]:
    """Every committed record from `start` (None: the first) to the end, and what is written during the read."""
    extent = extent if extent is not None else Extent()
    begin = admin.start_offset(partition) if start is None else start
    extent.starts[partition[1]] = begin
    position = begin
    for _ in range(TAIL_PASSES):
        end = admin.end_offset(partition)
        if position >= end:
            break
        yield from _from_what_stands(admin, partition, position, end, timeout_s)
        position = end
    extent.ends[partition[1]] = position


def _from_what_stands(admin: LogAdmin, partition: Partition, start: int, end: int, timeout_s: float) -> Iterator[Received]:
    """`read_range`, begun again further on when the front of the log was deleted before the first record came."""
    while start < end:
        try:
            for received in admin.read_range(partition, start, end, timeout_s=timeout_s):
                start = received.offset + 1
                yield received
            return
        except Expired:
            start = max(admin.start_offset(partition), start)
