"""L10: a call that hangs ends the process; one that ends, or a process that was stopped, does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dueline.scheduler.kafka import watchdog
from dueline.scheduler.kafka.watchdog import EXIT_CODE, Watchdog

DEADLINE_S = 20.0
CHILD = """
import logging, threading
from dueline.scheduler.kafka import watchdog
from dueline.scheduler.kafka.watchdog import Watchdog
logging.basicConfig(level=logging.INFO)
with Watchdog(tick_s=0.02).guard("commit_transaction of x", 0.5):
    print("inside", flush=True)
    threading.Event().wait()
"""


def test_a_hang_ends_the_process_and_says_which_call() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == EXIT_CODE
    assert "commit_transaction of x has not returned" in done.stderr


def test_a_process_that_was_stopped_has_not_hung() -> None:
    """Stopped for far longer than the bound, it still has its whole running time left when it wakes."""
    child = CHILD.replace("threading.Event().wait()", "input(); print('left', flush=True)").replace("0.5", "2.0")
    process = subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        os.kill(process.pid, signal.SIGSTOP)
        woken_at = time.monotonic() + 2.5
        while time.monotonic() < woken_at:
            assert Path(f"/proc/{process.pid}").exists()
            time.sleep(0.1)  # awaited: the bound has passed on the wall, while the process is stopped
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate("go on\n", timeout=DEADLINE_S)[0] == "left\n"
        assert process.returncode == 0


def test_a_call_that_returns_is_forgotten() -> None:
    died = threading.Event()
    watchdog = Watchdog(died.set, tick_s=0.005)
    with watchdog.guard("flush", 10.0):
        pass
    with watchdog.guard("commit", 0.02):
        assert died.wait(DEADLINE_S), "the watch itself works"
    died.clear()
    with watchdog.guard("short", 0.5):
        pass
    assert not died.wait(0.7)
    watchdog.close()


def test_a_call_that_waits_for_a_broker_is_excused_until_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """While none answers it may take as long as it takes; once one does, and the call still hangs, the process ends."""
    monkeypatch.setattr(watchdog, "AWAY_S", 0.05)
    monkeypatch.setattr(watchdog, "LAST_CHANCE_S", 0.05)
    asked, answering, died = threading.Semaphore(0), threading.Event(), threading.Event()

    def answers() -> bool:
        asked.release()
        return answering.is_set()

    dog = Watchdog(died.set, tick_s=0.01, answers=answers)
    with dog.guard("send_offsets of x", 0.05):
        for _ in range(3):
            assert asked.acquire(timeout=DEADLINE_S)
        assert not died.is_set()
        answering.set()
        assert died.wait(DEADLINE_S)
    dog.close()
