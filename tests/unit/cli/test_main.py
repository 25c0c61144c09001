"""The command line as such: global options anywhere, failures without tracebacks, exit codes, help, the page in docs/."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from dueline.scheduler.audit.reading import TopicMissing
from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.failures import failure_of
from dueline.scheduler.cli.main import hoisted, run
from dueline.scheduler.cli.reference import helps, pages
from dueline.scheduler.core.ports import Expired, Unavailable
from dueline.scheduler.kafka.errors import ConfigError, NoFence, NotAuthorized

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BOOTSTRAP_SERVERS", "KAFKA_CONFIG", "NAMESPACE", "HEALTH_FILE"):
        monkeypatch.delenv(f"DUELINE_{name}", raising=False)


@pytest.mark.parametrize(
    ("line", "front", "rest"),
    [
        ("audit --namespace x", "--namespace x", "audit"),
        ("-n x audit --from -2h", "-n x", "audit --from -2h"),
        ("jobs list --timeout=3 --json", "--timeout=3", "jobs list --json"),
        ("trigger a -- --namespace x", "", "trigger a -- --namespace x"),
        ("jobs list --namespace", "", "jobs list --namespace"),
        ("jobs list -b h:1 --kafka-config f", "-b h:1 --kafka-config f", "jobs list"),
    ],
)
def test_global_options_may_stand_anywhere(line: str, front: str, rest: str) -> None:
    assert hoisted(line.split()) == (front.split(), rest.split())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["jobs", "list"], ExitCode.USAGE, "no Kafka cluster given"),
        (["nonsense"], ExitCode.USAGE, "No such command"),
        (["jobs", "list", "--namespace", "a b"], ExitCode.USAGE, "namespace 'a b'"),
        (["jobs", "list", "--tz", "Mars/Phobos"], ExitCode.USAGE, "not a zone"),
        (["audit", "--from", "soon"], ExitCode.USAGE, "--from: 'soon' is no time"),
        (["audit", "--from", "2026-11-30", "--to", "2026-11-29"], ExitCode.USAGE, "is not later than"),
        (["jobs", "apply", "/no/such/file"], ExitCode.USAGE, "/no/such/file: No such file"),
        (["trigger", "menu", "--payload", "{x: 1}"], ExitCode.USAGE, "--payload is not JSON"),
        (["worker", "--handler", "menu"], ExitCode.USAGE, "name=module:attribute"),
        (["worker", "--handler", "menu=no_such_module:f"], ExitCode.USAGE, "no_such_module"),
        (["worker", "--handler", "menu=json:dumps", "--heartbeat", "9"], ExitCode.USAGE, "third of the worker timeout"),
        (["worker", "--handler", "menu=json:dumps", "--log-level", "loud"], ExitCode.USAGE, "--log-level"),
        (["init", "--replication-factor", "1", "--min-insync-replicas", "2"], ExitCode.USAGE, "min.insync.replicas"),
        (["init", "--queue", "a/b"], ExitCode.USAGE, "queue 'a/b'"),
        (["health", "worker"], ExitCode.USAGE, "DUELINE_HEALTH_FILE"),
        (["jobs", "delete", "menu", "--version", "0"], ExitCode.USAGE, "--version"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_is_said_without_a_traceback(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    streams = capsys.readouterr()
    assert said in streams.err
    assert "Traceback" not in streams.err
    assert streams.out == ""


def test_a_broker_that_is_away_is_an_error_after_a_bounded_wait(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    assert run(["jobs", "list", "-b", "127.0.0.1:1", "--timeout", "1"]) == ExitCode.UNREACHABLE
    assert time.monotonic() - begun < 10
    assert "no answer from Kafka" in capsys.readouterr().err


def test_secrets_of_the_kafka_settings_are_never_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "kafka.properties"
    settings.write_text("sasl.password=open-sesame\nno equals sign open-sesame\n")
    assert run(["jobs", "list", "--kafka-config", str(settings), "-b", "127.0.0.1:1"]) == ExitCode.USAGE
    streams = capsys.readouterr()
    assert "line 2" in streams.err and "open-sesame" not in streams.err + streams.out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x", code=ExitCode.NO_ANSWER), ExitCode.NO_ANSWER),
        (TopicMissing("dueline.runs"), ExitCode.NOT_SET_UP),
        (Unavailable("x"), ExitCode.UNREACHABLE),
        (ConfigError("x"), ExitCode.USAGE),
        (NotAuthorized("topic 'x'", "READ"), ExitCode.PROBLEM),
        (NoFence("x"), ExitCode.PROBLEM),
        (Expired("x"), ExitCode.PROBLEM),
    ],
)
def test_expected_failures_have_their_code(error: Exception, code: int) -> None:
    failure = failure_of(error)
    assert failure is not None and failure.code == code and failure.what


def test_a_bug_keeps_its_traceback() -> None:
    assert failure_of(KeyError("x")) is None


def test_a_file_is_checked_and_previewed_without_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "apply", "--check", str(ROOT / "examples/jobs.yaml")]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "report" in out and "local (Europe/Berlin)" in out and "valid" in out
    assert run(["jobs", "apply", "--check", "--json", str(ROOT / "examples/jobs.yaml")]) == ExitCode.OK
    applied = {one["job"]: one for one in json.loads(capsys.readouterr().out)}
    assert [due["utc"][11:] for due in applied["menu"]["preview"]["due"]] == ["06:00:00Z"] * 3


def test_a_bad_file_is_refused_whole_with_each_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("- {id: a, schedule: 61 * * * *, handler: h}\n- {id: b, schedule: 0 6 * * *, handlr: h}\n")
    assert run(["jobs", "apply", str(file), "-b", "127.0.0.1:1"]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert f"{file}:1: job a: schedule" in err and f"{file}:2: job b: handlr" in err and "nothing was sent" in err


# --- health -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "process"), [("wall_ms", "scheduler"), ("time_ms", "worker")])
@pytest.mark.parametrize(("age_ms", "code"), [(0, ExitCode.OK), (3_000, ExitCode.OK), (60_000, ExitCode.PROBLEM)])
def test_health_is_the_age_of_the_file(key: str, process: str, age_ms: int, code: int, tmp_path: Path) -> None:
    file = tmp_path / "health"
    file.write_text(json.dumps({key: time.time_ns() // 1_000_000 - age_ms}))
    assert run(["health", process, "--health-file", str(file)]) == code


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"wall_ms": "now"}', "\x00"])
def test_a_file_that_is_no_health_file_is_not_healthy(text: str, tmp_path: Path) -> None:
    file = tmp_path / "health"
    file.write_text(text)
    assert run(["health", "worker", "--health-file", str(file)]) == ExitCode.PROBLEM


def test_no_file_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUELINE_HEALTH_FILE", str(tmp_path / "none"))
    assert run(["health", "scheduler"]) == ExitCode.PROBLEM


# --- help -------------------------------------------------------------------------------------------------------------


def test_the_pages_in_docs_are_current() -> None:
    stale = [name for name, content in pages().items() if (ROOT / "docs" / name).read_text() != content]
    assert stale == [], "python -m dueline.scheduler.cli.reference docs"


def test_every_command_of_the_issue_is_there() -> None:
    names = {name.removeprefix("dueline").strip() for name, _ in helps()}
    assert names >= {
        "init", "dev", "scheduler", "worker", "health", "jobs apply", "jobs list", "jobs show", "jobs history",
        "jobs delete", "jobs pause", "jobs resume", "trigger", "cancel", "runs", "run show", "audit", "accept-positions",
        "rejected", "workers", "next",
    }  # fmt: skip


def test_every_command_that_prints_data_takes_json() -> None:
    data = {
        "init", "health", "jobs apply", "jobs list", "jobs show", "jobs history", "trigger", "runs", "run show", "audit",
        "rejected", "workers", "next", "jobs delete", "jobs pause", "jobs resume", "cancel", "accept-positions",
    }  # fmt: skip
    assert {name for name in data if "--json" not in dict(helps())[f"dueline {name}"]} == set()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out.startswith("dueline ")


def test_init_prints_what_somebody_else_shall_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--queue", "menu", "--print", "-n", "canteen"]) == ExitCode.OK
    text = capsys.readouterr().out
    commands = text.replace("\\\n", "").splitlines()
    made = [line for line in commands if line.startswith("kafka-topics.sh")]
    assert len(made) == 11
    (ledger,) = [line for line in made if "--topic canteen.runs " in line]
    assert "--partitions 1 --replication-factor 3" in ledger
    assert "cleanup.policy=compact" in ledger and "message.timestamp.type=LogAppendTime" in ledger
    assert any("--topic canteen.dispatch.menu " in line for line in made)


def test_init_prints_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--print", "--json", "--development"]) == ExitCode.OK
    topics = {topic["topic"]: topic for topic in json.loads(capsys.readouterr().out)}
    assert topics["dueline.runs"]["replication_factor"] == 1
    assert topics["dueline.dispatch.default"]["partitions"] == 8
