"""Failures, retries and their jitter, lost workers, snoozes, interruptions; where earlier attempts wrote their steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dueline.scheduler.core.life import MAX_ERROR, MAX_RANGES, MAX_REASON, NO_SLOT_PAUSE_MS, finished, run_job
from dueline.scheduler.core.retry import JITTER, delay_ms
from dueline.schemas.base import NONE
from dueline.schemas.run import RunState, StepRange
from dueline.schemas.work import AttemptEvent, EventKind, Outcome
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, job, worker

KEY = "menu@2027-01-15T08:01:00Z"


def started(**changes: Any) -> tuple[World, AttemptEvent]:
    """A job whose run of second 60 was granted."""
    world = World()
    world.publish(job(schedule='{"at": "2027-01-15T08:01:00Z"}', **changes))
    world.round()
    world.round(at(60))
    return world, world.started(KEY)


def test_delays_grow_are_capped_and_replay() -> None:
    """Then each delay lies within the jitter below its full value, and is the same whoever computes it."""
    constants = run_job(job(retry_backoff_ms=10_000, retry_backoff_factor=2.0, retry_backoff_max_ms=60_000), 1)
    for failures, full in enumerate((10_000, 20_000, 40_000, 60_000, 60_000), start=1):
        delay = delay_ms(constants, KEY, failures)
        assert full * (1 - JITTER) <= delay <= full
        assert delay == delay_ms(constants, KEY, failures)
    assert len({delay_ms(constants, f"{KEY}{number}", 1) for number in range(50)}) > 40


def test_a_delay_never_overflows() -> None:
    """Given the wildest factor and the thousandth failure, then the delay is the longest one."""
    constants = run_job(job(retry_backoff_ms=1, retry_backoff_factor=1e300, retry_backoff_max_ms=5_000), 1)
    assert 4_000 <= delay_ms(constants, KEY, 1_000) <= 5_000
    slow = run_job(job(retry_backoff_ms=1_000, retry_backoff_factor=1.0, retry_backoff_max_ms=5_000), 1)
    assert 800 <= delay_ms(slow, KEY, 10**9) <= 1_000


def test_a_failure_is_tried_again_after_its_delay() -> None:
    """Given one retry, then the second attempt comes after the delay, with the first one's steps, and then it fails."""
    world, claim = started(max_retries=1, retry_backoff_ms=10_000)
    world.finish(claim, Outcome.FAILURE, error="boom")
    world.round(at(70))
    waiting = world.record(KEY)
    assert (waiting.state, waiting.reason, waiting.failures, waiting.begun) == (RunState.WAITING, "retry", 1, True)
    assert waiting.until_ms == at(70) + delay_ms(waiting.job, KEY, 1)
    world.round(waiting.until_ms - 1)
    assert world.record(KEY).state == RunState.WAITING
    world.round(waiting.until_ms)
    second = world.record(KEY)
    assert (second.state, second.attempt, second.ahead, second.outcome) == (RunState.DISPATCHED, 2, False, "")
    assert world.dispatches[-1].earlier == [StepRange(attempt=1, home=3, start=100, end=10_002)]
    world.finish(world.started(KEY), Outcome.FAILURE, error="boom again")
    world.round()
    ended = world.record(KEY)
    assert (ended.state, ended.failures, ended.error) == (RunState.FAILED, 2, "boom again")


def test_what_cannot_be_tried_again_is_not() -> None:
    """Given a failure that says so, then no retry follows."""
    world, claim = started(max_retries=5)
    world.finish(claim, Outcome.FAILURE, retryable=False, reason="steps_expired")
    world.round()
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.FAILED, "steps_expired")


def test_an_interruption_uses_no_retry_up() -> None:
    """Given a drained worker and no retry at all, then the next attempt follows at once."""
    world, claim = started()
    world.finish(claim, Outcome.INTERRUPTED)
    world.round()
    run = world.record(KEY)
    assert (run.state, run.attempt, run.failures, run.losses) == (RunState.DISPATCHED, 2, 0, 0)


def test_a_snooze_waits_until_its_time() -> None:
    """Given a snooze, then the next attempt comes at that instant, never in the past."""
    world, claim = started()
    world.finish(claim, Outcome.SNOOZE, until_ms=at(90))
    world.round()
    assert (world.record(KEY).reason, world.state.next_wake(world.now)) == ("snooze", at(90))
    world.round(at(89.999))
    assert world.record(KEY).state == RunState.WAITING
    world.round(at(90))
    assert world.record(KEY).attempt == 2
    world.finish(world.started(KEY), Outcome.SNOOZE, until_ms=at(1))
    world.round(at(91))
    assert world.record(KEY).attempt == 3


