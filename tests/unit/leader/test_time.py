"""Leader time, its witness, and the check that nothing is early."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.leader.clock import LeaderClock
from dueline.scheduler.leader.encode import too_early
from dueline.scheduler.leader.witness import ClocksDisagree, Witness
from tests.unit.leader.manual import ManualClock


def lead(clock: ManualClock, append_ms: int, not_before_ms: int = -1) -> LeaderClock:
    return LeaderClock(clock, append_ms=append_ms, received_s=clock.monotonic_s(), not_before_ms=not_before_ms)


def test_leader_time_is_the_append_time_carried_forward_by_the_monotonic_clock() -> None:
    clock = ManualClock()
    time = lead(clock, 10_000)
    clock.pass_s(1.5)
    clock.wall -= 3_600_000  # a step of the wall clock changes nothing
    assert time.now() == 11_500


def test_t29_a_new_leader_starts_no_earlier_than_the_ledgers_last_leader_time() -> None:
    clock = ManualClock()
    time = lead(clock, 10_000, not_before_ms=25_000)
    assert time.now() == 25_000
    clock.pass_s(5)
    assert time.now() == 25_000  # it stands still while the clock of runs lies behind
    clock.pass_s(11)
    assert time.now() == 26_000


def test_leader_time_never_goes_back_when_an_anchor_lies_behind() -> None:
    clock = ManualClock()
    time = lead(clock, 10_000)
    clock.pass_s(2)
    assert time.now() == 12_000
    time.anchor(11_000, clock.monotonic_s())
    assert time.now() == 12_000
    clock.pass_s(3)
    assert time.now() == 14_000


def test_while_the_clocks_disagree_nothing_fires_and_after_a_while_the_leader_resigns() -> None:
    clock = ManualClock(wall_ms=10_000)
    time = lead(clock, 10_000)
    witness = Witness(clock, max_skew_s=5, patience_s=60)
    assert witness.agrees(time)
    clock.wall += 3_600_000
    assert not witness.agrees(time)
    assert not witness.firing
    clock.pass_s(59)
    assert not witness.agrees(time)
    clock.pass_s(2)
    with pytest.raises(ClocksDisagree):
        witness.agrees(time)


def test_when_the_clocks_agree_again_runs_fire_again() -> None:
    clock = ManualClock(wall_ms=10_000)
    time = lead(clock, 10_000)
    witness = Witness(clock, max_skew_s=5, patience_s=60)
    clock.wall += 3_600_000
    assert not witness.agrees(time)
    clock.wall -= 3_600_000
    assert witness.agrees(time)
    assert witness.firing


def test_a_record_before_its_due_time_is_a_reason_to_abort() -> None:
    decision = Decision(not_before={"job@due": 10_000})
    assert too_early(decision, [("job@due", 10_000), ("other", 1)]) is None
    reason = too_early(decision, [("other", 1), ("job@due", 9_999)])
    assert reason is not None
    assert "job@due" in reason
