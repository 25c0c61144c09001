"""Policy `all`: how many late due times run at most, and how far apart they start."""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any

from dueline.schemas.command import CommandKind
from dueline.schemas.job import Misfire, Overlap
from dueline.schemas.run import Run, RunState, Summary
from tests.unit.core.checker import faults
from tests.unit.core.test_late_runs import away, told
from tests.unit.core.world import World, at, every, job, worker

YEAR_S = 365 * 86_400


def late(until_s: float, **changes: Any) -> World:
    """A job of policy `all` that may overlap; nobody leads until `until_s`."""
    plain: dict[str, Any] = {"misfire": Misfire.ALL, "misfire_grace_ms": 5_000, "overlap": Overlap.ALLOW}
    world = away(until_s, **(plain | changes))
    world.settings = replace(world.settings, offer_timeout_ms=3_600_000)  # what nobody answers is not offered again
    return world


def starts(world: World) -> list[float]:
    """When late runs were offered, in seconds after T0."""
    runs = [record for record in world.runs if isinstance(record, Run) and record.state == RunState.DISPATCHED]
    return sorted({(run.dispatched_ms - at(0)) / 1000 for run in runs if run.trigger == "catch-up"})


def test_the_latest_ones_run() -> None:
    """Given ten late due times and a maximum of three, then seven are passed over for it and the last three run."""
    world = late(610, catch_up_max=3)
    assert told(world)[0] == (60, 420, 7, "catch-up-max")
    assert [entry[:2] for entry in told(world)[1:]] == [(480, "dispatched"), (540, "dispatched"), (600, "dispatched")]


def test_one_or_two_beyond_are_recorded_one_each() -> None:
    """Given two more than the maximum, then each has its own record."""
    assert told(late(250, catch_up_max=2))[:2] == [(60, "skipped", "catch-up-max"), (120, "skipped", "catch-up-max")]


def test_due_times_on_time_are_not_counted() -> None:
    """Given a maximum of one and a due time within the grace, then the latest late one and that one run."""
    assert [entry[:2] for entry in told(late(183, catch_up_max=1))[1:]] == [(120, "dispatched"), (180, "dispatched")]


def test_versions_share_the_maximum() -> None:
    """Given late due times of two versions, then the maximum counts the later ones first."""
    world = World()
    policy: dict[str, Any] = {"misfire": Misfire.ALL, "misfire_grace_ms": 5_000, "overlap": Overlap.ALLOW, "catch_up_max": 4}
    world.publish(job(**policy))
    world.round()
    world.publish(job(**policy, payload='"new"'), when=at(450))
    world.rounds(at(610))
    assert told(world)[0] == (60, 360, 6, "catch-up-max")
    assert [(entry[0], entry[1]) for entry in told(world)[1:]] == [(s, "dispatched") for s in (420, 480, 540, 600)]
    assert faults(world.versions, world.runs, world.now) == []


def test_slices_do_not_change_what_runs() -> None:
    """Given slices of two records, then the same due times run and the same are passed over."""
    world = World(max_records=2)
    world.publish(job(misfire=Misfire.ALL, misfire_grace_ms=5_000, overlap=Overlap.ALLOW, catch_up_max=5))
    world.rounds()
    world.rounds(at(610))
    assert sorted(told(world), key=lambda entry: int(str(entry[0])))[0] == (60, 300, 5, "catch-up-max")
    assert len({record.key for record in world.runs if isinstance(record, Run)}) == 5


def test_a_year_of_seconds_is_not_walked() -> None:
    """Given a year of due times and a maximum of a thousand, then thirty-one million stand in one summary, at once."""
    world = World()
    policy: dict[str, Any] = {"misfire": Misfire.ALL, "overlap": Overlap.ALLOW, "catch_up_window_ms": YEAR_S * 2_000}
    world.publish(job(schedule=every("1s"), **policy))
    world.round()
    began = process_time()
    world.rounds(at(YEAR_S) + 500)
    spent = process_time() - began
    (summary,) = (record for record in world.runs if isinstance(record, Summary))
    assert (summary.reason, summary.last_ms) == ("catch-up-max", at(YEAR_S) - 60_000 - 1_000_000)
    assert summary.count == YEAR_S - 60 - 1_000 - 1  # that of second 1 ran on time
    assert spent < 5.0


