"""W9 on the real broker: a later attempt goes on after the last recorded step, and never starts over silently."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from dueline.scheduler.core.ports import Kafka
from dueline.schemas.run import StepRange
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, HeldState, Outcome, Step, WorkerState
from dueline.workers.context import Context
from tests.broker import TestBroker
from tests.integration.workers.script import Script, running


def span(cluster: Kafka, space: Namespace, claim: AttemptEvent) -> StepRange:
    """As the leader notes it once the attempt has ended."""
    end = cluster.admin().end_offset((space.steps, claim.home))
    return StepRange(attempt=claim.attempt, home=claim.home, start=claim.steps_from, end=end)


@contextmanager
def open_transaction(broker: TestBroker, topic: str, partition: int) -> Iterator[Producer]:
    """Another producer's record stands in the partition, in a transaction that is not ended."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"other.{topic}", "log_level": 0,
         "transaction.timeout.ms": 60_000}
    )  # fmt: skip
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"other", key=b"other", partition=partition)
    assert producer.flush(10) == 0
    yield producer


def test_the_third_attempt_skips_what_two_did_though_a_strangers_transaction_stands_before(
    broker: TestBroker, cluster: Kafka, space: Namespace, script: Script
) -> None:
    calls: list[str] = []

    def work(name: str) -> str:
        calls.append(name)
        return f"{name} by {len(calls)}"

    def menu(ctx: Context) -> list[str]:
        done = [ctx.step(name, work, name) for name in "ab"]
        if ctx.attempt < 3:
            raise RuntimeError("as the test wants")
        return [*done, ctx.step("c", work, "c")]

    with running(cluster, space, {"menu": menu}):
        home = script.ready("w1").home
        with open_transaction(broker, space.steps, home) as stranger:
            first = script.offer()
            claim = script.claimed(first)
            script.grant(claim)
            failed = script.finished(claim)
            assert (failed.outcome, failed.steps_done) == (Outcome.FAILURE, 2)
            assert "as the test wants" in failed.error
            earlier = [span(cluster, space, claim)]
            second = script.claimed(script.offer(due_ms=first.due_ms, attempt=2, earlier=earlier))
            script.grant(second)
            # It waits: what attempt 1 wrote stands behind the open transaction.
            beats = script.next_heartbeats(second.incarnation, 8)
            assert [(held.attempt, held.state) for held in beats[-1].claims] == [(2, HeldState.HELD)]
            assert calls == ["a", "b"]
            stranger.abort_transaction(10)
        end = script.finished(second)
        assert (end.outcome, end.steps_done, end.steps_skipped) == (Outcome.FAILURE, 0, 2)
        earlier.append(span(cluster, space, second))
        third = script.claimed(script.offer(due_ms=first.due_ms, attempt=3, earlier=earlier))
        script.grant(third)
        end = script.finished(third)
        assert (end.outcome, end.steps_done, end.steps_skipped) == (Outcome.SUCCESS, 1, 2)
        assert json.loads(end.result) == ["a by 1", "b by 2", "c by 3"]
    assert [step.name for step in script.all(Step)] == ["a", "b", "c"]


def test_another_worker_resumes_what_one_recorded(cluster: Kafka, space: Namespace, script: Script) -> None:
    def first(ctx: Context) -> None:
        ctx.step("a", lambda: b"\x00\xff")
        raise RuntimeError("as the test wants")

    def second(ctx: Context) -> object:
        return [ctx.step("a", lambda: b"never").hex(), ctx.step("b", lambda: 1)]

    with running(cluster, space, {"menu": first}, worker="w1"):
        script.ready("w1")
        dispatch = script.offer()
        claim = script.claimed(dispatch)
        script.grant(claim)
        script.finished(claim)
    with running(cluster, space, {"menu": second}, worker="w2"):
        script.ready("w2")
        again = script.offer(due_ms=dispatch.due_ms, attempt=2, earlier=[span(cluster, space, claim)])
        end = script.run_through(again)
        assert (end.worker, end.outcome, json.loads(end.result)) == ("w2", Outcome.SUCCESS, ["00ff", 1])


def test_steps_that_are_not_in_the_log_any_more_fail_the_run_for_good(
    broker: TestBroker, cluster: Kafka, space: Namespace, script: Script
) -> None:
    calls: list[int] = []

    def menu(ctx: Context) -> None:
        ctx.step("a", calls.append, ctx.attempt)
        raise RuntimeError("as the test wants")

    with running(cluster, space, {"menu": menu}):
        script.ready("w1")
        first = script.offer()
        claim = script.claimed(first)
        script.grant(claim)
        script.finished(claim)
        earlier = span(cluster, space, claim)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for future in admin.delete_records([TopicPartition(space.steps, claim.home, earlier.end)]).values():
            future.result(10)
        end = script.run_through(script.offer(due_ms=first.due_ms, attempt=2, earlier=[earlier]))
        assert (end.outcome, end.reason, end.retryable) == (Outcome.FAILURE, "steps_expired", False)
        assert "retention.ms" in end.error
    assert calls == [1]
    assert len(script.all(AttemptEvent, lambda one: one.kind == EventKind.FINISHED)) == 2


def test_a_worker_that_lives_ends_once_what_stands_before_all_that_it_wrote(
    broker: TestBroker, cluster: Kafka, space: Namespace, script: Script
) -> None:
    """Given a stranger's open transaction before a step, which looks like one of its own that a killed broker forgot: both of its
    pair commit something behind it, once, while it has nothing else to write. It stops in order when that can be read."""
    with running(cluster, space, {"menu": lambda ctx: ctx.step("a", str)}) as worker:
        beat = script.ready("w1")
        place, admin = (space.steps, beat.home), cluster.admin()
        with open_transaction(broker, *place) as stranger:
            script.run_through(script.offer())
            before = admin.end_offset(place)
            script.wait_until(lambda: admin.end_offset(place) >= before + 4, "two records and their markers")
            script.next_heartbeats(beat.incarnation, 15)  # longer than it took
            stranger.abort_transaction(10)
        read = admin.read_range(place, before, admin.end_offset(place), timeout_s=10.0)
        assert [(one.key, one.value) for one in read] == [(b"forgotten", None)] * 2
        worker.drain()
    assert script.heartbeat(lambda one: one.state in (WorkerState.STOPPED, WorkerState.LOST)).state == WorkerState.STOPPED


def test_a_worker_that_cannot_see_all_that_it_wrote_when_it_stops_asks_to_be_fenced(
    broker: TestBroker, cluster: Kafka, space: Namespace, script: Script
) -> None:
    """Given a stranger's transaction before what it wrote, which is not ended by what its pair commits when it stops."""
    with running(cluster, space, {"menu": lambda ctx: ctx.step("a", str)}) as worker:
        beat = script.ready("w1")
        place, admin = (space.steps, beat.home), cluster.admin()
        with open_transaction(broker, *place) as stranger:
            script.run_through(script.offer())
            before = admin.end_offset(place)
            worker.stop.set()
            last = script.heartbeat(lambda one: one.incarnation == beat.incarnation and one.state == WorkerState.LOST)
            assert last.claims == []
            stranger.abort_transaction(10)
    read = admin.read_range(place, before, admin.end_offset(place), timeout_s=10.0)
    assert [(one.key, one.value) for one in read] == [(b"forgotten", None)] * 2
