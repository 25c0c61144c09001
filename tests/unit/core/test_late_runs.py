"""Due times found late: latest, all, skip; the grace, the window; records one each, or from three in a row on a summary."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from dueline.schemas.command import CommandKind
from dueline.schemas.job import Misfire, Overlap
from dueline.schemas.run import Run, RunState, Summary, Trigger
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, every, job

GRACE_MS = 60_000


def away(until_s: float, **changes: Any) -> World:
    """A job once a minute from second 1 on; nobody leads until `until_s`; then one round."""
    world = World()
    world.publish(job(**changes))
    world.round()
    world.rounds(at(until_s))
    assert faults(world.versions, world.runs, world.now) == []
    return world


def told(world: World) -> list[tuple[object, ...]]:
    """The job's records in order: (seconds, state or count, reason)."""
    found: list[tuple[object, ...]] = []
    for record in world.runs:
        if isinstance(record, Run):
            found.append(((record.due_ms - at(0)) // 1000, str(record.state), str(record.reason)))
        elif isinstance(record, Summary):
            first, last = (record.first_ms - at(0)) // 1000, (record.last_ms - at(0)) // 1000
            found.append((first, last, record.count, record.reason))
    return found


def test_on_time_within_the_grace() -> None:
    """Given 60 s of grace, a due time found 60 s after is on time, and found 60.001 s after it is late."""
    assert away(119.999).due(60).trigger == Trigger.SCHEDULE
    world = away(120)
    assert world.due(60).trigger == Trigger.SCHEDULE
    world = World()
    world.publish(job(schedule=every("1h")))
    world.round()
    world.round(at(3_660.001))
    assert world.due(3_600).trigger == Trigger.CATCH_UP


def test_latest_runs_the_last_one_and_records_the_others() -> None:
    """Given 10 minutes away and no on-time due time, then the latest runs and one summary stands for the rest."""
    world = away(610, misfire_grace_ms=5_000)
    assert told(world) == [(60, 540, 9, "later-due-time"), (600, "dispatched", "")]
    assert world.due(600).trigger == Trigger.CATCH_UP
    assert world.due(600).previous_due_ms == at(540)


def test_latest_is_superseded_by_one_on_time() -> None:
    """Given late due times and one within the grace, then only the one on time runs."""
    world = away(240, misfire_grace_ms=5_000)
    assert told(world) == [(60, 180, 3, "later-due-time"), (240, "dispatched", "")]
    assert world.due(240).trigger == Trigger.SCHEDULE


@pytest.mark.parametrize(("until", "records"), [(70, 1), (130, 2), (190, 1)])
def test_skip_records_one_each_and_from_three_on_a_summary(until: float, records: int) -> None:
    """Given 1, 2, 3 late due times in a row, then one and two are recorded singly, three in one summary."""
    world = away(until, misfire=Misfire.SKIP, misfire_grace_ms=5_000)
    assert len(told(world)) == records
    assert {entry[-1] for entry in told(world)} == {"misfire-skip"}


def test_all_runs_them_behind_each_other() -> None:
    """Given policy `all` and overlap `skip`, then each late one gets a run: the first goes, the others wait, none is skipped."""
    world = away(190, misfire=Misfire.ALL, misfire_grace_ms=5_000)
    assert told(world) == [(60, "dispatched", ""), (120, "waiting", "overlap"), (180, "waiting", "overlap")]
    world.finish(world.started(world.due(60).key))
    world.round()
    assert [entry[1] for entry in told(world)[-2:]] == ["succeeded", "dispatched"]


def test_a_due_time_on_time_does_not_overtake_what_queues_up() -> None:
    """Given catch-up runs in a queue, then one on time is passed over for overlap: an earlier run is not finished."""
    world = away(185, misfire=Misfire.ALL, misfire_grace_ms=5_000)
    assert told(world)[-1] == (180, "skipped", "overlap")


def test_late_latest_is_passed_over_while_an_earlier_run_goes_on() -> None:
    """Given `latest` and a run that is not finished, then the late one is skipped as it would have been on time."""
    world = World()
    world.publish(job(misfire_grace_ms=5_000))
    world.round()
    world.round(at(60))
    world.started(world.due(60).key)
    world.round(at(130))
    assert (world.due(120).state, world.due(120).reason) == (RunState.SKIPPED, "overlap")


def test_beyond_the_window_nothing_runs() -> None:
    """Given a window of 2 minutes, then older due times are passed over for it, whatever the policy."""
    for misfire in Misfire:
        world = away(605, misfire=misfire, misfire_grace_ms=1_000, catch_up_window_ms=120_000, overlap=Overlap.ALLOW)
        assert told(world)[0] == (60, 480, 8, "catch-up-window")
    assert away(605, misfire=Misfire.ALL, misfire_grace_ms=1_000, catch_up_window_ms=120_000).due(540).state == "dispatched"


def test_a_window_shorter_than_the_grace_spares_what_is_on_time() -> None:
    """Given a window of zero, then what is found within the grace still runs."""
    world = away(61, catch_up_window_ms=0)
    assert world.due(60).state == RunState.DISPATCHED


def test_paused_due_times_supersede_nothing() -> None:
    """Given the leader away over a due time and then a pause, then `latest` runs what was due before the pause."""
    world = World()
    world.publish(job(misfire_grace_ms=1_000))
    world.round()
    world.send(CommandKind.PAUSE, when=at(90))
    world.rounds(at(310))
    assert told(world) == [(60, "dispatched", ""), (120, 300, 4, "paused")]
    assert faults(world.versions, world.runs, world.now) == []


def test_a_year_of_minutes_is_found_at_once() -> None:
    """Given a year without a leader, then 525,599 due times stand in one summary, exact, in arithmetic time."""
    world = World()
    world.publish(job())
    world.round()
    started = process_time()
    world.round(at(365 * 86_400 + 30))
    spent = process_time() - started
    summaries = [record for record in world.runs if isinstance(record, Summary)]
    assert sum(each.count for each in summaries) == 365 * 1_440 - 1
    assert (summaries[0].first_ms, summaries[-1].last_ms) == (at(60), at(365 * 86_400 - 60))
    assert world.due(365 * 86_400).state == RunState.DISPATCHED
    assert spent < 1.0


def test_summaries_and_skips_say_when_they_may_stand() -> None:
    """Then a summary must not precede its last due time, a run of this moment not its own, one ahead of time nothing."""
    world = World()
    world.publish(job(misfire_grace_ms=1_000, dispatch_ahead_ms=10_000))
    world.round()
    decision = world.round(at(305))
    summary = next(record for record in decision.ledger if isinstance(record, Summary))
    assert decision.not_before == {summary.key: at(240), world.due(300).key: at(300)}
    world.finish(world.started(world.due(300).key))
    world.round()
    assert world.round(at(355)).not_before == {}
    assert (world.due(360).state, world.due(360).ahead) == (RunState.DISPATCHED, True)
