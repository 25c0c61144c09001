"""Commands: each applied once by its id, in the order of their log, also when a torn transaction makes them be read again."""

from __future__ import annotations

from typing import Any

import pytest

from dueline.scheduler.core.inputs import Problem
from dueline.schemas.command import CommandKind
from dueline.schemas.job import Change
from dueline.schemas.run import RunState, Trigger
from dueline.schemas.work import Outcome, SignalKind
from tests.unit.core.world import World, at, job

MANUAL = "menu@!c0"


def with_job(**changes: Any) -> World:
    """A world with the job `menu`."""
    world = World()
    world.publish(job(**changes))
    world.round()
    return world


def changes(world: World) -> list[str]:
    """What the job's versions were made by."""
    return [str(version.change) for version in world.versions]


def test_a_trigger_makes_one_run_whose_time_is_the_command_s() -> None:
    """Given a trigger with a payload, then one manual run is offered at once, and the job's due times go on as before."""
    world = with_job()
    world.send(CommandKind.TRIGGER, payload='{"x": 1}')
    decision = world.round(at(5))
    run = world.record(MANUAL)
    assert (run.state, run.trigger, run.due_ms, run.job.payload) == (RunState.DISPATCHED, Trigger.MANUAL, at(1), '{"x": 1}')
    assert not run.ahead
    assert decision.not_before == {}
    assert world.state.dues["menu"].due_ms == at(60)


def test_a_trigger_is_applied_once_by_its_id() -> None:
    """Given the same id sent again, while the run goes on and after it ended, then there is one run."""
    world = with_job()
    world.send(CommandKind.TRIGGER, id="x")
    world.send(CommandKind.TRIGGER, id="x")
    world.round()
    world.finish(world.started("menu@!x"))
    world.round()
    world.send(CommandKind.TRIGGER, id="x")
    decision = world.round()
    assert world.record("menu@!x").state == RunState.SUCCEEDED
    assert (decision.dispatches, decision.rejected) == ([], [])


def test_a_trigger_waits_behind_a_run_that_must_not_be_overlapped() -> None:
    """Given a run that goes on, then the manual run waits and is not passed over; after its end it goes."""
    world = with_job()
    world.round(at(60))
    claim = world.started(world.due(60).key)
    world.send(CommandKind.TRIGGER)
    world.round()
    assert (world.record(MANUAL).state, world.record(MANUAL).reason) == (RunState.WAITING, "overlap")
    world.finish(claim)
    world.round()
    assert world.record(MANUAL).state == RunState.DISPATCHED


def test_pause_and_resume_hold_from_their_instants() -> None:
    """Given a pause at 90 and a resume at 150, then only what is due between them is skipped, at its due time."""
    world = with_job()
    world.round(at(60))
    world.finish(world.started(world.due(60).key))
    world.send(CommandKind.PAUSE, when=at(90), by="ann")
    world.round(at(91))
    assert world.state.jobs["menu"].latest.paused
    world.round(at(120))
    assert (world.due(120).state, world.due(120).reason) == (RunState.SKIPPED, "paused")
    world.send(CommandKind.RESUME, when=at(150))
    world.round(at(180))
    assert world.due(180).state == RunState.DISPATCHED
    assert [(v.version, v.change, v.effective_ms) for v in world.versions[1:]] == [
        (2, Change.PAUSED, at(90)),
        (3, Change.RESUMED, at(150)),
    ]
    assert world.versions[1].by == "ann"


def test_a_definition_published_while_paused_stays_paused() -> None:
    """Given a paused job, then a new definition of it is paused too; deleted and made anew it is not."""
    world = with_job()
    world.send(CommandKind.PAUSE)
    world.publish(job(schedule='{"every": "30s"}'))
    world.round()
    assert world.versions[-1].paused
    world.send(CommandKind.DELETE)
    world.round()
    world.publish(job())
    world.round()
    assert (world.versions[-1].version, world.versions[-1].paused) == (5, False)


