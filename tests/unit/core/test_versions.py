"""Job versions: numbers, instants, taken due times; what held before is decided first, also when the leader was away."""

from __future__ import annotations

import pytest

from dueline.schemas.base import NONE
from dueline.schemas.command import CommandKind
from dueline.schemas.job import Change, Misfire, Overlap
from dueline.schemas.run import Run, RunState
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, every, job


def test_an_unchanged_definition_makes_nothing() -> None:
    """Given the same definition again, also of a one-shot whose time is over, then no version and no refusal."""
    world = World()
    once = job("once", schedule='{"at": "2027-01-15T08:01:00Z"}')
    world.publish(job())
    world.publish(once)
    world.round()
    world.round(at(61))
    world.publish(job())
    world.publish(once)
    decision = world.round(at(62))
    assert (decision.versions, decision.rejected) == ([], [])
    assert [version.version for version in world.versions] == [1, 1]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"schedule": '{"cron": "61 * * * *"}'}, "invalid-schedule"),
        ({"queue": "nowhere"}, "unknown-queue"),
        ({"schedule": '{"at": "2020-01-01T00:00:00Z"}'}, "never-due"),
    ],
)
def test_a_definition_that_cannot_hold_is_refused(changes: dict[str, str], error: str) -> None:
    """Then it is rejected with a stable word, and a version that holds goes on."""
    world = World()
    world.publish(job())
    world.publish(job(**changes))
    decision = world.round()
    assert [each.error for each in decision.rejected] == [error]
    assert [version.version for version in world.versions] == [1]


def test_deletion_and_new_creation_go_on_counting() -> None:
    """Given a tombstone and the job again, then versions 1, 2, 3; between them nothing is due; the chain goes on."""
    world = World()
    world.publish(job())
    world.round()
    world.round(at(60))
    world.finish(world.started(world.due(60).key))
    world.publish("menu", when=at(70))
    world.round(at(130))
    world.publish(job(), when=at(170))
    world.round(at(180))
    assert [(v.version, v.change) for v in world.versions] == [(1, Change.DEFINED), (2, Change.DELETED), (3, Change.DEFINED)]
    assert [r.due_ms for r in world.runs if isinstance(r, Run) and r.due_ms > at(60)] == [at(180)]
    assert world.due(180).previous_due_ms == at(60)
    assert faults(world.versions, world.runs, world.now) == []


def test_instants_never_go_back() -> None:
    """Given a later record with an earlier append time, then its version holds from the instant of the one before."""
    world = World()
    world.publish(job(), when=at(50))
    world.send(CommandKind.PAUSE, when=at(20))
    world.round(at(51))
    world.publish(job(schedule=every("30s")), when=at(10))
    world.round()
    assert [version.effective_ms for version in world.versions] == [at(50)] * len(world.versions)


def test_t17e_due_times_before_the_instant_are_decided_by_the_version_before() -> None:
    """Given a new version published while nobody led, then what was due before it is the old one's, the rest the new one's."""
    world = World()
    world.publish(job(misfire=Misfire.ALL, overlap=Overlap.ALLOW))
    world.round()
    world.publish(job(schedule=every("2m"), misfire=Misfire.ALL, overlap=Overlap.ALLOW, payload='"new"'), when=at(200))
    world.rounds(at(490))
    runs = {(run.due_ms - at(0)) // 1000: run.job.version for run in world.runs if isinstance(run, Run)}
    assert runs == {60: 1, 120: 1, 180: 1, 240: 2, 360: 2, 480: 2}
    assert faults(world.versions, world.runs, world.now) == []


def test_t17e_a_deletion_while_nobody_led_keeps_what_was_due_before() -> None:
    """Given a deletion at 90, found at 300, then second 60 is decided and nothing after it."""
    world = World()
    world.publish(job(misfire_grace_ms=1_000))
    world.round()
    world.publish("menu", when=at(90))
    world.rounds(at(300))
    assert [run.due_ms for run in world.runs if isinstance(run, Run)] == [at(60)]
    assert world.due(60).state == RunState.DISPATCHED


def test_due_times_with_a_record_stay_with_the_version_before() -> None:
    """Given a version that was appended before a due time and read after it, then it lists that one as taken."""
    world = World()
    world.publish(job())
    world.round()
    world.round(at(120))
    world.started(world.due(60).key)
    world.publish(job(schedule=every("30s")), when=at(100))
    world.round(at(121))
    assert world.versions[-1].taken == [at(120)]
    world.round(at(150))
    assert world.due(150).job.version == 2
    assert world.due(150).previous_due_ms == at(120)
    assert faults(world.versions, world.runs, world.now) == []


def test_too_much_to_be_listed_moves_the_instant() -> None:
    """Given more recorded due times than a version may list, then it holds from after the last: none is decided twice."""
    world = World(max_taken=3)
    world.publish(job(schedule=every("10s"), overlap=Overlap.ALLOW))
    world.round()
    world.round(at(60))
    world.publish(job(schedule=every("5s"), overlap=Overlap.ALLOW), when=at(5))
    world.round()
    assert (world.versions[-1].taken, world.versions[-1].effective_ms) == ([], at(60) + 1)
    world.round(at(65))
    assert world.due(65).job.version == 2
    assert faults(world.versions, world.runs, world.now) == []


def test_jobs_absent_from_the_topic_were_deleted_when_it_was_last_read() -> None:
    """L12: given a job that is not found when `jobs` is read whole, then its deletion holds from that earlier read."""
    world = World()
    world.publish(job())
    world.publish(job("other"))
    world.round()
    world.round(at(59), anchor=True, read_jobs_ms=at(59))
    world.round(at(200), absent_jobs=["menu", "nobody"])
    deleted = world.versions[-1]
    assert (deleted.job, deleted.change, deleted.effective_ms, deleted.by) == ("menu", Change.DELETED, at(59), "absent from jobs")
    assert [run.job.id for run in world.runs if isinstance(run, Run)] == ["other"] * 3
    assert world.round(at(201), absent_jobs=["menu"]).versions == []


def test_an_absence_of_which_nothing_was_recorded_holds_from_the_beginning_of_the_term() -> None:
    """L12: what was due before is not forgotten for it."""
    world = World()
    world.publish(job())
    world.round()
    world.round(at(60))
    world.round(at(200), absent_jobs=["menu"], led_ms=at(190))
    assert (world.versions[-1].change, world.versions[-1].effective_ms) == (Change.DELETED, at(190))
    assert [world.due(seconds).due_ms for seconds in (60, 120, 180)] == [at(60), at(120), at(180)]
    assert faults(world.versions, world.runs, world.now) == []


def test_a_topic_made_anew_is_not_taken_for_the_old_one() -> None:
    """Given offsets that start again (accepted by a person), then definitions with low offsets are new ones."""
    world = World()
    for number in range(5):
        world.publish(job(payload=str(number)))
    world.round()
    fresh = world.publish(job(payload='"fresh"'), when=at(100)).__class__(
        topic="jobs", partition=0, offset=0, append_ms=at(100), key=b"menu", raw=b"", value=job(payload='"fresh"')
    )
    world.round(at(100), jobs=[fresh])
    assert world.versions[-1].definition.payload == '"fresh"'


def test_the_first_due_time_has_none_before_it() -> None:
    """Then the chain begins with none and goes on with each due time."""
    world = World()
    world.publish(job(overlap=Overlap.ALLOW))
    world.round()
    world.round(at(60))
    world.round(at(120))
    assert [world.due(s).previous_due_ms for s in (60, 120)] == [NONE, at(60)]
