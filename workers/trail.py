"""What one writer of an incarnation committed and nobody has been seen to be able to read.

A commit is acknowledged before its markers are written, and a broker that is killed in between may forget them (docs/kafka.md).
Then no reader gets beyond what stands open in the home partition, and no member of the group gets the offsets; and nobody fences
a worker that lives, or one that stops in order. So the writer looks again until what it wrote can be read. What has stood for
ENDS_S is ended by the next commit of the same producer in the same place: a record without value, and for a group its offsets
once more. That commits what was forgotten, which is right, since nothing of it is in doubt: a commit that is not acknowledged is
read back, or its writer is over (W6).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.core.ports import Clock, Delivered, LogAdmin, OffsetsAgain, Outgoing, Partition
from dueline.schemas.ledger import FORGOTTEN_KEY

ENDS_S: Final = 2.0
"""By then what was committed can be read, and what others had begun before it has ended: a transaction takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One transaction that ends what its producer left open."""

    records: Sequence[Outgoing]
    offsets: OffsetsAgain | None
    where: str


class Trail:
    """`wrote` by the thread that writes, `look` and `ending` by the one that looks. `homes`: where the writer's own records go;
    `group`: whose offsets it commits, "" if none. Only what is older than a look counts: what comes later, of us or of others,
    is asked for later."""

    def __init__(self, homes: Iterable[Partition], *, group: str = "", admin: LogAdmin, clock: Clock) -> None:
        self._homes = frozenset(homes)
        self._group = group
        self._admin = admin
        self._clock = clock
        self._news: deque[tuple[dict[Partition, int], Mapping[Partition, int]]] = deque()
        self._ends: dict[Partition, int] = {}
        self._offsets: dict[Partition, int] = {}
        self._vain: dict[Partition, tuple[int, float]] = {}  # what was asked for first and in vain, and since when
        self._ended = False

    @property
    def readable(self) -> bool:
        """As far as known."""
        return not self._news and not self._ends and not self._offsets

    def wrote(self, delivered: Iterable[Delivered], offsets: Mapping[Partition, int] | None = None) -> None:
        """A commit was acknowledged."""
        ends = {(one.topic, one.partition): one.offset + 1 for one in delivered if (one.topic, one.partition) in self._homes}
        self._news.append((ends, offsets or {}))

    def look(self) -> bool:
        """Ask; whether all can be read. Raises Unavailable."""
        now_s = self._clock.monotonic_s()
        while self._news:  # offsets only grow
            ends, offsets = self._news.popleft()
            self._ends |= ends
            self._offsets |= offsets
        for place, end in list(self._ends.items()):
            stable = self._admin.stable_offset(place)
            self._seen(place, end, now_s, there=stable >= self._vain.get(place, (end, now_s))[0])
            if stable >= end:
                del self._ends[place]
        unsettled = self._admin.unsettled(self._group, list(self._offsets)) if self._offsets else frozenset()
        for partition, offset in list(self._offsets.items()):
            self._seen(partition, offset, now_s, there=partition not in unsettled)
            if partition not in unsettled:
                del self._offsets[partition]
        self._ended = self._ended and bool(self._vain)
        return self.readable

    def ending(self) -> Ending | None:
        """What to write, once, about what nobody could read for ENDS_S."""
        now_s = self._clock.monotonic_s()
        stands = {place for place, (_, since_s) in self._vain.items() if now_s - since_s >= ENDS_S}
        if self._ended or not stands:
            return None
        self._ended = True
        places = sorted(stands & self._homes) or sorted(self._homes)[:1]
        offsets = {partition: offset for partition, offset in self._offsets.items() if partition in stands}
        return Ending(
            records=[Outgoing(topic=topic, partition=number, key=FORGOTTEN_KEY, value=None) for topic, number in places],
            offsets=OffsetsAgain(group=self._group, offsets=offsets) if offsets else None,
            where=str(self),
        )

    def __str__(self) -> str:
        return ", ".join(f"{topic}/{number}" for topic, number in sorted([*self._ends, *self._offsets]))

    def _seen(self, place: Partition, end: int, now_s: float, *, there: bool) -> None:
        if there:
            self._vain.pop(place, None)
        else:
            self._vain.setdefault(place, (end, now_s))
