"""`python -m proof.simulation`: Ctrl-C ends all of its processes; what it tells to do again does the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proof.simulation.runner import replay_command
from proof.simulation.setup import Setup

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(240)  # seconds on an idle machine; starting two worlds takes most of it
def test_ctrl_c_ends_parent_and_children_without_a_traceback() -> None:
    """As from a terminal: every process of the group gets the signal."""
    given = [sys.executable, "-m", "proof.simulation", "--seeds", "1..500", "--hours", "0.05", "--jobs", "2"]
    run = subprocess.Popen(
        given, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip
    assert run.stdout is not None
    assert "[1/500]" in run.stdout.readline()
    assert len(alive(run.pid)) >= 3, "the parent, and two worlds"
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=60)  # its children hold the pipe, too: all of them have ended
    assert (run.returncode, err) == (130, "interrupted\n")


def alive(group: int) -> list[str]:
    """Names of the group's processes that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = file.read_text().rpartition(")")
        except OSError:
            continue  # it ended meanwhile
        state, _, of_group = rest.split()[:3]
        if int(of_group) == group and state not in "ZX":
            found.append(head)
    return found


def test_a_replay_leaves_out_what_the_run_left_out() -> None:
    assert replay_command(Setup(seed=3, hours=0.1), "W9") == (
        "python -m proof.simulation --seeds 3 --hours 0.1 --profile rough --rule W9"
    )
    assert replay_command(Setup(seed=3, plan=()), "W9").endswith("--rule W9")
