"""W1, W6, W7, W8 on the real broker, through a wrapper of the ports where a real broker cannot be brought to it."""

from __future__ import annotations

import threading
import time
from datetime import datetime

import pytest

from dueline.scheduler.core.ports import Kafka
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, Outcome, Signal, SignalKind, Step, WorkerState
from dueline.workers.claim import LAPSED
from dueline.workers.context import Context
from dueline.workers.errors import AttemptClosed
from tests.integration.workers.script import RunningWorker, Script, now_ms, running
from tests.integration.workers.watched import Watched


def test_ids_are_initialised_once_and_before_the_first_heartbeat(cluster: Kafka, space: Namespace, script: Script) -> None:
    watched = Watched(cluster)
    with running(watched, space, {"menu": lambda ctx: None}):
        first = script.ready("w1")
        watched.pair.next = "after"
        assert script.run_through(script.offer()).outcome == Outcome.SUCCESS
        second = script.heartbeat(lambda one: one.incarnation != first.incarnation and bool(one.partitions))
        script.heartbeat(lambda one: one.incarnation == first.incarnation and one.state == WorkerState.STOPPED)
        script.next_heartbeats(second.incarnation, 2)
    inits = [id for what, id in watched.journal if what == "init"]
    assert sorted(inits) == sorted([*space.worker_ids(first.incarnation), *space.worker_ids(second.incarnation)])
    for incarnation in (first.incarnation, second.incarnation):
        beat = watched.journal.index(("heartbeat", incarnation))
        assert all(watched.journal.index(("init", id)) < beat for id in space.worker_ids(incarnation))


@pytest.mark.parametrize("trouble", ["after", "before"])
def test_a_doubtful_step_is_read_back_before_it_is_written_again(
    cluster: Kafka, space: Namespace, script: Script, trouble: str
) -> None:
    watched, effects = Watched(cluster), list[str]()
    second_step, go_on = threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        ctx.step("one", effects.append, "one")
        second_step.set()
        assert go_on.wait(20)
        ctx.step("two", effects.append, "two")

    with running(watched, space, {"menu": menu}):
        old = script.ready("w1")
        watched.pair.next = trouble
        claim = script.claimed(script.offer())
        script.grant(claim)
        assert second_step.wait(10)
        # the fresh incarnation takes new work beside the old one, which still holds its run
        fresh = script.heartbeat(lambda one: one.incarnation != old.incarnation and bool(one.partitions))
        drains = script.heartbeat(lambda one: one.incarnation == old.incarnation and one.state == WorkerState.DRAINING)
        assert [held.claim for held in drains.claims] == [claim.claim]
        assert drains.partitions == []
        assert script.claimed(script.offer("other")).incarnation == fresh.incarnation
        go_on.set()
        end = script.finished(claim)
        assert (end.outcome, end.incarnation, end.steps_done) == (Outcome.SUCCESS, old.incarnation, 2)
        script.heartbeat(lambda one: one.incarnation == old.incarnation and one.state == WorkerState.STOPPED)
    assert effects == ["one", "two"]
    assert [step.name for step in script.all(Step)] == ["one", "two"]


@pytest.mark.parametrize("trouble", ["after", "before"])
def test_a_doubtful_claim_is_read_back(cluster: Kafka, space: Namespace, script: Script, trouble: str) -> None:
    watched = Watched(cluster)
    with running(watched, space, {"menu": lambda ctx: None}):
        old = script.ready("w1")
        watched.claim.next = trouble
        dispatch = script.offer()
        claim = script.claimed(dispatch)
        assert (claim.incarnation == old.incarnation) == (trouble == "after")
        script.grant(claim)
        assert script.finished(claim).outcome == Outcome.SUCCESS
        script.heartbeat(lambda one: one.incarnation == old.incarnation and one.state == WorkerState.LOST)
        assert script.run_through(script.offer("next")).outcome == Outcome.SUCCESS
    assert len(script.all(AttemptEvent, lambda one: one.run == dispatch.run and one.kind == EventKind.CLAIMED)) == 1


def test_an_incarnation_without_a_survivor_is_over_and_comes_back(cluster: Kafka, space: Namespace, script: Script) -> None:
    watched, closed = Watched(cluster), threading.Event()

    def menu(ctx: Context) -> None:
        watched.pair.next = "before"
        ctx.step("one", lambda: None)
        watched.pair.next = "before"
        try:
            ctx.step("two", lambda: None)
        except AttemptClosed:
            closed.set()
            raise

    with running(watched, space, {"menu": menu, "plain": lambda ctx: "done"}):
        old = script.ready("w1")
        claim = script.claimed(script.offer())
        script.grant(claim)
        assert closed.wait(20)
        fresh = script.heartbeat(lambda one: one.incarnation != old.incarnation and bool(one.partitions))
        end = script.run_through(script.offer("next", handler="plain"))
        assert (end.outcome, end.incarnation) == (Outcome.SUCCESS, fresh.incarnation)
    assert script.all(AttemptEvent, lambda one: one.claim == claim.claim and one.kind == EventKind.FINISHED
                      and one.incarnation == old.incarnation) == []  # fmt: skip
    [last] = script.all(Heartbeat, lambda one: one.incarnation == old.incarnation and one.state == WorkerState.LOST)
    assert [one.claim for one in last.claims] == [claim.claim]  # so that the leader fences it without waiting for silence


