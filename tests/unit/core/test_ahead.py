"""Runs offered ahead of their due time: where admission cannot change any more; what asks them back, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from dueline.schemas.command import CommandKind
from dueline.schemas.job import Change, Overlap
from dueline.schemas.run import RunState
from dueline.schemas.work import AttemptEvent, HeldState, Outcome, SignalKind
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, every, holding, job, worker

KEY = "menu@2027-01-15T08:01:00Z"


def offered(**changes: Any) -> World:
    """A job with 10 s of `dispatch_ahead`, whose run of second 60 was offered at second 50."""
    world = World(worker("w1"), worker("w2", partitions=[2, 3]))
    world.publish(job(**({"dispatch_ahead_ms": 10_000} | changes)))
    world.round()
    world.round(at(50))
    return world


def held(**changes: Any) -> tuple[World, AttemptEvent]:
    """The same, and granted to w1."""
    world = offered(**changes)
    return world, world.started(KEY)


def test_it_is_offered_at_its_lead_and_not_before() -> None:
    """Then at 49.999 there is no record, at 50 an offer to be held, which may stand before its due time."""
    world = World()
    world.publish(job(dispatch_ahead_ms=10_000))
    world.round()
    assert world.state.next_wake(world.now) == at(50)
    assert world.round(at(49.999)).ledger == []
    decision = world.round(at(50))
    assert [(each.ahead, each.due_ms) for each in decision.dispatches] == [(True, at(60))]
    assert decision.not_before == {}
    world.started(KEY)
    assert world.round(at(60)).ledger == []


def test_nothing_is_offered_ahead_while_an_earlier_run_could_still_end_or_not() -> None:
    """Given overlap `skip` and a run that goes on, then the decision waits for the due time."""
    world = offered()
    claim = world.started(KEY)
    assert world.round(at(115)).dispatches == []
    world.finish(claim)
    assert [each.ahead for each in world.round(at(116)).dispatches] == [True]


def test_nothing_is_offered_ahead_over_a_limit_or_over_those_who_wait() -> None:
    """Given `max_concurrent` reached, then nothing goes ahead; and nothing overtakes a run that waits."""
    world = offered(overlap=Overlap.ALLOW, max_concurrent=1)
    world.started(KEY)
    assert world.round(at(115)).dispatches == []
    world.send(CommandKind.TRIGGER)
    world.round(at(116))
    assert world.record("menu@!c0").reason == "overlap"


def test_a_paused_job_is_not_offered_ahead() -> None:
    """Given a pause, then nothing goes out ahead, and the due time is skipped when it comes."""
    world = World()
    world.publish(job(dispatch_ahead_ms=10_000))
    world.send(CommandKind.PAUSE)
    world.round()
    assert world.round(at(55)).ledger == []
    world.round(at(60))
    assert world.due(60).reason == "paused"


@pytest.mark.parametrize("change", [Change.PAUSED, Change.DELETED, Change.DEFINED])
def test_an_offer_nobody_claimed_is_taken_back_at_once(change: Change) -> None:
    """Given a pause, deletion or update before the due time, then the offer is void, and what holds at the due time decides."""
    world = offered()
    _change(world, change)
    world.round(at(52))
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.WAITING, "recalled")
    claim = world.claim(world.dispatches[0])
    assert [(s.kind, s.claim) for s in world.round(at(53)).signals] == [(SignalKind.DECLINE, claim.claim)]
    world.round(at(60))
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.SKIPPED, _reason(change))
    assert faults(world.versions, world.runs, world.now) == []


@pytest.mark.parametrize("change", [Change.PAUSED, Change.DELETED, Change.DEFINED])
def test_a_held_run_is_asked_back_and_the_worker_s_word_is_final(change: Change) -> None:
    """Given a held run, then it is asked for; `declined` makes it undecided again, and nothing is skipped before its time."""
    world, claim = held()
    _change(world, change)
    decision = world.round(at(52))
    assert [(s.kind, s.claim, s.reason) for s in decision.signals] == [(SignalKind.RECALL, claim.claim, change)]
    assert (world.record(KEY).state, world.record(KEY).recall) == (RunState.RUNNING, change)
    world.decline(claim, "recalled")
    world.round(at(53))
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.WAITING, "recalled")
    assert world.state.next_wake(world.now) is not None
    world.round(at(60))
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.SKIPPED, _reason(change))
    assert faults(world.versions, world.runs, world.now) == []


def test_a_run_that_begun_all_the_same_keeps_its_version() -> None:
    """Given a recall that the worker read too late, then it finishes as a run of its version."""
    world, claim = held()
    world.send(CommandKind.PAUSE)
    world.round(at(59.99))
    world.finish(claim, Outcome.SUCCESS)
    world.round(at(62))
    assert (world.record(KEY).state, world.record(KEY).job.version) == (RunState.SUCCEEDED, 1)
    assert world.versions[-1].taken == [at(60)]


def test_after_the_due_time_nothing_is_asked_back() -> None:
    """Given a version read after the due time of a held run, then that one has begun: no recall."""
    world, _ = held()
    world.publish(job(payload='"new"'), when=at(55))
    assert world.round(at(60.001)).signals == []
    assert world.record(KEY).recall == ""


def test_a_run_declined_after_its_due_time_is_decided_by_what_held_at_it() -> None:
    """Given a deletion read too late to ask back, and a worker that had no slot, then the run did not begin: it is skipped."""
    world, claim = held()
    world.publish("menu", when=at(55))
    world.round(at(60.5))
    assert world.record(KEY).state == RunState.RUNNING
    world.decline(claim)
    world.round(at(61))
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.SKIPPED, "deleted")
    assert faults(world.versions, world.runs, world.now) == []


def test_a_resume_before_the_due_time_offers_it_again() -> None:
    """Given a pause, a `declined`, and a resume before the due time, then the next attempt goes out, held for its time."""
    world, claim = held()
    world.send(CommandKind.PAUSE)
    world.round(at(52))
    world.decline(claim, "recalled")
    world.round(at(53))
    world.send(CommandKind.RESUME)
    world.round(at(54))
    run = world.record(KEY)
    assert (run.state, run.attempt, run.ahead, run.job.version) == (RunState.DISPATCHED, 2, True, 3)
    assert world.dispatches[-1].ahead
    assert faults(world.versions, world.runs, at(60)) == []


def test_deleted_and_made_anew_before_the_due_time_it_runs() -> None:
    """Given a deletion and a new definition before the due time of an offer, then what holds at the due time has it."""
    world = offered()
    world.publish("menu")
    world.round(at(52))
    world.publish(job(payload='"again"', dispatch_ahead_ms=10_000))
    world.round(at(54))
    run = world.record(KEY)
    assert (run.state, run.job.version, run.job.payload) == (RunState.DISPATCHED, 3, '"again"')


def test_a_new_version_s_earlier_due_times_come_first_and_are_not_skipped_for_it() -> None:
    """Given an offer taken back by a version that is due before it, then that due time runs, and the old one after it."""
    world = offered()
    world.publish(job(schedule=every("5s"), dispatch_ahead_ms=0), when=at(51))
    world.round(at(52))
    world.round(at(55))
    assert (world.due(55).state, world.due(55).job.version) == (RunState.DISPATCHED, 2)
    assert world.record(KEY).reason == "recalled"
    world.round(at(60))
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.SKIPPED, "overlap")
    assert faults(world.versions, world.runs, world.now) == []


def test_a_version_without_lead_waits_with_what_was_taken_back() -> None:
    """Given an update that is not offered ahead, then the run taken back is offered at its due time, not before."""
    world = offered()
    world.publish(job(payload='"late"', dispatch_ahead_ms=0))
    world.round(at(52))
    decision = world.round(at(60))
    assert [(d.ahead, d.job.payload) for d in decision.dispatches] == [(False, '"late"')]
    assert decision.not_before == {KEY: at(60)}


@pytest.mark.parametrize("trouble", ["declined", "unanswered", "fenced", "lost"])
def test_whatever_becomes_of_an_offer_the_next_one_is_held_too(trouble: str) -> None:
    """Given an offer ahead of time that comes to nothing before the due time, then no later attempt may begin early."""
    world = offered(schedule=every("1h"), dispatch_ahead_ms=60_000)
    world.round(at(3_540))
    key = world.dispatches[-1].run
    if trouble == "declined":
        world.decline(world.started(key))
    elif trouble == "fenced":
        world.round(dead=[worker("w1")])
        world.claim()
    elif trouble == "lost":
        world.started(key)
        world.fence(worker("w1"))
    world.round(at(3_541))
    world.round(at(3_546))
    run = world.record(key)
    assert (run.state, run.attempt >= 2, run.ahead) == (RunState.DISPATCHED, True, True)
    assert all(each.ahead for each in world.dispatches if each.run == key)


def test_a_heartbeat_is_reminded_of_a_recall_until_it_begins() -> None:
    """Given a recall that a worker did not read, then each heartbeat brings it again, unless the handler runs."""
    world, claim = held()
    world.send(CommandKind.PAUSE)
    world.round(at(52))
    again = world.round(heartbeats=[holding(worker("w1"), (claim, HeldState.HELD))])
    assert [s.kind for s in again.signals] == [SignalKind.RECALL]
    assert world.round(heartbeats=[holding(worker("w1"), (claim, HeldState.RUNNING))]).signals == []


def test_a_torn_version_still_asks_back() -> None:
    """Given a pause whose transaction kept the version and lost the recall, then the next leader asks back all the same."""
    for keep in range(4):
        world, claim = held()
        world.send(CommandKind.PAUSE)
        decision = world.crash(at(52), keep=keep)
        assert [type(record).__name__ for record in (*decision.versions, *decision.ledger)] == ["JobVersion", "Run", "Positions"]
        again = world.round()
        assert len(world.versions) == 2
        assert world.record(KEY).recall == Change.PAUSED
        beat = world.round(heartbeats=[holding(worker("w1"), (claim, HeldState.HELD))])
        assert {s.kind for s in (*again.signals, *beat.signals)} == {SignalKind.RECALL}


def _change(world: World, change: Change) -> None:
    if change == Change.PAUSED:
        world.send(CommandKind.PAUSE, when=at(51))
    elif change == Change.DELETED:
        world.send(CommandKind.DELETE, when=at(51))
    else:
        world.publish(job(schedule=every("1h"), dispatch_ahead_ms=10_000), when=at(51))


def _reason(change: Change) -> str:
    return {Change.PAUSED: "paused", Change.DELETED: "deleted", Change.DEFINED: "superseded"}[change]
