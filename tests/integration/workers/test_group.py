"""W2 and W10 on the real broker: offers and the group, and the end of a worker."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from dueline.scheduler.core.ports import Kafka
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, HeldState, Outcome, Step, WorkerState
from dueline.workers import spare
from dueline.workers.context import Context
from tests.integration.workers.script import Script, now_ms, running
from tests.integration.workers.watched import Watched


def test_offers_buffered_when_the_group_moves_on_are_claimed_once_by_the_owner(
    cluster: Kafka, space: Namespace, script: Script
) -> None:
    """The first claim of w1 is held back until w2 has taken a partition over: the broker refuses it, and w1 discards what
    it has read. Each offer is claimed by the partition's owner, none is lost, none claimed twice."""
    watched = Watched(cluster)
    with running(watched, space, {"menu": lambda ctx: None}, worker="w1"):
        script.heartbeat(lambda one: one.worker == "w1" and one.partitions == [0, 1])
        watched.claim.gate.clear()
        offers = [script.offer(f"job-{number}", partition=number % 2) for number in range(2)]
        assert watched.claim.waiting.wait(10)
        offers += [script.offer(f"job-{number}", partition=number % 2) for number in range(2, 8)]
        with running(cluster, space, {"menu": lambda ctx: None}, worker="w2"):
            moved = script.ready("w2").partitions
            assert len(moved) == 1
            script.heartbeat(lambda one: one.worker == "w1" and len(one.partitions) == 1)
            watched.claim.gate.set()
            claims = [script.claimed(offer) for offer in offers]
            offers += [script.offer(f"job-{number}", partition=number % 2) for number in range(8, 10)]
            claims += [script.claimed(offer) for offer in offers[8:]]
            for claim in claims:
                script.grant(claim)
                assert script.finished(claim).outcome == Outcome.SUCCESS
            owners = {number: "w2" if number in moved else "w1" for number in (0, 1)}
            assert [claim.worker for claim in claims] == [owners[number % 2] for number in range(10)]
    assert len(script.all(AttemptEvent, lambda one: one.kind == EventKind.CLAIMED)) == 10


def test_an_offer_made_before_any_worker_came_is_claimed(cluster: Kafka, space: Namespace, script: Script) -> None:
    early = script.offer()
    with running(cluster, space, {"menu": lambda ctx: None}):
        assert script.run_through(early).outcome == Outcome.SUCCESS


def test_a_claimed_offer_is_not_read_again_by_the_next_worker(cluster: Kafka, space: Namespace, script: Script) -> None:
    with running(cluster, space, {"menu": lambda ctx: None}, worker="w1"):
        script.ready("w1")
        first = script.offer()
        assert script.run_through(first).outcome == Outcome.SUCCESS
    with running(cluster, space, {"menu": lambda ctx: None}, worker="w2"):
        script.ready("w2")
        assert script.run_through(script.offer("second")).outcome == Outcome.SUCCESS
    assert len(script.all(AttemptEvent, lambda one: one.run == first.run and one.kind == EventKind.CLAIMED)) == 1


def test_running_work_survives_a_rebalance(cluster: Kafka, space: Namespace, script: Script) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        ctx.step("one", begun.set)
        assert go_on.wait(20)
        ctx.step("two", lambda: None)

    with running(cluster, space, {"menu": menu}, worker="w1"):
        script.ready("w1")
        claims = [script.claimed(script.offer(f"job-{number}", partition=number)) for number in (0, 1)]
        for claim in claims:
            script.grant(claim)
        assert begun.wait(10)
        with running(cluster, space, {"menu": menu}, worker="w2"):
            script.ready("w2")
            script.heartbeat(lambda one: one.worker == "w1" and len(one.partitions) == 1)
            go_on.set()
            assert [script.finished(claim).outcome for claim in claims] == [Outcome.SUCCESS] * 2
    assert {claim.worker for claim in claims} == {"w1"}


def test_a_drain_gives_back_what_has_not_begun_and_waits_for_what_has(
    cluster: Kafka, space: Namespace, script: Script
) -> None:
    begun, stuck, go_on = threading.Event(), threading.Event(), threading.Event()

    def short(ctx: Context) -> str:
        begun.set()
        assert go_on.wait(20)
        return ctx.step("last", lambda: "done")

    def endless(ctx: Context) -> None:
        ctx.step("one", lambda: None)
        begun.set()
        stuck.wait(20)
        ctx.step("never", lambda: None)

    handlers = {"menu": short, "endless": endless}
    with running(cluster, space, handlers, worker="w1", drain_timeout_s=1.5) as worker:
        script.ready("w1")
        running_claim = script.claimed(script.offer("short"))
        script.grant(running_claim)
        assert begun.wait(10)
        begun.clear()
        endless_claim = script.claimed(script.offer("endless", handler="endless"))
        script.grant(endless_claim)
        assert begun.wait(10)
        held = script.claimed(script.offer("held", due_ms=now_ms() + 60_000, ahead=True))
        script.grant(held)
        requested = script.claimed(script.offer("requested"))
        script.heartbeat(lambda one: sorted(claim.state for claim in one.claims)
                         == [HeldState.HELD, HeldState.REQUESTED, HeldState.RUNNING, HeldState.RUNNING])  # fmt: skip
        started = time.monotonic()
        worker.stop.set()
        assert [script.declined(claim).reason for claim in (held, requested)] == ["draining"] * 2
        late = script.offer("late")
        go_on.set()
        assert script.finished(running_claim).outcome == Outcome.SUCCESS
        end = script.finished(endless_claim)
        assert (end.outcome, end.steps_done) == (Outcome.INTERRUPTED, 1)
        assert 1.4 < time.monotonic() - started < 6
        worker.thread.join(10)
        assert not worker.thread.is_alive()
        last = script.heartbeat(lambda one: one.state == WorkerState.STOPPED)
        assert last.claims == []
        states = [one.state for one in script.all(Heartbeat, lambda one: one.incarnation == last.incarnation)]
        order: list[str] = [WorkerState.RUNNING, WorkerState.DRAINING, WorkerState.STOPPED]
        assert states == sorted(states, key=order.index)
        assert WorkerState.DRAINING in states
        stuck.set()
        assert script.all(AttemptEvent, lambda one: one.dispatch_seq == late.seq) == []
    assert {step.name for step in script.all(Step)} == {"one", "last"}


def test_a_worker_beyond_the_partitions_says_so(
    cluster: Kafka, space: Namespace, script: Script, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spare, "PATIENCE_S", 1.0)
    caplog.set_level(logging.INFO, logger="dueline.workers.spare")
    handlers = {"menu": lambda ctx: None}
    with running(cluster, space, handlers, worker="w1"), running(cluster, space, handlers, worker="w2"):
        for name in ("w1", "w2"):
            script.heartbeat(lambda one, name=name: one.worker == name and len(one.partitions) == 1)  # type: ignore[misc]
        with running(cluster, space, handlers, worker="w3"):
            script.wait_until(lambda: "owns no partition" in caplog.text, "the warning")
            assert "2 partitions" in caplog.text
            assert script.all(Heartbeat, lambda one: one.worker == "w3" and bool(one.partitions)) == []