@pytest.mark.parametrize(
    ("kind", "more", "error"),
    [
        (CommandKind.TRIGGER, {"job": "nobody"}, "unknown-job"),
        (CommandKind.PAUSE, {"job": "nobody"}, "unknown-job"),
        (CommandKind.RESUME, {}, "no-change"),
        (CommandKind.DELETE, {"version": 7}, "version-changed"),
        (CommandKind.CANCEL, {"run": "menu@2027-01-15T09:00:00Z"}, "not-active"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_coordinates(kind: CommandKind, more: dict[str, str], error: str) -> None:
    """Then the refusal names topic, partition and offset, keeps the record, and nothing else happens."""
    world = with_job()
    world.send(kind, **more)  # type: ignore[arg-type]
    decision = world.round()
    [refused] = decision.rejected
    assert (refused.error, refused.topic, refused.partition, refused.offset, refused.value) == (error, "control", 0, 0, b"raw")
    assert (decision.versions, decision.dispatches) == ([], [])


def test_an_unreadable_input_is_refused_and_others_go_on() -> None:
    """Given a definition that cannot be read, then it is rejected with its problem, and the next one is taken."""
    world = World()
    world.publish(job("bad"), problem=Problem(error="undecodable", detail="not Avro"))
    world.publish(job())
    decision = world.round()
    assert [(each.error, each.key) for each in decision.rejected] == [("undecodable", b"bad")]
    assert [version.job for version in world.versions] == ["menu"]


def test_delete_of_the_version_it_names() -> None:
    """Given a delete that names the version that holds, then it is applied once; the run that goes on ends by itself."""
    world = with_job()
    world.round(at(60))
    claim = world.started(world.due(60).key)
    world.send(CommandKind.DELETE, version=1, id="d")
    world.send(CommandKind.DELETE, version=1, id="d")
    decision = world.round()
    assert (changes(world), decision.rejected) == ([Change.DEFINED, Change.DELETED], [])
    world.round(at(200))
    world.finish(claim)
    world.round()
    assert world.due(60).state == RunState.SUCCEEDED
    assert world.state.dues.get("menu") is None


@pytest.mark.parametrize("state", ["waiting", "dispatched", "running"])
def test_cancel_ends_a_run_in_any_state(state: str) -> None:
    """Given a run that waits or is offered, then it ends at once; one that a worker holds ends with the worker's word."""
    world = with_job(max_retries=3)
    if state == "waiting":
        world.fleet = world.fleet.__class__(queues=world.fleet.queues)
    world.round(at(60))
    key = world.due(60).key
    claim = world.started(key) if state == "running" else None
    world.send(CommandKind.CANCEL, run=key, reason="wrong menu")
    decision = world.round()
    if claim is not None:
        assert [(s.kind, s.claim, s.reason) for s in decision.signals] == [(SignalKind.CANCEL, claim.claim, "wrong menu")]
        world.finish(claim, Outcome.FAILURE)
        world.round()
    assert (world.record(key).state, world.record(key).reason) == (RunState.CANCELLED, "wrong menu")


def test_a_success_counts_although_a_cancel_was_under_way() -> None:
    """Given a cancel and a run that succeeded all the same, then it succeeded."""
    world = with_job()
    world.round(at(60))
    claim = world.started(world.due(60).key)
    world.send(CommandKind.CANCEL, run=claim.run)
    world.finish(claim)
    world.round()
    assert world.due(60).state == RunState.SUCCEEDED


def test_a_claim_of_a_cancelled_offer_is_refused() -> None:
    """Given an offer that was cancelled, then its claim is declined."""
    world = with_job()
    world.round(at(60))
    world.send(CommandKind.CANCEL, run=world.due(60).key)
    world.round()
    claim = world.claim()
    assert [(s.kind, s.claim) for s in world.round().signals] == [(SignalKind.DECLINE, claim.claim)]


def test_commands_read_again_after_a_torn_transaction_are_applied_once_and_in_order() -> None:
    """Given resume (no change), trigger, delete in one round of which any prefix stands, then the outcome is the same."""
    whole = with_job()
    outcomes = []
    for keep in range(5):
        world = whole.fork()
        world.send(CommandKind.RESUME)
        world.send(CommandKind.PAUSE)
        world.send(CommandKind.TRIGGER, id="t")
        world.send(CommandKind.DELETE, id="d")
        decision = world.crash(at(5), keep=keep)
        assert len(decision.versions) + len(decision.ledger) == 4
        world.rounds()
        assert [r.error for r in world.decisions[-1].rejected] in (["no-change"], [])
        outcomes.append((changes(world), world.record("menu@!t").state))
    assert outcomes == [([Change.DEFINED, Change.PAUSED, Change.DELETED], RunState.DISPATCHED)] * 5
