"""A process that stands still, for tests that stop one in the middle of something."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

DEADLINE_S: Final = 30.0
ENDED: Final = frozenset("XZ")


def stand_still(pid: int) -> None:
    """SIGSTOP, and until no thread of it runs: on a busy machine another one may answer a request before the signal is taken."""
    os.kill(pid, signal.SIGSTOP)
    await_still(pid)


def await_still(pid: int) -> None:
    """Until no thread of it runs, whoever stopped it."""
    end = time.monotonic() + DEADLINE_S
    while not states(pid) <= {"T", *ENDED}:
        assert time.monotonic() < end, f"process {pid} does not stand still"
        time.sleep(0.001)  # awaited: its threads take the signal


def states(pid: int) -> set[str]:
    """Of its threads, by the letters of /proc."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found.add((task / "stat").read_text().rpartition(")")[2].split()[0])
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return found
