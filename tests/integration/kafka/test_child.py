"""The child program of the fault tests, tried with the situation it is for (T4, T5): stopped inside a transaction."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kafka.support import Site
from tests.standstill import await_still

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def child(site: Site, name: str, failpoints: str = "") -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.writing_child", site.bootstrap_servers, site.ns.name, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "DUELINE_FAILPOINTS": failpoints},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def next_line(process: subprocess.Popen[str], *steps: str) -> dict[str, Any]:
    """The next line that tells one of these steps; pytest's time-out is the deadline."""
    assert process.stdout is not None
    for line in process.stdout:
        told: dict[str, Any] = json.loads(line)
        if told["at"] in steps:
            return told
    raise AssertionError(f"the child ended before {steps}")


@pytest.mark.parametrize(
    ("failpoint", "outcome"),
    [("leader.before-offsets", "Refused"), ("leader.after-offsets", "Fenced"), ("leader.before-commit", "Fenced")],
)
def test_t4_t5_a_leader_stopped_inside_a_transaction_writes_nothing_when_it_wakes(
    site: Site, failpoint: str, outcome: str
) -> None:
    with child(site, "first", f"{failpoint}=stop@3") as first:
        assert next_line(first, "wrote")["value"] == "first:0"
        assert next_line(first, "wrote")["value"] == "first:1"
        await_still(first.pid)
        with child(site, "second") as second:
            assert next_line(second, "wrote")["value"] == "second:0"
            first.send_signal(signal.SIGCONT)
            refusal = next_line(first, "wrote", "Refused", "Fenced", "Aborted", "Doubtful")
            # Stopped before its offsets, it may also meet the newer producer first: either way, nothing is written.
            assert refusal["at"] in {outcome, "Fenced"}, refusal
            next_line(second, "wrote")
    values = site.ledger()
    assert values[:2] == [b"first:0", b"first:1"]
    assert values[2] == b"second:0"
    assert b"first:2" not in values
