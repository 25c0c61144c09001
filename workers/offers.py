"""W2, pure: the offers a worker has read and not claimed yet, and the offsets it must read again.

An offer is good only under the assignment it came under: the broker does not check that a member owns the partition whose
offset it commits. A new assignment therefore discards what is buffered; of partitions kept in both, the discarded records
are read again by a seek, of partitions lost they belong to the next owner.

An offset commit covers everything before it, so an offer is never claimed while an earlier one of its partition is not:
after a refused claim nothing is claimed under that assignment any more, and while a partition is to be read again what
arrives from it is dropped. Each seek has a number (epoch); the reader tags what it read with the last one it carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dueline.scheduler.core.ports import Assignment, GroupOffsets, Partition, Received


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """An order to the reader: read on from these offsets, if this is still the assignment."""

    epoch: int
    serial: int
    offsets: Mapping[Partition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Offers to claim in one transaction, all of one assignment."""

    records: Sequence[Received]
    offsets: GroupOffsets


class Offers:
    """See the module's text. One batch is in flight at a time."""

    def __init__(self) -> None:
        self.assignment: Assignment | None = None
        self._waiting: deque[Received] = deque()
        self._flying: Batch | None = None
        self._refused: set[int] = set()  # serials under which a claim was refused
        self._rewind: dict[Partition, int] = {}
        self._barrier: dict[Partition, int] = {}  # records read before this epoch are copies of what is read again
        self._epoch = 0
        self._seeking: Seek | None = None

    @property
    def waiting(self) -> int:
        """Offers not claimed yet."""
        return len(self._waiting)

    @property
    def flying(self) -> bool:
        """Whether a batch has no outcome yet."""
        return self._flying is not None

    @property
    def partitions(self) -> frozenset[Partition]:
        """What is assigned now."""
        return self.assignment.partitions if self.assignment else frozenset()

    # -- what happened -------------------------------------------------------------------------------------------------

    def received(self, assignment: Assignment | None, records: Sequence[Received], epoch: int) -> bool:
        """Records came under this assignment, read after seek number `epoch`. Whether the assignment is a new one."""
        turned = _serial(assignment) != _serial(self.assignment)
        if turned:
            self._turn(assignment)
        for record in records:
            place = (record.topic, record.partition)
            if place not in self.partitions or epoch < self._barrier.get(place, 0):
                continue
            if place in self._rewind:
                self._drop(record)
            else:
                self._waiting.append(record)
        return turned

    def claimed(self) -> None:
        """The batch in flight was committed."""
        self._flying = None

    def not_claimed(self, records: Sequence[Received], *, refused: bool) -> None:
        """Of the batch in flight these records were not claimed. `refused`: the broker no longer takes the assignment."""
        batch, self._flying = self._flying, None
        if batch is None:
            raise LookupError("no batch of offers is in flight")
        if refused:
            self._refused.add(batch.offsets.assignment.serial)
        for record in records:
            if (record.topic, record.partition) in self.partitions & batch.offsets.assignment.partitions:
                self._drop(record)
        self._drop_waiting_behind_rewinds()

    def sought(self, epoch: int, *, done: bool) -> None:
        """The reader carried the seek out, or found another assignment."""
        if self._seeking is None or self._seeking.epoch != epoch:
            return
        if done:
            for place in self._seeking.offsets:
                self._rewind.pop(place, None)
        self._seeking = None

    # -- what to do ----------------------------------------------------------------------------------------------------

    def seek(self) -> Seek | None:
        """A seek to carry out now, if one is needed. Answer with `sought`."""
        if not self._rewind or self.assignment is None or self._flying or self._seeking:
            return None
        self._epoch += 1
        self._barrier.update(dict.fromkeys(self._rewind, self._epoch))
        self._seeking = Seek(epoch=self._epoch, serial=self.assignment.serial, offsets=dict(self._rewind))
        return self._seeking

    def take(self, limit: int) -> Batch | None:
        """Offers to claim now, if there are any and none are in flight. Answer with `claimed` or `not_claimed`."""
        assignment = self.assignment
        if self._flying or self._rewind or not self._waiting or assignment is None or assignment.serial in self._refused:
            return None
        records = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        offsets: dict[Partition, int] = {}
        for record in records:
            offsets[(record.topic, record.partition)] = record.offset + 1
        self._flying = Batch(records=records, offsets=GroupOffsets(assignment=assignment, offsets=offsets))
        return self._flying

    # -- steps -----------------------------------------------------------------------------------------------------------

    def _turn(self, assignment: Assignment | None) -> None:
        old, self.assignment = self.partitions, assignment
        kept = old & self.partitions
        # A partition that comes back later starts at the group's committed offset: nothing of it is a copy then.
        self._rewind = {place: offset for place, offset in self._rewind.items() if place in kept}
        self._barrier = {place: epoch for place, epoch in self._barrier.items() if place in kept}
        discarded, self._waiting = self._waiting, deque()
        for record in discarded:
            if (record.topic, record.partition) in kept:
                self._drop(record)

    def _drop(self, record: Received) -> None:
        place = (record.topic, record.partition)
        self._rewind[place] = min(record.offset, self._rewind.get(place, record.offset))

    def _drop_waiting_behind_rewinds(self) -> None:
        kept: deque[Received] = deque()
        for record in self._waiting:
            if (record.topic, record.partition) in self._rewind:
                self._drop(record)
            else:
                kept.append(record)
        self._waiting = kept


def _serial(assignment: Assignment | None) -> int:
    return -1 if assignment is None else assignment.serial
