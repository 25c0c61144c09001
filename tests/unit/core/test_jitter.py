"""Jitter: the run record comes at the due time, its start is put off; the due time stays what names, orders and dates it."""

from __future__ import annotations

from typing import Any

from dueline.scheduler.core.schedule import compile_schedule
from dueline.schemas.base import NONE
from dueline.schemas.command import CommandKind
from dueline.schemas.job import Misfire
from dueline.schemas.run import Run, RunState, Trigger
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, job

SPREAD = '{"every": "1m", "jitter": "50s"}'


def offset(seconds: int) -> int:
    """How long the start of this due time of the job `menu` is put off; more than the grace that the tests give."""
    found = compile_schedule(SPREAD, job_id="menu").start_offset(at(seconds))
    assert found > 5_000, "the draw of this due time does not show what the test is about"
    return found


def spread(**changes: Any) -> World:
    """The job, published."""
    world = World()
    world.publish(job(schedule=SPREAD, **changes))
    world.round()
    return world


def test_the_record_comes_at_the_due_time_and_the_offer_when_the_start_does() -> None:
    """Then the run waits for its jitter from its due time on, counts as running meanwhile, and is offered on the millisecond."""
    world = spread()
    start = at(60) + offset(60)
    assert world.state.next_wake(at(1)) == at(60)
    world.round(at(60))
    run = world.due(60)
    assert (run.state, run.reason, run.until_ms) == (RunState.WAITING, "jitter", start)
    assert (world.state.next_wake(at(60)), world.state.engaged.get("menu")) == (start, 1)
    world.round(start - 1)
    assert world.due(60).state == RunState.WAITING
    world.round(start)
    run = world.due(60)
    assert (run.state, run.due_ms, run.trigger, run.ahead, run.until_ms) == ("dispatched", at(60), "schedule", False, NONE)
    assert faults(world.versions, world.runs, world.now) == []


def test_what_is_put_off_is_not_offered_ahead() -> None:
    """Given dispatch_ahead, then nothing is offered before the due time, and nothing wakes the leader for it."""
    world = spread(dispatch_ahead_ms=10_000)
    assert world.state.next_wake(at(1)) == at(60)
    assert world.round(at(55)).dispatches == []
    assert not any(isinstance(record, Run) for record in world.runs)


def test_late_counts_from_the_start() -> None:
    """Given a grace of 1 s and a leader that comes back between due time and start, then the run is not late."""
    world = spread(misfire_grace_ms=1_000)
    world.round(at(60) + offset(60) - 1)
    assert (world.due(60).trigger, world.due(60).reason) == (Trigger.SCHEDULE, "jitter")
    world = spread(misfire_grace_ms=1_000)
    world.round(at(60) + offset(60) + 1_000)
    assert (world.due(60).trigger, world.due(60).state) == (Trigger.SCHEDULE, RunState.DISPATCHED)
    world = spread(misfire_grace_ms=1_000)
    world.round(at(60) + offset(60) + 1_001)
    assert (world.due(60).trigger, world.due(60).state) == (Trigger.CATCH_UP, RunState.DISPATCHED)
    assert faults(world.versions, world.runs, world.now) == []


def test_only_the_last_of_many_is_spared() -> None:
    """Given `skip` and ten minutes away, then all but the due time whose start is to come are passed over."""
    world = spread(misfire=Misfire.SKIP, misfire_grace_ms=1_000)
    world.rounds(at(600) + offset(600) - 1)
    assert (world.due(600).state, world.due(600).reason) == (RunState.WAITING, "jitter")
    assert faults(world.versions, world.runs, world.now) == []


def test_a_version_asks_back_what_is_put_off_and_puts_it_off_anew() -> None:
    """Given a new definition from before the due time, read while the run waits, then the due time is decided under it."""
    world = spread()
    world.round(at(60))
    world.publish(job(schedule=SPREAD, payload='"new"'), when=at(59))
    world.round(at(60.5))
    run = world.due(60)
    assert (run.job.payload, run.reason, run.until_ms) == ('"new"', "jitter", at(60) + offset(60))
    world.send(CommandKind.CANCEL, run=run.key)
    world.round(at(61))
    assert world.due(60).state == RunState.CANCELLED
    assert faults(world.versions, world.runs, world.now) == []


def test_a_leader_that_takes_over_knows_when_to_start() -> None:
    """Given a take-over between due time and start, then the start stays where it was."""
    world = spread()
    world.round(at(60))
    world.now = at(62)
    world.take_over()
    world.round()
    assert world.due(60).reason == "jitter"
    world.round(at(60) + offset(60))
    assert world.due(60).state == RunState.DISPATCHED
