"""Leader time, its witness, and the check that nothing is early."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.leader.clock import LeaderClock
from dueline.scheduler.leader.early import Early
from dueline.scheduler.leader.witness import ClocksDisagree, Witness
from tests.unit.leader.manual import ManualClock

HOUR_MS = 3_600_000
MAX_SKEW_S = 30.0


def lead(clock: ManualClock, append_ms: int, not_before_ms: int = -1, *, wall_ms: int | None = None) -> LeaderClock:
    """The host's wall clock agrees with the broker's, unless `wall_ms` says otherwise."""
    clock.wall = append_ms if wall_ms is None else wall_ms
    received_s = clock.monotonic_s()
    return LeaderClock(clock, append_ms=append_ms, received_s=received_s, not_before_ms=not_before_ms, max_skew_s=MAX_SKEW_S)


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


def test_a_leap_that_the_wall_clock_contradicts_is_not_believed_and_leader_time_goes_on() -> None:
    clock = ManualClock()
    time = lead(clock, 10_000)
    assert time.now() == 10_000
    time.anchor(10_000 + HOUR_MS, clock.monotonic_s())
    clock.pass_s(2)
    assert time.now() == 12_000
    assert time.skew_s() == pytest.approx(3_600), "the witness is told of it"
    time.anchor(12_500, clock.monotonic_s())
    assert time.now() == 12_500


def test_an_answer_that_lies_far_behind_is_believed_and_leader_time_stands_still() -> None:
    """Else it would run ahead of the clock of `runs`, and what fires when the clocks agree again would be early by that one."""
    clock = ManualClock()
    time = lead(clock, 100_000)
    time.anchor(60_000, clock.monotonic_s())
    clock.pass_s(30)
    assert time.now() == 100_000
    clock.pass_s(15)
    assert time.now() == 105_000


def test_a_leap_that_the_wall_clock_confirms_is_believed() -> None:
    """Both were behind, and were set right."""
    clock = ManualClock()
    time = lead(clock, 10_000)
    clock.wall += HOUR_MS
    time.anchor(10_000 + HOUR_MS, clock.monotonic_s())
    assert time.now() == 10_000 + HOUR_MS


def test_a_leader_that_begins_during_a_leap_begins_at_the_ledgers_last_leader_time() -> None:
    clock = ManualClock()
    time = lead(clock, 50_000 + HOUR_MS, not_before_ms=49_000, wall_ms=50_000)
    assert time.now() == 49_000
    clock.pass_s(1)
    assert time.now() == 50_000
    time.anchor(52_000, clock.monotonic_s())
    clock.wall = 52_000
    assert time.now() == 52_000


def test_a_wall_clock_that_lies_behind_the_ledger_contradicts_nothing() -> None:
    """Given a host whose clock is an hour behind, and a ledger that ended 10 s ago; then leader time begins at the barrier's."""
    clock = ManualClock()
    time = lead(clock, 60_000 + HOUR_MS, not_before_ms=50_000 + HOUR_MS, wall_ms=60_000)
    assert time.now() == 60_000 + HOUR_MS
    clock.pass_s(1)
    assert time.now() == 61_000 + HOUR_MS


def test_in_an_empty_ledger_there_is_nothing_else_to_believe() -> None:
    assert lead(ManualClock(), 50_000 + HOUR_MS, wall_ms=50_000).now() == 50_000 + HOUR_MS


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
    decision, early = Decision(not_before={"job@due": 10_000}), Early()
    assert early.reason(decision, [("job@due", 10_000), ("other", 1)]) is None
    reason = early.reason(decision, [("other", 1), ("job@due", 9_999)])
    assert reason is not None
    assert "job@due" in reason


def test_after_an_abort_nothing_fires_before_the_clock_of_runs_has_caught_up(caplog: pytest.LogCaptureFixture) -> None:
    """Given a clock of `runs` that went back, then the next term waits for it, and says so once."""
    clock = ManualClock()
    decision, early = Decision(not_before={"a@1": 20_000, "b@1": 22_000, "c@1": 18_000}), Early()
    assert early.over(lead(clock, 21_000))
    for _ in range(2):
        assert early.reason(decision, [("a@1", 19_000), ("b@1", 19_000), ("c@1", 19_000)]) is not None
    assert sum("went back" in each.message for each in caplog.records) == 1
    time = lead(clock, 19_100, not_before_ms=21_000)
    assert not early.over(time)
    clock.pass_s(2.8)
    assert (time.now(), early.over(time)) == (21_900, False)
    clock.pass_s(0.1)
    assert early.over(time)
