"""What a process must refuse at its start, or wait for: names that meet, a broker without a fence, unfit topics, missing
rights. It says what, where and what to do, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from dueline.scheduler.cli.errors import ExitCode
from dueline.scheduler.kafka.broker import EmbeddedBroker
from tests.broker import BrokerKind
from tests.fault.cluster import Cluster, running
from tests.fault.process import Process
from tests.fault.raw import member

ANSWER_S = 10.0
JOB = "plain"


def refused(cluster: Cluster, process: Process, code: int, *words: str) -> None:
    """It ended by itself with this code and all these words, without a traceback, and has led nothing."""
    cluster.may_end(process)
    assert process.wait_ended() == code, process.log()
    said = process.log()
    assert [word for word in words if word not in said] == [], said
    assert "Traceback" not in said
    assert "leading: term" not in said


def test_t24_a_group_that_another_deployment_uses_is_refused(cluster: Cluster) -> None:
    """Given somebody in the namespace's election group who reads another topic, then a scheduler says so and ends."""
    ns = cluster.rig.namespace
    with member(cluster.servers, ns.scheduler_group, ns.jobs) as joined:
        cluster.until("the other one has joined", joined)
        refused(cluster, cluster.scheduler("s1"), ExitCode.USAGE, ns.scheduler_group, ns.jobs, "--namespace")


def test_t25_on_a_broker_without_a_fence_no_scheduler_starts(cluster: Cluster) -> None:
    """Given a broker that accepts what a stale leader sends (shown by sending what every broker accepts), then the scheduler
    does not start."""
    process = cluster.scheduler("s1", FAULT_NO_FENCE="1")
    refused(cluster, process, ExitCode.PROBLEM, "accepts a transaction under a stale group generation", "use one")


def test_t28_a_state_topic_that_deletes_is_refused(cluster: Cluster) -> None:
    """Given a ledger whose cleanup policy also deletes, then the scheduler does not start."""
    runs = cluster.rig.namespace.runs
    change = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, runs, incremental_configs=[change])
    admin = cluster.rig.cluster.kafka_admin()
    admin.client.incremental_alter_configs([resource])[resource].result(ANSWER_S)
    cluster.until("the change is seen", lambda: admin.settings(runs)["cleanup.policy"] == "compact,delete")
    refused(cluster, cluster.scheduler("s1"), ExitCode.PROBLEM, runs, "cleanup.policy")


def test_a_worker_for_a_queue_without_a_topic_is_refused(cluster: Cluster) -> None:
    """Given a queue that nobody made, then its worker says how to make it."""
    refused(cluster, cluster.worker("w1", queue="nowhere"), ExitCode.NOT_SET_UP, "'nowhere'", "dueline init", "--queue nowhere")


# --- rights -----------------------------------------------------------------------------------------------------------


class Rights:
    """What a broker with an authorizer denies to everybody."""

    def __init__(self, servers: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def deny(self, topic: str, operation: AclOperation) -> None:
        """From now on. All else stays allowed, which has to be said once anything is said of a topic."""
        for what, how in ((AclOperation.ALL, AclPermissionType.ALLOW), (operation, AclPermissionType.DENY)):
            rule = AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*", what, how)
            self._admin.create_acls([rule])[rule].result(ANSWER_S)

    def allow(self, topic: str) -> None:
        """Again everything."""
        every = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*", AclOperation.ANY, AclPermissionType.DENY
        )
        self._admin.delete_acls([every])[every].result(ANSWER_S)


@pytest.fixture(scope="module")
def guarded(broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Rights]]:
    """A broker with an authorizer, which allows what nothing forbids; two queues, a scheduler, a worker for each."""
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("needs a broker with an authorizer: use --broker embedded")
    folder = tmp_path_factory.mktemp("guarded")
    overrides = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with (
        EmbeddedBroker(folder / "broker", overrides=overrides) as broker,
        running(broker.bootstrap_servers, "guarded", folder / "cluster", queues=["default", "mail"]) as cluster,
    ):
        cluster.publish(JOB, {"every": "1s"})
        cluster.publish("mails", {"every": "2s"}, queue="mail")
        cluster.scheduler("s1", FAULT_UNUSABLE_S="3")
        cluster.worker("w1")
        cluster.worker("m1", queue="mail")
        cluster.until_goes_on(JOB)
        cluster.until_goes_on("mails")
        yield cluster, Rights(broker.bootstrap_servers)


@pytest.mark.parametrize(("topic", "who"), [("runs", "s1"), ("attempts", "w1"), ("steps", "w1"), ("workers", "w1")])
def test_a_right_that_is_taken_away_is_named_and_waited_for(guarded: tuple[Cluster, Rights], topic: str, who: str) -> None:
    """Given a topic that may not be written any more, then the process says which operation on which topic, and what to do,
    without a traceback; once it is allowed again, all goes on and nothing is lost or doubled."""
    cluster, rights = guarded
    process, name = cluster.processes[who], f"{cluster.rig.namespace.name}.{topic}"
    at = process.log_size()
    rights.deny(name, AclOperation.WRITE)
    try:
        cluster.until_said(process, f"not authorized: WRITE on topic '{name}'", since=at)
    finally:
        rights.allow(name)
    cluster.until_goes_on(JOB)
    cluster.judged(JOB, "mails")
    assert "grant WRITE on it" in process.log(at)
    assert "Traceback" not in process.log(at)


def test_a_queue_that_may_not_be_written_keeps_no_other_job_from_its_times(guarded: tuple[Cluster, Rights]) -> None:
    """Given a queue whose dispatch topic the scheduler may not write, then it says so, the queue's runs wait in the ledger, and
    jobs of other queues keep their times."""
    cluster, rights = guarded
    scheduler, name = cluster.processes["s1"], cluster.rig.namespace.dispatch("mail")
    at = scheduler.log_size()
    rights.deny(name, AclOperation.WRITE)
    try:
        cluster.until_said(scheduler, f"not authorized: WRITE on topic '{name}'", since=at)
        done = len([run for run in cluster.ledger.runs(JOB).values() if run.state == "succeeded"])
        cluster.until("other jobs run", lambda: len(
            [run for run in cluster.ledger.runs(JOB).values() if run.state == "succeeded"]) >= done + 5)  # fmt: skip
    finally:
        rights.allow(name)
    cluster.until_goes_on("mails")
    cluster.judged(JOB, "mails")
    assert "Traceback" not in scheduler.log(at)
