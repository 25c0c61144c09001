"""The demo keeps every promise, and leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.demo.handlers import LANES
from tests.broker import BrokerKind

ROOT = Path(__file__).resolve().parents[2]
END_S = 30.0


@pytest.fixture(scope="module")
def played(broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The demo's own account of one run of it, with every message sent."""
    embedded_only(broker_kind)
    folder = tmp_path_factory.mktemp("demo")
    with demo(folder, "--json") as process:
        out, err = process.communicate()
    assert process.returncode == 0, err[-6000:]
    assert processes(folder) == []
    assert list(folder.iterdir()) == []
    result: dict[str, Any] = json.loads(out)
    return result


pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_every_promise_is_kept(played: dict[str, Any]) -> None:
    assert played["ok"] is True
    assert [each["promise"] for each in played["promises"] if not each["kept"]] == []
    assert len(played["promises"]) == 15


def test_everybody_has_each_days_menu_once(played: dict[str, Any]) -> None:
    sent = {each["day"]: each for each in played["days"] if each["job"] == "menu"}
    assert {day: each["subscribers"] for day, each in sent.items()} == {
        "Sunday": 1000, "Monday": 1000, "Tuesday": 1000, "Wednesday": 0, "Thursday": 1000,
    }  # fmt: skip
    for day, each in sent.items():
        in_flight = LANES if day == "Sunday" else 0
        assert each["mails"] - each["subscribers"] == each["repeated"] <= in_flight


def test_after_the_kill_another_worker_goes_on_where_the_log_ends(played: dict[str, Any]) -> None:
    killed = played["worker_killed"]
    assert killed["mails"] >= 600
    assert killed["successor"] != killed["worker"]
    sunday = day_of(played, "Sunday")
    assert sunday["attempts"] == 2
    unrecorded = killed["mails"] + 1 - sunday["steps_skipped"]  # the build is a step too
    assert 0 <= unrecorded <= LANES
    assert sunday["repeated"] == unrecorded


def test_the_write_of_the_woken_leader_is_refused(played: dict[str, Any]) -> None:
    (refusal,) = played["refused_writes"]
    assert "dueline.leader" in refusal or "demo.leader" in refusal
    assert "_FENCED" in refusal or "refused" in refusal
    assert day_of(played, "Monday")["attempts"] >= 1


def test_a_dead_leader_makes_late_only_what_was_not_given_out(played: dict[str, Any]) -> None:
    assert day_of(played, "Tuesday")["first_mail_ms"] < 1000
    bread = day_of(played, "Tuesday", "bread")
    assert (bread["mails"], bread["audit"], bread["reason"]) == (1, "late", "catch-up")


def test_the_late_run_policy_says_what_it_decided(played: dict[str, Any]) -> None:
    wednesday, thursday = day_of(played, "Wednesday"), day_of(played, "Thursday")
    assert (wednesday["state"], wednesday["reason"]) == ("skipped", "later-due-time")
    assert (thursday["state"], thursday["reason"], thursday["audit"]) == ("succeeded", "catch-up", "late")


def test_the_audit_explains_every_due_time(played: dict[str, Any]) -> None:
    audit = played["audit"]
    assert (audit["missed"], audit["duplicated"], audit["early"], audit["unexplained"]) == (0, 0, 0, 0)
    assert sum(audit.values()) >= 6
    assert all(each["audit"] in ("ran", "late", "skipped") for each in played["days"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process_and_no_folder(
    broker_kind: BrokerKind, tmp_path: Path, number: signal.Signals
) -> None:
    embedded_only(broker_kind)
    with demo(tmp_path, "--subscribers", "10") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Act 1" in line:
                break
        assert len(processes(tmp_path)) >= 6  # itself, the broker, two schedulers, two workers
        process.send_signal(number)
        process.communicate(timeout=END_S)
    assert process.returncode == 130
    await_true(lambda: processes(tmp_path) == [], "every process of the demo to be gone")
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_is_killed_takes_its_processes_along(broker_kind: BrokerKind, tmp_path: Path) -> None:
    embedded_only(broker_kind)
    with demo(tmp_path, "--subscribers", "10") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Act 1" in line:
                break
        process.kill()
        process.communicate(timeout=END_S)
    await_true(lambda: processes(tmp_path) == [], "every process of the demo to be gone")


def test_a_demo_that_fails_says_why_and_keeps_its_logs(broker_kind: BrokerKind, tmp_path: Path) -> None:
    """A process that nobody in the story killed is gone."""
    embedded_only(broker_kind)
    with demo(tmp_path, "--subscribers", "10") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Act 1" in line:
                break
        (victim,) = [pid for pid, command in processes(tmp_path) if "--worker-id worker-1" in command]
        os.kill(victim, signal.SIGKILL)
        out, _ = process.communicate(timeout=END_S)
    assert process.returncode == 1
    assert "worker-1 ended by itself with -9" in out
    await_true(lambda: processes(tmp_path) == [], "every process of the demo to be gone")
    (kept,) = tmp_path.glob("dueline-demo-*")
    assert f"are kept in {kept}" in out
    assert "is open" in (kept / "worker-1.log").read_text()


# --- steps ------------------------------------------------------------------------------------------------------------


def embedded_only(kind: BrokerKind) -> None:
    if kind is not BrokerKind.EMBEDDED:
        pytest.skip("the demo kills its broker: it brings its own, whatever --broker says")


def day_of(played: dict[str, Any], day: str, job: str = "menu") -> dict[str, Any]:
    (found,) = [each for each in played["days"] if (each["day"], each["job"]) == (day, job)]
    return dict(found)


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The demo's process; its folder is made under `folder`, which marks every process it starts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.demo", *options], cwd=ROOT, text=True, env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE if "--json" in options else subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=END_S)


def processes(folder: Path) -> list[tuple[int, str]]:
    """Process ids and command lines of those whose temporary folder is this one."""
    mark, found = f"TMPDIR={folder}".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append((int(entry.name), command))
            except OSError:
                continue  # gone, or somebody else's
    return found


def await_true(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + END_S
    while not happened():
        assert time.monotonic() < deadline, f"waited {END_S:.0f} s in vain for {what}"
        time.sleep(0.05)  # awaited: what the caller names
