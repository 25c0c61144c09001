"""An incarnation that stops in order: what it wrote can be read, or it is to be fenced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dueline.scheduler.core.ports import Doubtful, Outgoing, Partition, Unavailable
from dueline.workers.signoff import ENDS_S, sign_off
from tests.unit.leader.manual import ManualClock

ATTEMPTS, STEPS = ("t.attempts", 3), ("t.steps", 3)


class Ground:
    """Ports `LogAdmin` and `TransactionWriter` over two partitions. What stands open in `held` ends at its time, or with the
    transaction of that number."""

    def __init__(self, held: dict[Partition, float | int | None]) -> None:
        self.clock, self.held = ManualClock(wall_ms=0), held
        self.began_s = self.clock.monotonic_s()
        self.written: list[list[Outgoing]] = []
        self.error: Exception | None = None
        self.away = False

    def open_from(self, place: Partition) -> int | None:
        if self.away:
            raise Unavailable("no answer")
        ends = self.held.get(place, 0.0)
        if isinstance(ends, float):
            return 7 if self.clock.monotonic_s() - self.began_s < ends else None
        return 7 if ends is None or len(self.written) < ends else None

    def write(self, groups: Sequence[Sequence[Outgoing]]) -> list[object]:
        if self.error is not None:
            raise self.error
        self.written.append([record for group in groups for record in group])
        return []

    def readable(self) -> bool:
        ports: Any = self
        return sign_off("w.1", [ATTEMPTS, STEPS], ports, admin=ports, clock=self.clock, pause=self.clock.pass_s)


def test_where_nothing_stands_open_nothing_is_written() -> None:
    ground = Ground({})
    assert ground.readable()
    assert ground.written == []


def test_what_was_committed_just_now_ends_by_itself() -> None:
    ground = Ground({STEPS: ENDS_S / 2})
    assert ground.readable()
    assert ground.written == []


@pytest.mark.parametrize("ends", [1, 2])
def test_what_a_broker_forgot_is_ended_by_the_one_of_the_pair_that_wrote_it(ends: int) -> None:
    ground = Ground({STEPS: ends})
    assert ground.readable()
    assert [[(one.topic, one.partition, one.key, one.value) for one in records] for records in ground.written] == [
        [(*STEPS, b"forgotten", None)]
    ] * 2


def test_what_is_not_ours_is_not_ended_by_us() -> None:
    ground = Ground({ATTEMPTS: None, STEPS: None})
    assert not ground.readable()
    assert [len(records) for records in ground.written] == [2, 2]


def test_where_it_cannot_be_told_it_is_not_said() -> None:
    doubtful, away = Ground({STEPS: 1}), Ground({})
    doubtful.error, away.away = Doubtful("no answer"), True
    assert not doubtful.readable()
    assert not away.readable()
