"""W1–W5 on the real broker: offers are claimed and answered, and nothing runs without its grant."""

from __future__ import annotations

import asyncio
import json
import threading
import time

from dueline.scheduler.core.ports import Kafka
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, HeldState, Outcome, Signal, SignalKind, Step, WorkerState
from dueline.workers.context import AsyncContext, Context
from tests.integration.workers.script import Script, now_ms, running


def test_an_offer_is_claimed_granted_run_and_finished(cluster: Kafka, space: Namespace, script: Script) -> None:
    def menu(ctx: Context) -> object:
        return {"built": ctx.step("build", lambda: ("soup", 2)), "payload": ctx.payload}

    with running(cluster, space, {"menu": menu}):
        first = script.ready("w1")
        assert first.state == WorkerState.RUNNING
        assert list(first.transactional_ids) == list(space.worker_ids(first.incarnation))
        dispatch = script.offer(payload='{"day":1}')
        claim = script.claimed(dispatch)
        assert (claim.run, claim.attempt, claim.worker) == (dispatch.run, 1, "w1")
        assert claim.steps_from >= 0
        script.grant(claim)
        end = script.finished(claim)
        assert (end.outcome, json.loads(end.result)) == (Outcome.SUCCESS, {"built": ["soup", 2], "payload": {"day": 1}})
        assert dispatch.due_ms <= end.started_ms <= end.finished_ms
        step = script.wait(Step)
        assert (step.key, step.encoding, step.result) == (f"{dispatch.run}/build", "json", b'["soup",2]')
        assert (end.steps_done, end.steps_skipped) == (1, 0)


def test_nothing_runs_without_its_grant(cluster: Kafka, space: Namespace, script: Script) -> None:
    ran = threading.Event()
    with running(cluster, space, {"menu": lambda ctx: ran.set()}):
        script.ready("w1")
        claim = script.claimed(script.offer())
        beats = script.next_heartbeats(claim.incarnation, 6)
        assert [held.state for held in beats[-1].claims] == [HeldState.REQUESTED]
        assert not ran.is_set()
        script.grant(claim)
        assert script.finished(claim).outcome == Outcome.SUCCESS
        assert ran.is_set()
        script.heartbeat(lambda one: one.seq > beats[-1].seq and not one.claims)


def test_a_declined_claim_is_dropped_and_never_runs(cluster: Kafka, space: Namespace, script: Script) -> None:
    ran = threading.Event()
    with running(cluster, space, {"menu": lambda ctx: ran.set()}):
        script.ready("w1")
        claim = script.claimed(script.offer())
        script.heartbeat(lambda one: bool(one.claims))
        script.signal(SignalKind.DECLINE, claim)
        script.wait_until(lambda: not script.next_heartbeats(claim.incarnation, 1)[-1].claims, "a heartbeat without it")
        script.grant(claim)  # a grant that was on its way: declined long ago
        script.next_heartbeats(claim.incarnation, 3)
        assert not ran.is_set()


def test_a_grant_for_an_unknown_claim_is_declined_once(cluster: Kafka, space: Namespace, script: Script) -> None:
    with running(cluster, space, {"menu": lambda ctx: None}):
        beat = script.ready("w1")
        stranger = Signal(kind=SignalKind.GRANT, incarnation=beat.incarnation, run="daily@!x", attempt=3, claim=99)
        script.send(stranger, beat.home)
        script.send(stranger, beat.home)
        event = script.wait(AttemptEvent, lambda one: one.claim == 99)
        assert (event.kind, event.run, event.attempt, event.reason) == ("declined", "daily@!x", 3, "unknown claim")
        script.next_heartbeats(beat.incarnation, 3)
        assert len(script.all(AttemptEvent, lambda one: one.claim == 99)) == 1
        script.send(Signal(kind=SignalKind.GRANT, incarnation="w1.0badcafe", run="daily@!x", attempt=3, claim=7), beat.home)
        script.next_heartbeats(beat.incarnation, 3)
        assert script.all(AttemptEvent, lambda one: one.claim == 7) == []


def test_a_held_run_starts_at_its_due_time(cluster: Kafka, space: Namespace, script: Script) -> None:
    begun: list[int] = []
    with running(cluster, space, {"menu": lambda ctx: begun.append(now_ms())}):
        script.ready("w1")
        dispatch = script.offer(due_ms=now_ms() + 1500, ahead=True)
        claim = script.claimed(dispatch)
        script.grant(claim)
        script.heartbeat(lambda one: [held.state for held in one.claims] == [HeldState.HELD])
        end = script.finished(claim)
        assert 0 <= end.started_ms - dispatch.due_ms < 50
        assert 0 <= begun[0] - dispatch.due_ms < 100  # by the wall clock, which is the broker's here


