"""What a writer committed can be read, or is ended by it, while it lives and when it stops; or it is to be fenced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dueline.scheduler.core.ports import Delivered, Doubtful, Fenced, Outgoing, Partition, Unavailable, UnfencedOffset
from dueline.scheduler.kafka.errors import WriteNotAuthorized
from dueline.workers.signoff import LOOK_S, SIGN_OFF_S, end, sign_off
from dueline.workers.trail import ENDS_S, Trail
from tests.unit.leader.manual import ManualClock

ATTEMPTS, STEPS = ("t.attempts", 3), ("t.steps", 3)
GROUP = "t.workers.q"

Stable = Callable[["Ground"], bool]
"""Whether all can be read there by now."""


def at_once(_: Ground) -> bool:
    return True


def never(_: Ground) -> bool:
    return False


def after(seconds: float) -> Stable:
    return lambda ground: ground.clock.monotonic_s() - ground.began_s >= seconds


def with_transaction(number: int) -> Stable:
    """It is the producer of this transaction, from 1, that left it open."""
    return lambda ground: len(ground.written) >= number


class Ground:
    """Ports `LogAdmin` and `TransactionWriter` over two partitions, each with records of ours, the last one at offset 6."""

    producers = 2

    def __init__(self, places: dict[Partition, Stable], *, group: str = "") -> None:
        self.clock, self.places = ManualClock(wall_ms=0), places
        self.began_s = self.clock.monotonic_s()
        self.written: list[tuple[list[Outgoing], UnfencedOffset | None]] = []
        self.asked: list[object] = []
        self.error: Exception | None = None
        self.away_s = 0.0
        self.silent: Partition | None = None
        self.served = 0
        ports: Any = self
        self.trail = Trail([ATTEMPTS, STEPS], group=group, admin=ports, clock=self.clock)

    def wrote(self, *places: Partition) -> None:
        self.trail.wrote([Delivered(topic=t, partition=p, offset=6, append_ms=0) for t, p in places])

    def stable_offset(self, place: Partition) -> int:
        self._ask(place)
        return 7 if self.places.get(place, at_once)(self) else 6

    def _ask(self, what: object) -> None:
        self.asked.append(what)
        if self.clock.monotonic_s() - self.began_s < self.away_s or what == self.silent:
            raise Unavailable("no answer")

    def write(self, groups: Sequence[Sequence[Outgoing]], *, offsets: UnfencedOffset | None = None) -> list[Delivered]:
        if self.error is not None:
            raise self.error
        records = [record for group in groups for record in group]
        self.written.append((records, offsets))
        return [Delivered(topic=one.topic, partition=one.partition or 0, offset=6, append_ms=0) for one in records]

    def serve(self) -> None:
        self.served += 1

    def look(self) -> bool:
        ports: Any = self
        if self.trail.look():
            return True
        if (ending := self.trail.ending()) is not None:
            end("w.1", ending, self.trail, ports)
        return False

    def signed_off(self, *, closed: bool = False) -> bool:
        ports: Any = self
        return sign_off("w.1", self.trail, ports, clock=self.clock, pause=self.clock.pass_s, goes_on=lambda: not closed)

    def took_s(self) -> float:
        return self.clock.monotonic_s() - self.began_s


# -- a writer that lives -------------------------------------------------------------------------------------------------


def test_it_looks_until_what_it_wrote_can_be_read_and_not_once_more() -> None:
    ground = Ground({})
    ground.wrote(("t.mails", 0))
    assert ground.look()
    assert ground.asked == []  # a topic of a user is none of its homes
    ground.wrote(STEPS)
    assert not ground.trail.readable
    assert ground.look()
    assert ground.look()
    assert ground.asked == [STEPS]
    assert ground.written == []


def test_what_a_broker_forgot_is_ended_after_a_while_and_once() -> None:
    ground = Ground({STEPS: never})
    ground.wrote(ATTEMPTS, STEPS)
    for _ in range(10):
        assert not ground.look()
        assert bool(ground.written) == (ground.took_s() >= ENDS_S)
        ground.clock.pass_s(1.0)
    assert [[(one.topic, one.partition, one.key, one.value) for one in records] for records, _ in ground.written] == [
        [(*STEPS, b"forgotten", None)]
    ] * 2
    ground.places = {}
    assert ground.look()
    ground.places = {STEPS: never}
    ground.wrote(STEPS)
    for _ in range(4):
        ground.look()
        ground.clock.pass_s(1.0)
    assert len(ground.written) == 4  # another time


def test_a_neighbour_that_always_has_something_open_is_not_taken_for_a_broker_that_forgot() -> None:
    ground = Ground({})
    stable = 6

    def stable_offset(_: Partition) -> int:
        return stable

    ports: Any = ground
    ports.stable_offset = stable_offset
    for _ in range(20):
        ground.trail.wrote([Delivered(topic=STEPS[0], partition=STEPS[1], offset=stable + 1, append_ms=0)])
        assert not ground.look()
        stable += 2
        ground.clock.pass_s(1.0)
    assert ground.written == []


def test_what_ends_it_is_looked_for_too() -> None:
    """Given a broker that forgets the ending of the second one of the pair, after that of the first has helped."""
    ground = Ground({})
    ports: Any = ground
    ports.stable_offset = lambda _: {0: 6, 2: 15}.get(len(ground.written), 1000)

    def write(groups: Sequence[Sequence[Outgoing]], **_: object) -> list[Delivered]:
        ground.written.append((list(groups[0]), None))
        return [Delivered(topic=STEPS[0], partition=STEPS[1], offset=10 * len(ground.written), append_ms=0)]

    ports.write = write
    ground.wrote(STEPS)
    while not ground.look():
        ground.clock.pass_s(1.0)
        assert ground.took_s() < 20
    assert len(ground.written) == 4


def test_each_place_has_an_ending_of_its_own() -> None:
    """Given a place that nobody could read at once, and one that was found so later, while the first still was."""
    ground = Ground({STEPS: never})
    ground.wrote(STEPS)
    for _ in range(4):
        ground.look()
        ground.clock.pass_s(1.0)
    ground.places[ATTEMPTS] = never
    ground.wrote(ATTEMPTS)
    for _ in range(10):
        ground.look()
        ground.clock.pass_s(1.0)
    assert [[one.topic for one in records] for records, _ in ground.written] == [["t.steps"]] * 2 + [["t.attempts"]] * 2


def test_the_group_s_offsets_are_ended_with_the_home() -> None:
    ground = Ground({ATTEMPTS: with_transaction(1)}, group=GROUP)
    ground.producers = 1
    ground.wrote(ATTEMPTS)
    while not ground.look():
        ground.clock.pass_s(1.0)
    assert [offsets for _, offsets in ground.written] == [UnfencedOffset(group=GROUP, partition=ATTEMPTS)]


@pytest.mark.parametrize(("group", "written"), [(GROUP, [["t.attempts"]]), ("", [])])
def test_after_a_broker_that_was_away_the_group_s_offsets_are_ended_unseen(group: str, written: list[list[str]]) -> None:
    """Nobody asks whether they can be fetched; who commits none has none to end."""
    ground = Ground({}, group=group)
    ground.producers = 1
    ground.wrote(ATTEMPTS)
    ground.away_s = 3.0
    for _ in range(3):
        with pytest.raises(Unavailable):
            ground.look()
        ground.clock.pass_s(1.0)
    assert ground.written == []
    assert [ground.look() for _ in range(2)] == [not group, True]
    assert [[one.topic for one in records] for records, _ in ground.written] == written


def test_a_place_that_cannot_be_asked_keeps_no_other_from_being_looked_at() -> None:
    ground = Ground({STEPS: never})
    ground.wrote(ATTEMPTS, STEPS)
    ground.silent = ATTEMPTS
    for _ in range(5):
        with pytest.raises(Unavailable):
            ground.look()
        ground.clock.pass_s(1.0)
    assert ground.asked[-2:] == [ATTEMPTS, STEPS]
    assert ground.trail.ending() is not None


# -- a writer that stops -------------------------------------------------------------------------------------------------


def test_who_wrote_nothing_is_not_asked() -> None:
    ground = Ground({STEPS: never})
    assert ground.signed_off()
    assert ground.asked == []


def test_what_was_committed_just_now_ends_by_itself() -> None:
    ground = Ground({STEPS: after(ENDS_S / 2)})
    ground.wrote(STEPS)
    assert ground.signed_off()
    assert ground.written == []
    assert ground.served > 0


@pytest.mark.parametrize("number", [1, 2])
def test_it_is_ended_by_the_one_of_the_pair_that_left_it_open(number: int) -> None:
    ground = Ground({STEPS: with_transaction(number)})
    ground.wrote(ATTEMPTS, STEPS)
    assert ground.signed_off()
    assert len(ground.written) == 2


def test_what_is_not_ours_is_not_ended_by_us() -> None:
    ground = Ground({ATTEMPTS: never, STEPS: never})
    ground.wrote(ATTEMPTS, STEPS)
    assert not ground.signed_off()
    assert [len(records) for records, _ in ground.written] == [2, 2]
    assert SIGN_OFF_S <= ground.took_s() < SIGN_OFF_S + 2 * LOOK_S


def test_where_it_cannot_be_told_it_is_not_said() -> None:
    doubtful, away, closed = Ground({STEPS: never}), Ground({}), Ground({STEPS: never})
    for ground in (doubtful, away, closed):
        ground.wrote(STEPS)
    doubtful.error, away.away_s = Doubtful("no answer"), SIGN_OFF_S + 1
    assert not doubtful.signed_off()
    assert not away.signed_off()
    assert not closed.signed_off(closed=True)
    assert closed.took_s() == 0


def test_a_leader_that_moves_meanwhile_is_waited_for() -> None:
    ground = Ground({})
    ground.away_s = 1.0
    ground.wrote(STEPS)
    assert ground.signed_off()


@pytest.mark.parametrize(("group", "written"), [(GROUP, 1), ("", 0)])
def test_an_ending_that_was_handed_out_and_not_written_is_written_when_it_stops(group: str, written: int) -> None:
    ground = Ground({}, group=group)
    ground.producers = 1
    ground.wrote(ATTEMPTS)
    ground.away_s = 1.0
    with pytest.raises(Unavailable):
        ground.trail.look()
    ground.clock.pass_s(1.0)
    ground.trail.look()
    ground.trail.ending()
    assert ground.signed_off()
    assert len(ground.written) == written


def test_what_stood_in_the_home_is_ended_when_it_stops_if_nobody_wrote_the_ending() -> None:
    ground = Ground({STEPS: with_transaction(1)})
    ground.wrote(STEPS)
    while ground.trail.ending() is None:
        assert not ground.trail.look()
        ground.clock.pass_s(1.0)
    assert ground.signed_off()
    assert len(ground.written) == 2


def test_an_ending_that_was_written_is_not_written_again_when_it_stops() -> None:
    ground = Ground({}, group=GROUP)
    ground.producers = 1
    ground.wrote(ATTEMPTS)
    ground.away_s = 1.0
    with pytest.raises(Unavailable):
        ground.look()
    ground.clock.pass_s(1.0)
    ground.look()
    assert ground.signed_off()
    assert len(ground.written) == 1


@pytest.mark.parametrize("error", [WriteNotAuthorized("the group", "READ"), Fenced("closed meanwhile")])
def test_a_writer_that_may_not_or_cannot_write_does_not_say_that_it_stopped(error: Exception) -> None:
    ground = Ground({STEPS: never}, group=GROUP)
    ground.wrote(STEPS)
    ground.error = error
    assert not ground.signed_off()


def test_a_writer_that_is_closed_meanwhile_ends_nothing_else() -> None:
    ground = Ground({STEPS: never})
    ground.wrote(STEPS)
    ports: Any = ground

    def serve() -> None:
        raise Fenced("closed meanwhile")

    ports.serve = serve
    assert not ground.signed_off()