def test_once_a_step_stands_that_its_last_producer_wrote_no_other_one_begins(
    cluster: Kafka, space: Namespace, script: Script
) -> None:
    watched, third, ended = Watched(cluster), threading.Event(), threading.Event()
    watched.pair.on_over = lambda: third.wait(0.5)  # a handler that goes on is quicker

    def menu(ctx: Context) -> None:
        try:
            for name in ("one", "two"):
                watched.pair.next = "after"
                ctx.step(name, lambda: None)
            ctx.step("three", third.set)
        finally:
            ended.set()

    with running(watched, space, {"menu": menu}):
        old = script.ready("w1")
        script.grant(script.claimed(script.offer()))
        script.heartbeat(lambda one: one.incarnation == old.incarnation and one.state == WorkerState.LOST)
        assert ended.wait(20)
    assert not third.is_set()
    assert [step.name for step in script.all(Step)] == ["one", "two"]


@pytest.mark.parametrize("how", ["producers", "signal"])
def test_a_fenced_incarnation_drops_all_and_comes_back_as_another(
    cluster: Kafka, space: Namespace, script: Script, how: str
) -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        begun.set()
        assert go_on.wait(20)
        try:
            ctx.step("after the fence", lambda: None)
        except AttemptClosed:
            closed.set()
            raise

    with running(cluster, space, {"menu": menu, "plain": lambda ctx: None}) as worker:
        old = script.ready("w1")
        claim = script.claimed(script.offer())
        script.grant(claim)
        assert begun.wait(10)
        if how == "producers":
            for id in old.transactional_ids:  # as the leader fences a worker it takes for dead
                cluster.writers().open([id]).close()
        else:
            script.send(Signal(kind=SignalKind.FENCED, incarnation=old.incarnation, reason="silent"), old.home)
            script.heartbeat(lambda one: one.incarnation != old.incarnation)
        go_on.set()
        assert closed.wait(20)
        fresh = script.heartbeat(lambda one: one.incarnation != old.incarnation and bool(one.partitions))
        assert fresh.claims == []
        end = script.run_through(script.offer("next", handler="plain"))
        assert (end.outcome, end.incarnation) == (Outcome.SUCCESS, fresh.incarnation)
        script.next_heartbeats(fresh.incarnation, 3)
        last = script.all(Heartbeat)[-1]
        assert (last.incarnation, last.slots) == (fresh.incarnation, worker.settings.slots)
    assert script.all(Step) == []
    assert script.all(AttemptEvent, lambda one: (one.incarnation, one.claim, one.kind)
                      == (old.incarnation, claim.claim, EventKind.FINISHED)) == []  # fmt: skip


def test_without_a_lease_no_handler_and_no_step_begins(cluster: Kafka, space: Namespace, script: Script) -> None:
    watched, step_begun = Watched(cluster), threading.Event()
    begun, go_on, held_begun = threading.Event(), threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        begun.set()
        assert go_on.wait(20)
        ctx.step("one", step_begun.set)

    def lease_over(worker: RunningWorker, since: float) -> bool:
        return time.monotonic() > since + worker.settings.lease_s + 0.3

    with running(watched, space, {"menu": menu, "held": lambda ctx: held_begun.set()}) as worker:
        old = script.ready("w1")
        claim, held = script.claimed(script.offer()), script.claimed(
            script.offer("held", handler="held", due_ms=now_ms() + 3000, ahead=True)
        )
        script.grant(claim)
        script.grant(held)
        assert begun.wait(10)
        cut = time.monotonic()
        watched.hold_answers = True
        script.wait_until(lambda: lease_over(worker, cut), "the end of the lease")
        go_on.set()
        due = held_due(script, held)
        script.wait_until(lambda: now_ms() > due + 300, "the due time of the held run")
        assert not step_begun.is_set()
        assert not held_begun.is_set()
        watched.release()  # heartbeats of long ago are acknowledged: they were sent before, so they give nothing
        later = time.monotonic()
        script.wait_until(lambda: time.monotonic() > later + 0.3, "a moment in which they could begin")
        assert not step_begun.is_set()
        assert not held_begun.is_set()
        watched.hold_answers = False
        watched.release()  # so that the worker sends the next ones
        # Another worker may have them by now, as far as this one knows: what waited for the lease is given back.
        assert script.finished(claim).outcome == Outcome.INTERRUPTED
        assert script.declined(held).reason == LAPSED
        assert not step_begun.is_set()
        assert not held_begun.is_set()
        assert script.all(Heartbeat)[-1].incarnation == old.incarnation  # not refused, so it went on


def held_due(script: Script, claim: AttemptEvent) -> int:
    """The due time stands in the run id, to the millisecond."""
    return int(datetime.fromisoformat(claim.run.partition("@")[2]).timestamp() * 1000)
