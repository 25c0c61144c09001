"""W2, pure: what is buffered is good under its own assignment only, and no offer is passed over."""

from __future__ import annotations

import random

import pytest

from dueline.scheduler.core.ports import Assignment, Received
from dueline.workers.offers import Batch, Offers, Seek


def assignment(serial: int, *numbers: int) -> Assignment:
    return Assignment(
        serial=serial, generation=serial, member="m", partitions=frozenset(("d", n) for n in numbers), metadata=b""
    )


def record(partition: int, offset: int) -> Received:
    return Received(topic="d", partition=partition, offset=offset, append_ms=0, key=None, value=b"")


def places(batch: Batch | None) -> list[tuple[int, int]]:
    return [] if batch is None else [(one.partition, one.offset) for one in batch.records]


def test_a_batch_carries_the_assignment_its_offers_came_under_and_the_next_offsets() -> None:
    offers, held = Offers(), assignment(1, 0, 1)
    assert offers.received(held, [record(0, 5), record(1, 7), record(0, 9)], 0)
    batch = offers.take(10)
    assert batch is not None
    assert batch.offsets.assignment is held
    assert batch.offsets.offsets == {("d", 0): 10, ("d", 1): 8}
    assert offers.take(10) is None  # one at a time
    offers.claimed()
    assert not offers.received(held, [record(0, 11)], 0)
    assert places(offers.take(10)) == [(0, 11)]


def test_a_new_assignment_discards_what_is_buffered_and_reads_kept_partitions_again() -> None:
    offers = Offers()
    offers.received(assignment(1, 0, 1), [record(0, 5), record(1, 7), record(0, 9)], 0)
    offers.received(assignment(2, 0), [record(0, 12)], 0)
    assert offers.take(10) is None
    seek = offers.seek()
    assert seek is not None
    assert (seek.serial, dict(seek.offsets)) == (2, {("d", 0): 5})
    assert offers.seek() is None  # it is under way
    offers.received(assignment(2, 0), [record(0, 13)], 0)  # read before the seek: a copy comes
    offers.sought(seek.epoch, done=True)
    offers.received(assignment(2, 0), [record(0, 5), record(0, 9), record(0, 12), record(0, 13)], seek.epoch)
    assert places(offers.take(10)) == [(0, 5), (0, 9), (0, 12), (0, 13)]


def test_a_refused_claim_ends_claiming_under_its_assignment() -> None:
    offers = Offers()
    offers.received(assignment(1, 0), [record(0, 5)], 0)
    batch = offers.take(10)
    assert batch is not None
    offers.received(assignment(1, 0), [record(0, 6)], 0)
    offers.not_claimed(batch.records, refused=True)
    seek = offers.seek()
    assert seek is not None
    offers.sought(seek.epoch, done=True)
    offers.received(assignment(1, 0), [record(0, 5), record(0, 6)], seek.epoch)
    assert offers.take(10) is None
    offers.received(assignment(2, 0), [], seek.epoch)
    again = offers.seek()
    assert again is not None
    offers.sought(again.epoch, done=True)
    offers.received(assignment(2, 0), [record(0, 5), record(0, 6)], again.epoch)
    assert places(offers.take(10)) == [(0, 5), (0, 6)]


def test_a_seek_that_met_another_assignment_is_made_again() -> None:
    offers = Offers()
    offers.received(assignment(1, 0, 1), [record(0, 5), record(1, 3)], 0)
    offers.received(assignment(2, 0, 1), [], 0)
    first = offers.seek()
    assert first is not None
    offers.received(assignment(3, 0), [], 0)
    offers.sought(first.epoch, done=False)
    second = offers.seek()
    assert second is not None
    assert (second.serial, dict(second.offsets)) == (3, {("d", 0): 5})


def test_after_a_loss_of_everything_nothing_is_read_again_by_hand() -> None:
    offers = Offers()
    offers.received(assignment(1, 0), [record(0, 5)], 0)
    offers.received(None, [], 0)
    offers.received(assignment(2, 0), [record(0, 5)], 0)  # the group starts at the committed offset by itself
    assert offers.seek() is None
    assert places(offers.take(10)) == [(0, 5)]


def test_an_outcome_without_a_batch_is_a_bug() -> None:
    with pytest.raises(LookupError):
        Offers().not_claimed([], refused=False)


class Group:
    """A group's log and one member, driven at random: rebalances, refusals, seeks that come late, records meanwhile."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.offers = Offers()
        self.log = {n: self.chance.randint(1, 6) for n in (0, 1)}  # offsets 0..n-1
        self.now = assignment(1, 0, 1)
        self.reader = {0: 0, 1: 0}
        self.committed = {0: 0, 1: 0}
        self.claimed: dict[int, list[int]] = {0: [], 1: []}
        self.epoch = 0
        self.seek: Seek | None = None
        self.flying: Batch | None = None
        self.offers.received(self.now, [], 0)

    def read(self) -> None:
        held = [n for n in self.log if ("d", n) in self.now.partitions and self.reader[n] < self.log[n]]
        records = [record(n, self.reader[n]) for n in held]
        for n in held:
            self.reader[n] += 1
        self.offers.received(self.now, records, self.epoch)

    def claim(self) -> None:
        self.flying = self.flying or self.offers.take(self.chance.randint(1, 3))

    def answer(self) -> None:
        flying, self.flying = self.flying, None
        if flying is None:
            return
        if flying.offsets.assignment.serial == self.now.serial:
            self.offers.claimed()
            for one in flying.records:
                self.claimed[one.partition].append(one.offset)
            self.committed.update({n: offset for (_, n), offset in flying.offsets.offsets.items()})
        else:
            self.offers.not_claimed(flying.records, refused=True)

    def ask_seek(self) -> None:
        self.seek = self.seek or self.offers.seek()

    def do_seek(self) -> None:
        seek, self.seek = self.seek, None
        if seek is None:
            return
        done = seek.serial == self.now.serial
        if done:
            self.reader.update({n: offset for (_, n), offset in seek.offsets.items()})
            self.epoch = seek.epoch
        self.offers.sought(seek.epoch, done=done)

    def turn(self) -> None:
        numbers = self.chance.choice([(0,), (1,), (0, 1), (0, 1)])
        gained = {n for n in numbers if ("d", n) not in self.now.partitions}
        self.now = assignment(self.now.serial + 1, *numbers)
        self.reader.update({n: self.committed[n] for n in gained})
        self.offers.received(self.now, [], self.epoch)


@pytest.mark.parametrize("block", range(10))
def test_every_offer_of_a_partition_held_to_the_end_is_claimed_once_and_in_order(block: int) -> None:
    for seed in range(block * 200, block * 200 + 200):
        group = Group(seed)
        moves = [group.read, group.claim, group.answer, group.ask_seek, group.do_seek]
        for _ in range(40):
            group.chance.choice([*moves, group.turn])()
        for _ in range(20):  # no more faults: it comes to rest
            for move in moves:
                move()
        for n, offsets in group.claimed.items():
            assert offsets == list(range(len(offsets))), f"seed {seed}: passed over, twice, or out of order"
            if ("d", n) in group.now.partitions:
                assert len(offsets) == group.log[n], f"seed {seed}: an offer was forgotten"
