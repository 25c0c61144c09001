"""The command against a real broker with a real scheduler and worker, from `init` to `audit`."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Iterator

import pytest

from dueline.scheduler.cli.errors import ExitCode
from dueline.scheduler.core.ports import Delivered, Outgoing
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from tests.broker import TestBroker
from tests.integration.cli_world import PATIENCE_S, CliWorld, cli_world, stop

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.timeout(300)  # several processes start in turn; each wait has a deadline of its own

JOBS = """
jobs:
  - {id: tick, schedule: {every: 1s}, handler: hello, dispatch_ahead: 0s, overlap: allow}
  - {id: daily, schedule: 0 6 * * *, handler: hello}
  - {id: bad, schedule: {at: "2100-01-01T09:00Z"}, handler: broken, retry: {max: 1, backoff: 100ms}}
  - {id: long, schedule: {at: "2100-01-01T09:00Z"}, handler: slow}
"""


@pytest.fixture(scope="module")
def living(broker: TestBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliWorld]:
    """A namespace with a scheduler, a worker and jobs, shared by this module's tests."""
    folder = tmp_path_factory.mktemp("living")
    with cli_world(broker.bootstrap_servers, f"cli-{uuid.uuid4().hex[:8]}", folder) as world:
        made = world.start("init", "--development", log="init")
        assert made.wait(PATIENCE_S) == ExitCode.OK, world.log("init")
        world.scheduler()
        world.worker()
        applied = world.start("jobs", "apply", world.file("jobs.yaml", JOBS), log="apply")
        assert applied.wait(PATIENCE_S) == ExitCode.OK, world.log("apply")
        yield world


def test_jobs_are_listed_with_what_comes_next(living: CliWorld, capsys: Capture) -> None:
    jobs = {job["job"]: job for job in living(capsys, "jobs", "list", "--json").json}
    assert set(jobs) >= {"tick", "daily", "bad", "long"}
    assert jobs["daily"]["state"] == "active" and jobs["daily"]["next_due"].endswith("T06:00:00Z")
    assert jobs["daily"]["schedule"] == "0 6 * * *" and jobs["daily"]["version"] == 1
    table = living(capsys, "jobs", "list").out
    assert "0 6 * * *" in table and "\x1b[" not in table


def test_a_definition_that_holds_already_is_unchanged(living: CliWorld, capsys: Capture) -> None:
    answer = living(capsys, "jobs", "apply", living.file("jobs.yaml", JOBS), "--json")
    assert answer.code == ExitCode.OK
    assert {applied["job"]: applied["result"] for applied in answer.json} == {
        "tick": "unchanged", "daily": "unchanged", "bad": "unchanged", "long": "unchanged",
    }  # fmt: skip


def test_a_changed_definition_is_a_new_version(living: CliWorld, capsys: Capture) -> None:
    one = "{id: changing, schedule: 0 %d * * *, handler: hello}"
    assert living(capsys, "jobs", "apply", living.file("a.yaml", one % 6), "--json").json[0]["result"] == "created"
    changed = living(capsys, "jobs", "apply", living.file("a.yaml", one % 7), "--json").json[0]
    assert (changed["result"], changed["version"]) == ("updated", 2)
    assert [due["utc"][11:] for due in changed["preview"]["due"]] == ["07:00:00Z"] * 3
    history = living(capsys, "jobs", "history", "changing", "--json").json
    assert [(version["version"], version["change"]) for version in history] == [(1, "defined"), (2, "defined")]
    shown = living(capsys, "jobs", "show", "changing", "--json").json
    assert shown["definition"]["schedule"] == "0 7 * * *"


def test_scheduled_runs_happen_and_are_shown(living: CliWorld, capsys: Capture) -> None:
    def succeeded() -> int:
        runs = living(capsys, "runs", "tick", "--json").json
        return sum(run.get("state") == "succeeded" for run in runs)

    living.until(lambda: succeeded() >= 3, "three runs of tick")


