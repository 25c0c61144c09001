"""The zone data changed: due times follow the new rules, and an occurrence that only moved does not run again."""

from __future__ import annotations

import pytest

from dueline.schemas.base import NONE
from dueline.schemas.command import CommandKind
from dueline.schemas.job import Change, Overlap
from dueline.schemas.run import Run, RunState
from tests.unit.core.world import World, at, every, job
from tests.unit.core.zone_data import EAST, WEST, Releases, daily

HOUR = 3_600
TEN, ELEVEN, DAY = 2 * HOUR, 3 * HOUR, 24 * HOUR  # 10:00Z and 11:00Z, in seconds after T0, which is 08:00Z


def seconds(world: World) -> list[int]:
    """The due times that have a record, in seconds after T0."""
    return sorted({(record.due_ms - at(0)) // 1_000 for record in world.runs if isinstance(record, Run)})


def changes(world: World) -> list[tuple[str, int, list[int], str]]:
    """What made each version, from which second on, what it lists as taken, and with which zone data."""
    return [
        (v.change, (v.effective_ms - at(0)) // 1_000, [(due - at(0)) // 1_000 for due in v.taken], v.tzdata)
        for v in world.versions
    ]


def zoned(patch: pytest.MonkeyPatch, tzdata: str, schedule: str = "") -> tuple[Releases, World]:
    """A job in the zone whose rules the releases see differently."""
    releases = Releases(patch, tzdata)
    world = releases.world()
    world.publish(job(schedule=schedule or daily(), overlap=Overlap.ALLOW))
    world.round()
    return releases, world


def test_an_occurrence_that_moved_on_does_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a run at 10:00Z, then rules by which it were 11:00Z, then today has no second run and tomorrow's is at 11:00Z."""
    releases, world = zoned(monkeypatch, EAST)
    world.round(at(TEN))
    world.now = at(TEN + 1_800)
    releases.upgrade(world, WEST)
    world.round()
    assert changes(world)[1:] == [(Change.REZONED, TEN, [ELEVEN], WEST)]
    world.round(at(ELEVEN + 60))
    world.round(at(DAY + ELEVEN))
    assert seconds(world) == [TEN, DAY + ELEVEN]
    assert world.due(DAY + ELEVEN).previous_due_ms == at(TEN)


def test_nor_when_nobody_led_while_it_moved_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the leader away until after 11:00Z, then the due time of the new rules is none of today's either."""
    releases, world = zoned(monkeypatch, EAST)
    world.round(at(TEN))
    world.now = at(ELEVEN + 1_800)
    releases.upgrade(world, WEST)
    world.rounds()
    assert seconds(world) == [TEN]


def test_an_occurrence_that_moved_back_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given nothing run yet and rules by which today's 11:00Z was 10:00Z, then it runs late, once; after a run at 11:00Z
    nothing does."""
    releases, world = zoned(monkeypatch, WEST)
    world.now = at(TEN + 1_800)
    releases.upgrade(world, EAST)
    world.round()
    world.round(at(ELEVEN))
    assert seconds(world) == [TEN]
    assert (world.due(TEN).trigger, world.due(TEN).job.version) == ("catch-up", 2)
    releases, world = zoned(monkeypatch, WEST)
    world.round(at(ELEVEN))
    releases.upgrade(world, EAST)
    world.round()
    world.round(at(DAY + TEN))
    assert changes(world)[1:] == [(Change.REZONED, ELEVEN, [], EAST)]
    assert seconds(world) == [ELEVEN, DAY + TEN]


def test_only_what_has_a_zone_gets_a_version_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a job in UTC and one by interval, a deleted one and a paused one, then the paused one alone, which stays so."""
    releases, world = zoned(monkeypatch, WEST)
    world.publish(job("utc", schedule='"0 3 * * *"'))
    world.publish(job("interval", schedule=every("1h")))
    world.publish(job("gone", schedule=daily()))
    world.publish("gone")
    world.send(CommandKind.PAUSE, "menu")
    world.round()
    releases.upgrade(world, EAST)
    made = world.round().versions
    assert [(v.job, v.change, v.paused, v.definition.schedule) for v in made] == [("menu", Change.REZONED, True, daily())]
    releases.upgrade(world, EAST)
    assert world.round().versions == []
    assert list(world.state.zones.between()) == [(EAST, "menu")]


def test_slices_hold_and_due_times_wait_for_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more jobs than a slice has room for, then all are rezoned before anything is due."""
    releases = Releases(monkeypatch, EAST)
    world = releases.world(max_records=2)
    for number in range(5):
        world.publish(job(f"j{number}", schedule=daily()))
    world.rounds()
    world.now = at(ELEVEN)
    releases.upgrade(world, WEST)
    rounds = world.rounds()
    assert [len(decision.versions) for decision in rounds[:3]] == [2, 2, 1]
    assert seconds(world) == [ELEVEN]


@pytest.mark.parametrize("keep", range(4))
def test_a_torn_transaction_changes_nothing_about_it(monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
    """Given a leader that dies in the transaction that rezones, then the next one ends where it would have."""
    releases, world = zoned(monkeypatch, EAST)
    world.round(at(TEN))
    world.now = at(TEN + 1_800)
    releases.upgrade(world, WEST)
    world.crash(keep=keep)
    world.rounds()
    assert changes(world)[1:] == [(Change.REZONED, TEN, [ELEVEN], WEST)]
    world.rounds(at(DAY + ELEVEN))
    assert seconds(world) == [TEN, DAY + ELEVEN]


def test_a_definition_read_at_the_same_time_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a new definition that the leader with the new rules reads first, then what moved stays where it was decided."""
    releases, world = zoned(monkeypatch, EAST)
    world.round(at(TEN))
    world.publish(job(schedule=daily(), payload='"new"', overlap=Overlap.ALLOW), when=at(TEN + 600))
    world.now = at(TEN + 1_800)
    releases.upgrade(world, WEST)
    world.round()
    assert changes(world)[1:] == [(Change.REZONED, TEN, [ELEVEN], WEST), (Change.DEFINED, TEN + 600, [ELEVEN], WEST)]
    world.rounds(at(DAY + ELEVEN))
    assert seconds(world) == [TEN, DAY + ELEVEN]
    assert world.due(DAY + ELEVEN).job.payload == '"new"'


def test_there_and_back_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the old release again before the moved instant, then it is no due time, and nothing is left of it."""
    releases, world = zoned(monkeypatch, EAST)
    world.round(at(TEN))
    for minutes, tzdata in ((10, WEST), (20, EAST)):
        world.now = at(TEN + 60 * minutes)
        releases.upgrade(world, tzdata)
        world.round()
    assert [change[2] for change in changes(world)] == [[], [ELEVEN], []]
    world.round(at(DAY + TEN))
    assert seconds(world) == [TEN, DAY + TEN]


def test_what_is_held_for_its_due_time_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a run offered ahead for 10:00Z when the rules change, then it starts then, as decided, and not again."""
    releases = Releases(monkeypatch, EAST)
    world = releases.world()
    world.publish(job(schedule=daily(), dispatch_ahead_ms=10_000))
    world.round()
    world.round(at(TEN - 5))
    claim = world.started(world.due(TEN).key)
    releases.upgrade(world, WEST)
    world.round()
    assert changes(world)[1:] == [(Change.REZONED, TEN, [ELEVEN], WEST)]
    world.now = at(TEN + 1)
    world.finish(claim)
    world.round()
    world.round(at(ELEVEN + 1))
    assert (seconds(world), world.due(TEN).state) == ([TEN], RunState.SUCCEEDED)


def test_a_job_that_never_ran_has_nothing_that_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its version holds from where the one before did, and the first due time is that of the new rules."""
    releases, world = zoned(monkeypatch, EAST)
    releases.upgrade(world, WEST)
    world.round()
    assert changes(world)[1:] == [(Change.REZONED, 1, [], WEST)]
    world.round(at(ELEVEN))
    assert seconds(world) == [ELEVEN]
    assert world.due(ELEVEN).previous_due_ms == NONE
