"""The command where something is missing: no topics, no scheduler, no broker; and processes that are told to go."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dueline.scheduler.cli.errors import ExitCode
from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.schemas.topics import Namespace, TopicSpec, catalogue
from tests.broker import TestBroker
from tests.integration.cli_world import PATIENCE_S, CliWorld, cli_world, stop

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.timeout(300)  # several processes start in turn; each wait has a deadline of its own


@pytest.fixture
def world(broker: TestBroker, namespace: str, tmp_path: Path) -> Iterator[CliWorld]:
    """A namespace that does not exist yet."""
    with cli_world(broker.bootstrap_servers, namespace, tmp_path) as made:
        yield made


def test_init_creates_then_finds(world: CliWorld, capsys: Capture) -> None:
    first = world(capsys, "init", "--development", "--partitions", "2", "--queue", "menu", "--json").json
    assert first["fit"] and len(first["created"]) == 11 and first["existing"] == []
    again = world(capsys, "init", "--development", "--partitions", "2", "--queue", "menu", "--json").json
    assert again["fit"] and again["created"] == [] and len(again["existing"]) == 11
    more = world(capsys, "init", "--development", "--partitions", "2", "--queue", "mail", "--json").json
    assert more["created"] == [f"{world.namespace}.dispatch.mail"]
    dispatch = f"{world.namespace}.dispatch.menu"
    wider = world(capsys, "init", "--development", "--partitions", "5", "--queue", "menu", "--json")
    assert wider.json["grown"] == [dispatch] and wider.json["partitions"][dispatch] == 5 and "has 5 partitions now" in wider.err
    same = world(capsys, "init", "--development", "--queue", "menu", "--json").json
    assert same["grown"] == [] and same["partitions"][dispatch] == 5
    fewer = world(capsys, "init", "--development", "--partitions", "3", "--queue", "menu")
    assert fewer.code == ExitCode.OK and "keeps its 5 partitions" in fewer.err


def test_init_refuses_a_ledger_that_forgets_and_says_what_to_do(world: CliWorld, capsys: Capture) -> None:
    namespace = Namespace(world.namespace)
    specs = catalogue(namespace, [], replication_factor=1, min_insync_replicas=1)
    (ledger,) = [spec for spec in specs if spec.name == namespace.runs]
    create(world.servers, replace(ledger, config={**ledger.config, "cleanup.policy": "compact,delete"}))
    answer = world(capsys, "init", "--development")
    assert answer.code == ExitCode.PROBLEM
    assert "the ledger would forget" in answer.err and "Set cleanup.policy=compact" in answer.err
    process = world.start("scheduler", "--development", log="scheduler")
    assert process.wait(PATIENCE_S) == ExitCode.PROBLEM
    assert "the ledger would forget" in world.log("scheduler") and "Traceback" not in world.log("scheduler")


def test_a_namespace_that_is_not_set_up_is_an_exit_code_of_its_own(world: CliWorld, capsys: Capture) -> None:
    for arguments in (["jobs", "list"], ["runs", "menu"], ["audit"], ["trigger", "menu"], ["workers"], ["rejected"]):
        answer = world(capsys, *arguments)
        assert answer.code == ExitCode.NOT_SET_UP and "dueline init" in answer.err, arguments
    scheduler = world.start("scheduler", "--development", log="scheduler")
    worker = world.start("worker", "--handler", "hello=handlers:hello", "--queue", "none", log="worker")
    assert (scheduler.wait(PATIENCE_S), worker.wait(PATIENCE_S)) == (ExitCode.NOT_SET_UP, ExitCode.NOT_SET_UP)
    assert "dueline init" in world.log("scheduler") and "dueline init" in world.log("worker")


def test_without_a_scheduler_a_job_waits_for_one(world: CliWorld, capsys: Capture) -> None:
    assert world(capsys, "init", "--development").code == ExitCode.OK
    job = world.file("job.yaml", "{id: early, schedule: 0 6 * * *, handler: hello}")
    waited = world(capsys, "jobs", "apply", job, "--wait-timeout", "1")
    assert waited.code == ExitCode.NO_ANSWER and "no scheduler took it up" in waited.err
    assert world(capsys, "jobs", "apply", job, "--no-wait", "--json").json[0]["result"] == "sent"
    assert world(capsys, "trigger", "early", "--no-wait").code == ExitCode.OK
    world.scheduler()
    world.until(lambda: bool(world(capsys, "jobs", "list", "--json").json), "the job to be taken up")
    (version,) = world(capsys, "jobs", "history", "early", "--json").json
    assert version["version"] == 1  # sent twice, the same: one version


def test_a_scheduler_waits_for_a_broker_that_comes_later(own_broker: EmbeddedBroker, namespace: str, tmp_path: Path,
                                                        capsys: Capture) -> None:  # fmt: skip
    with cli_world(own_broker.bootstrap_servers, namespace, tmp_path) as world:
        assert world(capsys, "init", "--development").code == ExitCode.OK
        own_broker.stop()
        away = world(capsys, "jobs", "list", "--timeout", "1")
        assert away.code == ExitCode.UNREACHABLE and "no answer from Kafka" in away.err
        process = world.start("scheduler", "--development", log="scheduler")
        world.until(lambda: "waiting for Kafka" in world.log("scheduler"), "the scheduler to say that it waits", process)
        own_broker.start()
        world.until(lambda: world.health("scheduler").get("role") == "leader", "a leader", process)
        assert stop(process) == ExitCode.OK
        assert "Traceback" not in world.log("scheduler")


def test_a_second_signal_ends_a_worker_at_once(world: CliWorld, capsys: Capture) -> None:
    assert world(capsys, "init", "--development").code == ExitCode.OK
    world.scheduler()
    worker = world.worker("--drain-timeout", "600")
    job = world.file("job.yaml", '{id: long, schedule: {at: "2100-01-01T09:00Z"}, handler: slow}')
    assert world(capsys, "jobs", "apply", job).code == ExitCode.OK
    run = world(capsys, "trigger", "long").out.strip()

    def steps() -> int:
        return len(world(capsys, "run", "show", run, "--json").json["attempts"][0]["steps"])

    world.until(lambda: bool(world(capsys, "run", "show", run, "--json").json["attempts"]), "the run to begin", worker)
    world.until(lambda: steps() > 0, "a first step", worker)
    del world.lasting["worker"]
    worker.send_signal(signal.SIGTERM)
    world.until(lambda: "draining" in world.log("worker"), "the worker to drain", worker)
    assert stop(worker) == 128 + signal.SIGTERM
    assert "SIGTERM again" in world.log("worker")


def test_dev_runs_a_job_and_leaves_nothing_behind(tmp_path: Path, capsys: Capture) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with cli_world(f"127.0.0.1:{port}", "dev-test", tmp_path) as world:
        dev = world.start("dev", "--data", str(tmp_path / "data"), "--port", str(port),
                          "--handler", "hello=handlers:hello", log="dev")  # fmt: skip
        world.until(lambda: "leading: term" in world.log("dev"), "the cluster to be up", dev)
        assert f"export DUELINE_BOOTSTRAP_SERVERS=127.0.0.1:{port}" in world.log("dev")
        job = world.file("job.yaml", "{id: once, schedule: 0 6 * * *, handler: hello}")
        assert world(capsys, "jobs", "apply", job).code == ExitCode.OK
        assert world(capsys, "trigger", "once", "--wait").code == ExitCode.OK
        assert world(capsys, "audit").code == ExitCode.OK
        below = children(dev.pid)
        assert below, "the broker is a child"
        assert stop(dev, signal.SIGINT) == ExitCode.OK, world.log("dev")[-3000:]
        assert [pid for pid in below if alive(pid)] == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)


# --- steps ------------------------------------------------------------------------------------------------------------


def create(servers: str, spec: TopicSpec) -> None:
    cluster = KafkaCluster(KafkaConfig.load(environ={}, bootstrap_servers=servers), client_name="test")
    try:
        assert cluster.kafka_admin().create(spec)
    finally:
        cluster.close()


def children(pid: int) -> list[int]:
    """Processes below this one, at any depth."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except FileNotFoundError:
                continue
            if int(fields[1]) == pid:
                found += [int(entry.name), *children(int(entry.name))]
    return found


def alive(pid: int) -> bool:
    """Whether the process runs (one that has ended and was not waited for does not)."""
    try:
        os.kill(pid, 0)
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