def test_trigger_waits_for_the_run_and_shows_it(living: CliWorld, capsys: Capture) -> None:
    answer = living(capsys, "trigger", "daily", "--payload", '{"x": 1}', "--wait")
    assert answer.code == ExitCode.OK and "succeeded" in answer.err
    run = answer.out.strip()
    shown = living(capsys, "run", "show", run, "--json").json
    assert (shown["state"], shown["trigger"], shown["result"]) == ("succeeded", "manual", {"attempt": 1})
    (attempt,) = shown["attempts"]
    assert attempt["outcome"] == "success" and [step["name"] for step in attempt["steps"]] == ["greet"]
    assert attempt["events"] == ["claimed", "finished"] and attempt["worker"]


def test_a_run_that_fails_shows_each_attempt_with_its_traceback(living: CliWorld, capsys: Capture) -> None:
    answer = living(capsys, "trigger", "bad", "--wait")
    assert answer.code == ExitCode.PROBLEM
    text = living(capsys, "run", "show", answer.out.strip()).out
    assert text.count("ValueError: no menu today") == 2
    assert "attempt 1 on" in text and "attempt 2 on" in text
    assert "0 done, 1 skipped" in text  # the second attempt went on after the recorded step


def test_a_command_sent_twice_under_one_id_makes_one_run(living: CliWorld, capsys: Capture) -> None:
    for _ in range(2):
        assert living(capsys, "trigger", "daily", "--id", "deploy-7", "--wait-timeout", "20").code == ExitCode.OK
    runs = [run["run"] for run in living(capsys, "runs", "daily", "--json").json]
    assert runs.count("daily@!deploy-7") == 1


def test_a_running_run_is_cancelled(living: CliWorld, capsys: Capture) -> None:
    run = living(capsys, "trigger", "long").out.strip()
    answer = living(capsys, "cancel", run, "--wait", "--reason", "enough")
    assert answer.code == ExitCode.OK and "cancelled" in answer.err
    again = living(capsys, "cancel", run)
    assert again.code == ExitCode.PROBLEM and "not-active" in again.err


def test_pause_and_resume_and_delete(living: CliWorld, capsys: Capture) -> None:
    living(capsys, "jobs", "apply", living.file("p.yaml", "{id: paused, schedule: {every: 1s}, handler: hello}"))
    assert "paused: version 2" in living(capsys, "jobs", "pause", "paused").err
    assert "no change" in living(capsys, "jobs", "pause", "paused").err

    def skipped() -> bool:
        runs = living(capsys, "runs", "paused", "--json").json
        return any(run["state"] == "skipped" and run["reason"] == "paused" for run in runs)

    living.until(skipped, "a due time passed over as paused")
    assert "resumed: version 3" in living(capsys, "jobs", "resume", "paused").err
    wrong = living(capsys, "jobs", "delete", "paused", "--version", "1")
    assert wrong.code == ExitCode.PROBLEM and "version 3 holds now" in wrong.err
    assert "deleted: version 4" in living(capsys, "jobs", "delete", "paused", "--version", "3").err
    assert "paused" not in [job["job"] for job in living(capsys, "jobs", "list", "--json").json]
    states = {job["job"]: job["state"] for job in living(capsys, "jobs", "list", "--deleted", "--json").json}
    assert states["paused"] == "deleted"


def test_what_is_refused_says_so_and_is_listed(living: CliWorld, capsys: Capture) -> None:
    elsewhere = "{id: lost, schedule: 0 6 * * *, handler: h, queue: nowhere}"
    answer = living(capsys, "jobs", "apply", living.file("lost.yaml", elsewhere))
    assert answer.code == ExitCode.PROBLEM and "dueline init --queue nowhere" in answer.err
    assert living(capsys, "trigger", "no-such-job").code == ExitCode.PROBLEM
    letters = living(capsys, "rejected", "--json").json
    assert {letter["error"] for letter in letters} >= {"unknown-queue", "unknown-job"}
    (letter,) = [letter for letter in letters if letter["key"] == "lost"]
    assert letter["topic"] == f"{living.namespace}.jobs" and letter["offset"] >= 0


