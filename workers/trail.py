"""What one writer of an incarnation committed and nobody has been seen to be able to read.

A commit is acknowledged before its markers are written, and a broker that is killed in between may forget them (docs/kafka.md).
Then no reader gets beyond what stands open in the home partition, and no member of the group gets its offsets; and nobody fences
a worker that lives, or one that stops in order. So the writer looks again until what it wrote can be read. What has stood for
ENDS_S is ended by the next commit of the same producer in the same place: a record without value. That commits what was
forgotten, which is right, since nothing of it is in doubt: a commit that is not acknowledged is read back, or its writer is over
(W6). The group's offsets are not asked for, since the client's question may end the process when a broker goes away (librdkafka
#5397): where a look after a claim met no broker, they are ended unseen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.core.ports import Clock, Delivered, LogAdmin, Outgoing, Partition, Unavailable, UnfencedOffset
from dueline.schemas.ledger import FORGOTTEN_KEY

ENDS_S: Final = 2.0
"""By then what was committed can be read, and what others had begun before it has ended: a transaction takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One transaction that ends what its producer left open."""

    records: Sequence[Outgoing]
    offsets: UnfencedOffset | None

    def __str__(self) -> str:
        return ", ".join(f"{one.topic}/{one.partition}" for one in self.records)


class Trail:
    """`wrote` by the thread that writes, all else by the one that looks. `homes`: where the writer's own records go; `group`: of
    whose offsets it commits some each time, "" if of none. Only what is older than a look counts: what comes later, of us or of
    others, is asked for later."""

    def __init__(self, homes: Iterable[Partition], *, group: str = "", admin: LogAdmin, clock: Clock) -> None:
        self._homes = sorted(homes)
        self._group = group
        self._admin = admin
        self._clock = clock
        self._news: deque[dict[Partition, int]] = deque()
        self._ends: dict[Partition, int] = {}
        self._vain: dict[Partition, tuple[int, float]] = {}  # the end that was asked for first and in vain, and since when
        self._ended: frozenset[Partition] = frozenset()  # those of them for which an ending was written
        self._unseen = False  # the group's offsets of the last commit may be what a killed broker forgot
        self._handed = False  # an ending was handed out, and is not written yet

    @property
    def readable(self) -> bool:
        """As far as known."""
        return not self._news and not self._ends and not self._unseen

    def wrote(self, delivered: Iterable[Delivered]) -> None:
        """A commit was acknowledged."""
        self._news.append({
            (one.topic, one.partition): one.offset + 1 for one in delivered if (one.topic, one.partition) in self._homes
        })  # fmt: skip

    def look(self) -> bool:
        """Ask; whether all can be read. Raises Unavailable, after it has asked for all."""
        now_s = self._clock.monotonic_s()
        while self._news:
            self._ends |= self._news.popleft()  # offsets only grow
        failed: Unavailable | None = None
        for place, end in list(self._ends.items()):
            try:
                stable = self._admin.stable_offset(place)
            except Unavailable as error:
                failed, self._unseen = error, bool(self._group)
                continue
            first, _ = self._vain.setdefault(place, (end, now_s))
            if stable >= first:
                del self._vain[place]
            if stable >= end:
                del self._ends[place]
        self._ended &= self._vain.keys()
        if failed is not None:
            raise failed
        return self.readable

    def ending(self) -> Ending | None:
        """What to write, once, about what nobody could read for ENDS_S."""
        now_s = self._clock.monotonic_s()
        stands = {place for place, (_, since_s) in self._vain.items() if now_s - since_s >= ENDS_S} - self._ended
        if not stands and not (self._unseen and not self._ends):
            return None
        self._ended |= stands
        self._unseen, self._handed = False, True
        places = sorted(stands) or self._homes[:1]
        return Ending(
            records=[Outgoing(topic=topic, partition=number, key=FORGOTTEN_KEY, value=None) for topic, number in places],
            offsets=UnfencedOffset(group=self._group, partition=self._homes[0]) if self._group else None,
        )

    def ended(self) -> None:
        """The ending that was handed out is written. By whoever wrote it."""
        self._handed = False

    def anew(self) -> None:
        """Whoever was to write endings writes none any more: what was handed out last may not have been written."""
        self._unseen = self._unseen or (self._handed and bool(self._group))
        self._ended = frozenset()

    def __str__(self) -> str:
        return ", ".join(f"{topic}/{number}" for topic, number in sorted(self._ends)) or "the group's offsets"
