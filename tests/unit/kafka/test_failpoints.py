"""Failpoints fire once, where and when they are told, in a process of their own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dueline.scheduler.kafka import failpoints

CHILD = """
import sys
from dueline.scheduler.kafka.failpoints import reach
for line in sys.stdin:
    reach(line.strip())
    print("passed", line.strip(), flush=True)
"""
DEADLINE_S = 20.0


def child(**environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )


def send(process: subprocess.Popen[str], name: str) -> None:
    assert process.stdin is not None
    process.stdin.write(name + "\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def await_stopped(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "the process did not stop"
        time.sleep(0.01)  # awaited: the process is stopped


def test_nothing_armed_passes() -> None:
    with child() as process:
        send(process, "leader.before-offsets")
        assert answer(process) == "passed leader.before-offsets"
        process.stdin.close()  # type: ignore[union-attr]


def test_kill_at_the_nth_time() -> None:
    with child(DUELINE_FAILPOINTS="claim.before-commit=kill@2, leader.x=exit") as process:
        send(process, "claim.before-commit")
        assert answer(process) == "passed claim.before-commit"
        send(process, "claim.before-commit")
        assert process.wait(DEADLINE_S) == -signal.SIGKILL


def test_exit_has_its_own_code() -> None:
    with child(DUELINE_FAILPOINTS="leader.x=exit") as process:
        send(process, "leader.x")
        assert process.wait(DEADLINE_S) == failpoints.EXIT_CODE


def test_a_running_process_is_armed_by_a_file_and_goes_on_after_a_stop(tmp_path: Path) -> None:
    file = tmp_path / "failpoints"
    with child(DUELINE_FAILPOINT_FILE=str(file)) as process:
        send(process, "leader.x")
        assert answer(process) == "passed leader.x"
        file.write_text("leader.x=stop\n")
        send(process, "leader.x")
        await_stopped(process)
        process.send_signal(signal.SIGCONT)
        assert answer(process) == "passed leader.x"
        send(process, "leader.x")  # it fires once
        assert answer(process) == "passed leader.x"
        process.stdin.close()  # type: ignore[union-attr]


def test_a_blocked_thread_goes_on_when_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "failpoints"
    file.write_text("leader.x=block")
    with child(DUELINE_FAILPOINT_FILE=str(file)) as process:
        send(process, "leader.x")
        said, passed = process.stderr, process.stdout
        assert said is not None
        assert passed is not None
        assert "failpoint leader.x: block" in said.readline()
        assert select.select([passed], [], [], 0.2)[0] == []
        file.write_text("leader.y=stop")
        assert answer(process) == "passed leader.x"
        process.stdin.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["leader.x", "leader.x=pause", "leader.x=stop@0", "leader.x=stop@soon"])
def test_text_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"leader\.x.*expected NAME=ACTION"):
        failpoints.arm(text)