def test_late_runs_start_so_far_apart() -> None:
    """Given four late due times and a rate of 10 s, then each starts 10 s after the one before, to the millisecond."""
    world = late(241, catch_up_every_ms=10_000, misfire_grace_ms=500)
    assert [entry[1:] for entry in told(world)] == [
        ("dispatched", ""), ("waiting", "catch-up-rate"), ("waiting", "catch-up-rate"), ("waiting", "catch-up-rate"),
    ]  # fmt: skip
    assert world.state.next_wake(world.now) == at(251)
    for second in (250.999, 251, 255, 260.999, 261, 271):
        world.round(at(second))
    assert starts(world) == [241, 251, 261, 271]
    assert world.state.next_wake(world.now) == at(300)
    assert faults(world.versions, world.runs, world.now) == []


def test_the_rate_holds_across_a_take_over() -> None:
    """Given a new leader, then what the old one started last still counts."""
    world = late(241, catch_up_every_ms=10_000, misfire_grace_ms=500)
    world.now = at(245)
    world.take_over()
    for second in (245, 250.999, 251):
        world.round(at(second))
    assert starts(world) == [241, 251]


def test_nobody_there_saves_nothing_up() -> None:
    """Given no worker for a minute, then the late runs start one by one once there is one, not all together."""
    world = World(worker(handlers=["other"]), offer_timeout_ms=3_600_000)
    world.publish(job(misfire=Misfire.ALL, misfire_grace_ms=500, overlap=Overlap.ALLOW, catch_up_every_ms=10_000))
    world.round()
    world.rounds(at(181))
    world.round(at(230))
    assert starts(world) == []
    world.fleet = World(worker()).fleet
    for second in (231, 232, 241, 251):
        world.round(at(second))
    assert starts(world) == [231, 241, 251]


def test_what_must_not_overlap_waits_for_both() -> None:
    """Given `overlap: skip`, then the next late run waits for the end of the one before and for the rate, and what is
    due meanwhile is passed over."""
    world = late(241, catch_up_every_ms=10_000, misfire_grace_ms=500, overlap=Overlap.SKIP)
    claim = world.started(world.due(60).key)
    world.round(at(255))
    assert starts(world) == [241]
    world.finish(claim)
    world.round(at(256))
    assert starts(world) == [241, 256]
    world.finish(world.started(world.due(120).key))
    world.round(at(257))
    assert starts(world) == [241, 256]
    world.round(at(300))
    assert (world.due(300).state, world.due(300).reason) == (RunState.SKIPPED, "overlap")
    assert starts(world) == [241, 256, 300]


def test_what_is_due_meanwhile_and_what_is_triggered_does_not_queue_up() -> None:
    """Given runs that may overlap, then an on-time run and one by hand start at once beside late ones that wait."""
    world = late(241, catch_up_every_ms=100_000, misfire_grace_ms=500)
    manual = world.send(CommandKind.TRIGGER, when=at(242))
    world.round(at(242))
    world.round(at(300))
    assert manual.value is not None
    assert world.record(f"menu@!{manual.value.id}").state == RunState.DISPATCHED
    assert world.due(300).state == RunState.DISPATCHED


def test_a_new_definition_changes_the_rate() -> None:
    """Given a definition without a rate, then what waited for it starts."""
    world = late(241, catch_up_every_ms=100_000, misfire_grace_ms=500)
    world.publish(job(misfire=Misfire.ALL, overlap=Overlap.ALLOW), when=at(242))
    for _ in range(4):
        world.round(at(243))
    assert len({run.key for _, run in world.state.runs.items() if run.state == RunState.DISPATCHED}) == 4


def test_a_late_run_that_waits_can_be_cancelled() -> None:
    """Then the next one has its turn."""
    world = late(190, catch_up_every_ms=10_000, misfire_grace_ms=500)
    world.send(CommandKind.CANCEL, run=world.due(120).key)
    for second in (191, 200):
        world.round(at(second))
    assert [world.due(s).state for s in (60, 120, 180)] == [RunState.DISPATCHED, RunState.CANCELLED, RunState.DISPATCHED]
    assert world.state.pacing.get("menu") is None and list(world.state.pace.between()) == []
