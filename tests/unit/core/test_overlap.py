"""A due time comes while an earlier run is not finished; `max_concurrent`."""

from __future__ import annotations

from typing import Any

import pytest

from dueline.schemas.command import CommandKind
from dueline.schemas.job import Overlap
from dueline.schemas.run import RunState
from dueline.schemas.work import Outcome
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, job, worker


def running(**changes: Any) -> World:
    """A job whose run of second 60 is running."""
    world = World()
    world.publish(job(**changes))
    world.round()
    world.round(at(60))
    world.started(world.due(60).key)
    return world


def test_skip_passes_over_while_a_run_goes_on() -> None:
    """Given a run that goes on, then the next due time is skipped, and runs again after its end."""
    world = running()
    world.round(at(120))
    assert (world.due(120).state, world.due(120).reason) == (RunState.SKIPPED, "overlap")
    claim = world.attempts_log[-1].value
    assert claim is not None
    world.finish(claim)
    world.round(at(180))
    assert world.due(60).state == RunState.SUCCEEDED
    assert world.due(180).state == RunState.DISPATCHED


def test_a_run_that_waits_for_its_retry_counts_as_running() -> None:
    """Given a failed attempt whose retry is to come, then the next due time is skipped for overlap."""
    world = World()
    world.publish(job(max_retries=1, retry_backoff_ms=120_000))
    world.round()
    world.round(at(60))
    world.finish(world.started(world.due(60).key), Outcome.FAILURE)
    world.round()
    assert (world.due(60).state, world.due(60).reason) == (RunState.WAITING, "retry")
    world.round(at(120))
    assert world.due(120).reason == "overlap"


def test_allow_runs_side_by_side() -> None:
    """Given `allow`, then every due time is offered."""
    world = running(overlap=Overlap.ALLOW)
    world.round(at(120))
    assert world.due(120).state == RunState.DISPATCHED


def test_max_concurrent_lets_wait_in_due_time_order() -> None:
    """Given at most one at a time, then later due times wait, none is skipped, and the earliest goes first."""
    world = running(overlap=Overlap.ALLOW, max_concurrent=1)
    claim = world.attempts_log[-1].value
    assert claim is not None
    world.round(at(120))
    world.round(at(180))
    assert [world.due(s).reason for s in (120, 180)] == ["limit", "limit"]
    world.finish(claim)
    world.round(at(240))
    assert world.due(120).state == RunState.DISPATCHED
    assert [world.due(s).reason for s in (180, 240)] == ["limit", "limit"]
    assert faults(world.versions, world.runs, world.now) == []


def test_a_due_time_does_not_overtake_one_that_waits() -> None:
    """Given a limit that came free in the very round of a due time, then the one that waits goes first."""
    world = running(overlap=Overlap.ALLOW, max_concurrent=1)
    claim = world.attempts_log[-1].value
    assert claim is not None
    world.round(at(120))
    world.finish(claim)
    world.round(at(180))
    assert (world.due(120).state, world.due(180).reason) == (RunState.DISPATCHED, "limit")


@pytest.mark.parametrize("max_records", [1, 5_000])
def test_a_full_slice_forgets_nobody_who_waits(max_records: int) -> None:
    """Given many jobs whose blocked runs may go on at once, then small slices wake all of them."""
    names = [f"j{number}" for number in range(6)]
    world = World(worker(slots=50), max_records=max_records)
    for name in names:
        world.publish(job(name, schedule='{"at": "2027-01-15T08:01:00Z"}'))
    world.rounds(at(60))
    claims = [world.claim(offer) for offer in world.dispatches]
    world.rounds()
    for name in names:
        world.send(CommandKind.TRIGGER, name, id="t")
    world.rounds()
    assert {world.record(f"{name}@!t").reason for name in names} == {"overlap"}
    for claim in claims:
        world.finish(claim)
    world.rounds(at(61))
    assert {world.record(f"{name}@!t").state for name in names} == {RunState.DISPATCHED}


def test_who_waits_is_woken_by_a_leader_whose_first_round_may_not_fire() -> None:
    """Given a torn end of the earlier run and clocks that disagree at first, then the one that waits goes on afterwards."""
    world = running(overlap=Overlap.ALLOW, max_concurrent=1)
    claim = world.attempts_log[-1].value
    assert claim is not None
    world.round(at(120))
    world.finish(claim)
    world.crash(keep=1)
    assert world.due(60).state == RunState.SUCCEEDED
    world.round(firing=False)
    assert world.due(120).reason == "limit"
    world.round()
    assert world.due(120).state == RunState.DISPATCHED