def test_a_held_run_is_recalled_and_a_second_one_cancelled(cluster: Kafka, space: Namespace, script: Script) -> None:
    ran = threading.Event()
    with running(cluster, space, {"menu": lambda ctx: ran.set()}):
        script.ready("w1")
        for kind, reason in ((SignalKind.RECALL, "recalled"), (SignalKind.CANCEL, "cancelled")):
            claim = script.claimed(script.offer(f"job-{kind}", due_ms=now_ms() + 60_000, ahead=True))
            script.grant(claim)
            script.heartbeat(lambda one, wanted=claim.claim: any(  # type: ignore[misc]
                held.claim == wanted and held.state == HeldState.HELD for held in one.claims))  # fmt: skip
            script.signal(kind, claim)
            assert script.declined(claim).reason == reason
        assert not ran.is_set()


def test_cancelling_a_running_run_stops_it_at_its_next_step(cluster: Kafka, space: Namespace, script: Script) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        ctx.step("one", wait_for, go_on, begun)
        ctx.step("two", lambda: None)

    async def patient(ctx: AsyncContext) -> None:
        await ctx.step("forever", wait_for_ever, begun)

    with running(cluster, space, {"menu": menu, "patient": patient}):
        script.ready("w1")
        claim = script.claimed(script.offer())
        script.grant(claim)
        assert begun.wait(10)
        script.signal(SignalKind.RECALL, claim)  # begun: answered by its end alone
        script.signal(SignalKind.CANCEL, claim, reason="by hand")
        script.next_heartbeats(claim.incarnation, 2)
        go_on.set()
        end = script.finished(claim)
        assert (end.outcome, end.steps_done) == (Outcome.CANCELLED, 1)
        assert script.all(AttemptEvent, lambda one: one.kind == EventKind.DECLINED) == []
        begun.clear()
        claim = script.claimed(script.offer("second", handler="patient"))
        script.grant(claim)
        assert begun.wait(10)
        script.signal(SignalKind.CANCEL, claim, reason="by hand")
        assert script.finished(claim).outcome == Outcome.CANCELLED


def wait_for(go_on: threading.Event, begun: threading.Event) -> None:
    begun.set()
    assert go_on.wait(20)


async def wait_for_ever(begun: threading.Event) -> None:
    begun.set()
    await asyncio.Event().wait()


def test_what_cannot_run_is_claimed_and_declined(cluster: Kafka, space: Namespace, script: Script) -> None:
    with running(cluster, space, {"menu": lambda ctx: None}):
        script.ready("w1")
        stranger = script.offer(handler="nobody")
        claim = script.claimed(stranger)
        assert script.declined(claim).reason == "no handler 'nobody'"
        script.write_raw(space.dispatch("menu"), 0, "daily@!bad", b"\xc3\x01rubbish", (("term", b"7"),))
        bad = script.wait(AttemptEvent, lambda one: one.run == "daily@!bad")
        assert (bad.kind, bad.dispatch_term) == ("declined", 7)
        assert "undecodable" in bad.reason
        assert script.run_through(script.offer("after")).outcome == Outcome.SUCCESS


def test_a_run_that_finds_no_slot_for_a_second_is_declined(cluster: Kafka, space: Namespace, script: Script) -> None:
    go_on = threading.Event()
    with running(cluster, space, {"menu": lambda ctx: (go_on.wait(20), None)[1]}, slots=1):
        script.ready("w1")
        first = script.claimed(script.offer("first"))
        script.grant(first)
        script.heartbeat(lambda one: any(held.state == HeldState.RUNNING for held in one.claims))
        second = script.claimed(script.offer("second"))
        granted = time.monotonic()
        script.grant(second)
        assert script.declined(second).reason == "no slot"
        assert time.monotonic() - granted > 0.9
        go_on.set()
        assert script.finished(first).outcome == Outcome.SUCCESS


def test_a_timeout_ends_the_attempt_and_its_slot_stays_taken(cluster: Kafka, space: Namespace, script: Script) -> None:
    go_on, closed = threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        go_on.wait(20)
        try:
            ctx.step("late", lambda: None)
        except BaseException:
            closed.set()
            raise

    with running(cluster, space, {"menu": menu}, slots=1):
        script.ready("w1")
        claim = script.claimed(script.offer(timeout_ms=300))
        script.grant(claim)
        end = script.finished(claim)
        assert (end.outcome, end.reason, end.retryable) == (Outcome.FAILURE, "timeout", True)
        script.heartbeat(lambda one: one.slots == 0 and not one.claims)
        go_on.set()
        script.heartbeat(lambda one: one.slots == 1 and one.seq > 3 and not one.claims)
        assert closed.is_set()
        script.next_heartbeats(claim.incarnation, 2)
        assert script.all(Step) == []
        assert len(script.all(AttemptEvent, lambda one: one.kind == EventKind.FINISHED)) == 1
