"""A partition without a leader, on three nodes: what is derived waits for it, everybody else's jobs do not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from dueline.scheduler.kafka.broker.cluster import EmbeddedCluster
from dueline.schemas.run import RunState
from dueline.schemas.work import Heartbeat
from tests.integration.leader.rig import Rig, Watch

LONELY = 3
"""The node that has the only copy of a queue's dispatch topic."""


@pytest.mark.timeout(420)
def test_a_dispatch_partition_without_a_leader_holds_up_its_own_queue_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a queue whose dispatch topic has one copy, on a node that stops; then the other queue's runs, three copies each,
    are offered again within seconds and go on without another stall; when the node is back, so is the queue."""
    with EmbeddedCluster(tmp_path / "cluster") as cluster:
        rig = lonely_rig(cluster)
        try:
            with rig.scheduler(fresh_heartbeat_s=30.0, worker_timeout_s=120.0, session_timeout_s=10.0):
                ledger, beat = rig.ledger(), beating(rig)
                for job, queue in (("tick", "default"), ("lost", "lonely")):
                    rig.publish(job, {"every": "1s"}, overlap="allow", dispatch_ahead="0s", queue=queue)
                ledger.until(lambda seen: beat() and offered(seen, "tick") and offered(seen, "lost"), "both are offered", 60.0)
                cluster.nodes[LONELY].stop()
                gone_ms = rig_now_ms()
                ledger.until(lambda seen: beat() and "partitions_unusable" in actions(caplog), "the stall is noticed", 60.0)
                noticed_ms = rig_now_ms()
                ledger.until(lambda seen: beat() and offered(seen, "tick", noticed_ms) > 1, "the others go on", 60.0)
                assert marked(caplog) == {rig.namespace.dispatch("lonely")}
                terms = len(set(ledger.terms()))
                ledger.until(lambda seen: beat() and offered(seen, "tick", noticed_ms) > 12, "they go on", 60.0)
                assert len(set(ledger.terms())) == terms
                cluster.nodes[LONELY].start()
                dispatched = rig.watch(rig.namespace.dispatch("lonely"), partitions=4)
                dispatched.until(
                    lambda seen: beat() and any(each.append_ms > gone_ms + 10_000 for each in seen.received), "it is back", 90.0
                )
        finally:
            rig.close()


def lonely_rig(cluster: EmbeddedCluster) -> Rig:
    """A namespace with three copies of everything but the topic of one queue."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    topic = NewTopic(
        "off.dispatch.lonely", num_partitions=4, replica_assignment=[[LONELY]] * 4,
        config={"message.timestamp.type": "LogAppendTime", "max.message.bytes": "2097152", "min.insync.replicas": "1"},
    )  # fmt: skip
    admin.create_topics([topic])[topic.topic].result(20)
    return Rig(cluster.bootstrap_servers, "off", queues=["default", "lonely"], copies=3)


def beating(rig: Rig) -> Callable[[], bool]:
    """Workers with room for everything, who never answer. Each call writes their heartbeats, once a second at most."""
    sequence, last = itertools.count(), [0.0]
    homes = {"default": 0, "lonely": 1}

    def beat() -> bool:
        if time.monotonic() - last[0] > 1.0:
            last[0] = time.monotonic()
            for queue, home in homes.items():
                rig.write(rig.namespace.workers, replace(idle(queue, home), seq=next(sequence)), key=queue)
        return True

    return beat


def idle(queue: str, home: int) -> Heartbeat:
    """A worker that owns every partition of its queue."""
    return Heartbeat(
        incarnation=f"{queue}.1", worker=queue, queue=queue, home=home, state="running", seq=0, slots=10_000,
        handlers=["hello"], partitions=[0, 1, 2, 3],
    )  # fmt: skip


def offered(seen: Watch, job: str, after_ms: int = 0) -> int:
    """How many of the job's runs that were due after this were offered."""
    return sum(run.state == RunState.DISPATCHED and run.due_ms > after_ms for run in seen.runs(job).values())


def rig_now_ms() -> int:
    """By the clock that the nodes share with this process."""
    return time.time_ns() // 1_000_000


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said, by name."""
    return [getattr(record, "action", "") for record in caplog.records]


def marked(caplog: pytest.LogCaptureFixture) -> set[str]:
    """The topics that were left alone."""
    said = [r.getMessage() for r in caplog.records if getattr(r, "action", "") == "partitions_unusable"]
    names = [name for text in said for name in text.split("in time: ")[1].rstrip(")").split('"')[0].split(", ")]
    return {name.partition("[")[0] for name in names}