def test_workers_and_health(living: CliWorld, capsys: Capture) -> None:
    (worker,) = living(capsys, "workers", "--json").json
    assert worker["handlers"] == ["broken", "hello", "slow"] and worker["state"] == "running"
    for process in ("scheduler", "worker"):
        answer = living(capsys, "health", process, "--health-file", str(living.folder / f"{process}.health"))
        assert answer.code == ExitCode.OK, answer.err


def test_unknown_names_are_said_plainly(living: CliWorld, capsys: Capture) -> None:
    for arguments in (["jobs", "show", "nope"], ["runs", "nope"], ["run", "show", "nope@!x"], ["audit", "--job", "nope"]):
        answer = living(capsys, *arguments)
        assert answer.code == ExitCode.PROBLEM and "there is no" in answer.err, arguments


def test_the_audit_explains_everything(living: CliWorld, capsys: Capture) -> None:
    answer = living(capsys, "audit", "--json", "--grace", "10")
    assert answer.code == ExitCode.OK, answer.out
    totals = answer.json["totals"]
    assert totals["ran"] >= 3 and totals["missed"] == totals["duplicated"] == totals["unexplained"] == 0
    text = living(capsys, "audit", "--grace", "10", "--all", "--tz", "Asia/Tokyo")
    assert text.code == ExitCode.OK and "+0900" in text.out and "everything is explained" in text.err


def test_the_audit_finds_a_record_that_nothing_asked_for_and_names_its_place(living: CliWorld, capsys: Capture) -> None:
    """Given a copy of the namespace's topics with one more run record, the audit names exactly that record."""
    forged = json.loads(json.dumps({"id": "forged", "schedule": "0 6 * * *", "handler": "hello"}))
    living(capsys, "jobs", "apply", living.file("forged.json", json.dumps(forged)))
    source = living(capsys, "trigger", "forged", "--wait").out.strip()
    at = copy_record(living, f"{living.namespace}.runs", source, "forged@2026-11-30T06:00:01Z")
    answer = living(capsys, "audit", "--json", "--job", "forged", "--from", "2020-01-01")
    assert answer.code == ExitCode.PROBLEM
    places = [place["offset"] for finding in answer.json["findings"] for place in finding["evidence"]]
    assert at.offset in places and answer.json["totals"]["unexplained"] >= 1


# --- ends the shared processes: last ------------------------------------------------------------------------------------


def test_sigterm_ends_both_in_order(living: CliWorld, capsys: Capture) -> None:
    scheduler, worker = living.lasting.pop("scheduler"), living.lasting.pop("worker")
    assert stop(worker) == ExitCode.OK, living.log("worker")[-2000:]
    assert stop(scheduler, signal.SIGINT) == ExitCode.OK, living.log("scheduler")[-2000:]
    assert "Traceback" not in living.log("scheduler").replace("ValueError: no menu today", "")
    assert living(capsys, "workers", "--json").json == []
    (worker_facts,) = living(capsys, "workers", "--all", "--json").json
    assert worker_facts["state"] == "stopped"
    assert living(capsys, "health", "worker", "--health-file", str(living.folder / "worker.health")).code == 1


def copy_record(world: CliWorld, topic: str, key: str, new_key: str) -> Delivered:
    """Write the last record under `key` again, under another key."""
    cluster = KafkaCluster(KafkaConfig.load(environ={}, bootstrap_servers=world.servers), client_name="forger")
    try:
        admin = cluster.admin()
        end = admin.end_offset((topic, 0))
        last = [r for r in admin.read_range((topic, 0), 0, end, timeout_s=20.0) if r.key == key.encode()][-1]
        delivered: list[Delivered | None] = []
        writer = cluster.plain_writer("forger")
        record = Outgoing(topic=topic, partition=0, key=new_key.encode(), value=last.value, headers=last.headers)
        writer.send(record, lambda at, error: delivered.append(at))
        assert writer.flush(20.0) == 0
        writer.close()
        (at,) = delivered
        assert at is not None
        return at
    finally:
        cluster.close()
