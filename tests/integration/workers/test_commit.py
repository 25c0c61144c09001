"""W5 on the real broker: steps, what they produce, and finishes go out together, and a step waits for its commit."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

from dueline.scheduler.core.ports import EARLIEST, Received
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.schemas.topics import Cleanup, Namespace, TopicSpec
from dueline.schemas.work import Outcome, Step
from dueline.workers.context import AsyncContext, Context
from tests.integration.workers.script import Script, running
from tests.integration.workers.watched import Watched


def make_topic(cluster: KafkaCluster, name: str) -> str:
    cluster.kafka_admin().create(
        TopicSpec(name=name, partitions=1, cleanup=Cleanup.DELETE, config={}, why="the test's", replication_factor=1)
    )
    return name


def committed(cluster: KafkaCluster, topic: str) -> list[Received]:
    end = cluster.admin().end_offset((topic, 0))
    return list(cluster.admin().read_range((topic, 0), 0, end, timeout_s=10))


def test_a_step_returns_only_when_its_commit_was_acknowledged(
    cluster: KafkaCluster, space: Namespace, script: Script
) -> None:
    watched, called, passed = Watched(cluster), threading.Event(), threading.Event()

    def menu(ctx: Context) -> None:
        ctx.step("one", called.set)
        passed.set()

    with running(watched, space, {"menu": menu}):
        script.ready("w1")
        watched.pair.gate.clear()
        claim = script.claimed(script.offer())
        script.grant(claim)
        assert called.wait(10)
        assert watched.pair.waiting.wait(10)
        script.next_heartbeats(claim.incarnation, 2)
        assert not passed.is_set()
        watched.pair.gate.set()
        assert passed.wait(10)
        assert script.finished(claim).outcome == Outcome.SUCCESS


def test_steps_of_all_slots_share_transactions(cluster: KafkaCluster, space: Namespace, script: Script) -> None:
    watched = Watched(cluster)

    async def menu(ctx: AsyncContext) -> int:
        return len(await ctx.each("send", range(25), lambda item: item))

    with running(watched, space, {"menu": menu}, slots=8):
        script.ready("w1")
        claims = [script.claimed(script.offer(f"job-{number}")) for number in range(8)]
        for claim in claims:
            script.grant(claim)
        assert [script.finished(claim).result for claim in claims] == ["25"] * 8
    assert len({step.key for step in script.all(Step)}) == 8 * 25
    sizes = [sum(map(len, groups)) for groups in watched.pair.writes]
    assert sum(sizes) == 8 * 25 + 8
    assert len(sizes) < 8 * 25 / 2


def test_what_a_step_produces_goes_out_with_its_completion_or_not_at_all(
    cluster: KafkaCluster, space: Namespace, script: Script, namespace: str
) -> None:
    topic, watched = make_topic(cluster, f"{namespace}-mails"), Watched(cluster)

    def send(ctx: Context, fail: bool) -> None:
        ctx.produce(topic, {"fail": fail}, key="k", headers={"h": "v"})
        if fail:
            raise RuntimeError("as the test wants")

    def menu(ctx: Context) -> None:
        ctx.step("good", send, ctx, False)
        ctx.step("bad", send, ctx, True)

    with running(watched, space, {"menu": menu}):
        script.ready("w1")
        watched.pair.next = "before"  # nothing of the first transaction is written: the whole of it is written again
        end = script.run_through(script.offer())
        assert (end.outcome, end.steps_done) == (Outcome.FAILURE, 1)
    [mail] = committed(cluster, topic)
    assert (mail.key, mail.value, mail.headers) == (b"k", b'{"fail":false}', (("h", b"v"),))
    [groups] = [groups for groups in watched.pair.writes if any(r.topic == topic for group in groups for r in group)]
    assert [[record.topic for record in group] for group in groups] == [[topic], [space.steps]]


def test_a_record_that_cannot_be_produced_is_refused_and_harms_no_other(
    cluster: KafkaCluster, space: Namespace, script: Script, namespace: str
) -> None:
    topic, watched = make_topic(cluster, f"{namespace}-mails"), Watched(cluster)

    def menu(ctx: Context) -> None:
        ctx.step("lost", ctx.produce, ctx.payload, "x")

    with running(watched, space, {"menu": menu}):
        first = script.ready("w1")
        for number, (where, why) in enumerate(
            [(f"{namespace}-nowhere", "there is no such topic"), (space.runs, "only dueline writes")]
        ):
            end = script.run_through(script.offer(f"job-{number}", payload=json.dumps(where)))
            assert (end.outcome, end.reason) == (Outcome.FAILURE, "step")
            assert "step 'lost'" in end.error
            assert why in end.error
        assert script.next_heartbeats(first.incarnation, 1)
        watched.pair.next = "aborted"  # a right was taken away: blamed on the steps that wrote there
        end = script.run_through(script.offer("late", payload=json.dumps(topic)))
        assert (end.outcome, end.reason) == (Outcome.FAILURE, "step")
        assert "aborted" in end.error
    assert committed(cluster, topic) == []
    assert script.all(Step) == []


def test_what_a_doubtful_transaction_produced_is_there_once(
    cluster: KafkaCluster, space: Namespace, script: Script, namespace: str
) -> None:
    topic, watched = make_topic(cluster, f"{namespace}-mails"), Watched(cluster)

    def menu(ctx: Context) -> None:
        ctx.step("good", ctx.produce, topic, "x")

    with running(watched, space, {"menu": menu}):
        script.ready("w1")
        watched.pair.next = "after"
        assert script.run_through(script.offer()).outcome == Outcome.SUCCESS
    reader = cluster.log_reader("mails")
    reader.assign({(topic, 0): EARLIEST})
    found: list[Received] = []

    def read() -> bool:
        found.extend(reader.poll(0.05, 10))
        return bool(found)

    script.wait_until(read, "the mail")
    reader.close()
    assert [one.value for one in found] == [b"x"]
    assert [one.value for one in committed(cluster, topic)] == [b"x"]


def test_handlers_may_use_threads_of_their_own(cluster: KafkaCluster, space: Namespace, script: Script) -> None:
    def menu(ctx: Context) -> int:
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda number: ctx.step(f"part/{number}", lambda: number), range(20)))

    with running(cluster, space, {"menu": menu}):
        script.ready("w1")
        assert script.run_through(script.offer()).result == "190"