def test_a_declined_offer_rests_and_comes_again() -> None:
    """Given a worker without a slot, then the run rests a moment; a claim nobody knows any more is offered again at once."""
    world, claim = started()
    world.decline(claim)
    world.round()
    assert world.record(KEY).until_ms == at(60) + NO_SLOT_PAUSE_MS
    world.round(at(60) + NO_SLOT_PAUSE_MS)
    claim = world.started(KEY)
    world.decline(claim, "unknown claim")
    world.round()
    assert (world.record(KEY).state, world.record(KEY).attempt) == (RunState.DISPATCHED, 3)


@pytest.mark.parametrize(("allowed", "after"), [(0, RunState.FAILED), (1, RunState.DISPATCHED)])
def test_lost_workers_are_counted_apart(allowed: int, after: RunState) -> None:
    """Given a lost worker, then no retry is used up; `max_worker_losses` 0 means never again."""
    world, _ = started(max_worker_losses=allowed)
    world.fence(worker())
    world.fleet = world.fleet.__class__(workers={"w2.0": worker("w2")}, queues=world.fleet.queues)
    world.round()
    run = world.record(KEY)
    assert (run.state, run.losses, run.failures, run.begun) == (after, 1, 0, True)
    assert run.reason == ("worker-lost" if allowed == 0 else "")
    assert run.earlier == [StepRange(attempt=1, home=3, start=100, end=900)]


def test_a_worker_lost_while_it_held_a_run_for_its_due_time_costs_nothing() -> None:
    """Given a run held ahead of time and a fence before its due time, then it never began and still runs, losses or none."""
    world = World(worker("w1"), worker("w2", partitions=[2]))
    world.publish(job(dispatch_ahead_ms=10_000, max_worker_losses=0))
    world.round()
    world.round(at(50))
    world.started(KEY, by="w1")
    world.fence(worker("w1"), steps_end=NONE)
    world.round()
    run = world.record(KEY)
    assert (run.state, run.losses, run.begun, run.attempt, run.ahead) == (RunState.DISPATCHED, 0, False, 2, True)
    assert run.earlier == []
    assert faults(world.versions, world.runs, world.now) == []


def test_a_run_of_many_attempts_keeps_one_range_a_home() -> None:
    """Given more attempts than ranges may be named, then one range a home partition covers what all of them wrote."""
    world, claim = started()
    granted = world.record(KEY)
    before = [StepRange(attempt=n, home=n % 2, start=10 * n, end=10 * n + 5) for n in range(1, MAX_RANGES + 1)]
    run = replace(granted, earlier=before, attempt=MAX_RANGES + 1, home=1, steps_from=1_000)
    event = replace(claim, kind=EventKind.FINISHED, outcome=Outcome.SNOOZE, until_ms=1)
    earlier = finished(run, event, steps_end=1_010, now=at(70)).earlier
    assert earlier == [
        StepRange(attempt=MAX_RANGES, home=0, start=20, end=10 * MAX_RANGES + 5),
        StepRange(attempt=MAX_RANGES + 1, home=1, start=10, end=1_010),
    ]


def test_texts_of_an_event_are_kept_within_bounds() -> None:
    """Given an event with texts that no topic would take again, then the run keeps their beginning."""
    world, claim = started(max_retries=0)
    world.finish(claim, Outcome.FAILURE, error="x" * 1_000_000, reason="y" * 1_000_000)
    world.round(at(70))
    ended = world.record(KEY)
    assert len(ended.error) == MAX_ERROR
    assert len(ended.reason) == MAX_REASON


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.FAILURE, Outcome.CANCELLED])
def test_a_run_ended_when_its_worker_says_not_when_the_leader_read_of_it(outcome: Outcome) -> None:
    """Given an end that the leader reads an hour later, then the run took as long as its handler; what cannot be is not kept."""
    for told, ended in ((at(65), at(65)), (NONE, at(3_665)), (at(9_999), at(3_665))):
        world = World()
        world.publish(job())
        world.round()
        world.round(at(60))
        claim = world.started(world.due(60).key)
        world.now = at(3_665)
        world.finish(claim, outcome, finished_ms=told)
        world.round()
        assert (world.due(60).finished_ms, world.due(60).state == RunState.WAITING) == (ended, False)
