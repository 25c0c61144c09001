"""A short run of the real-fault harness, as CI does it: seeded, on one broker, judged by the checker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proof.faults.kinds.table import TABLE, chosen
from tests.broker import BrokerKind

ROOT = Path(__file__).resolve().parents[2]
FAULTS = 20
SEED = 20
END_S = 30.0


def command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "proof.faults", "--out", str(out), *arguments]


@pytest.mark.slow
@pytest.mark.timeout(300)  # a minute on two idle cores
def test_the_promise_holds_through_a_short_run(broker_kind: BrokerKind, tmp_path: Path) -> None:
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("the harness brings its own broker")
    given = command(tmp_path, "--faults", str(FAULTS), "--seed", str(SEED), "--json")
    done = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert said["holds"], said
    assert sum(said["faults"].values()) >= FAULTS
    assert said["verdict"]["runs"] > FAULTS
    assert left_behind(tmp_path) == []


@pytest.mark.timeout(120)
def test_an_interrupted_run_leaves_no_process(broker_kind: BrokerKind, tmp_path: Path) -> None:
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("the harness brings its own broker")
    given = command(tmp_path, "--faults", "500", "--seed", "1")
    run = subprocess.Popen(given, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    for line in run.stdout:
        if "faults begin" in line:
            break
    assert left_behind(tmp_path), "its processes name the folder, while they live"
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=END_S)
    assert (run.returncode, err) == (130, "interrupted: every process was ended\n")
    assert left_behind(tmp_path) == []


def test_every_kind_can_be_named() -> None:
    assert [kind.name for kind in chosen((), 3)] == [kind.name for kind in TABLE.values() if not kind.chosen]
    assert [kind.name for kind in chosen(("kill-leader",), 1)] == ["kill-leader"]
    with pytest.raises(ValueError, match="no such kind"):
        chosen(("kill-everything",), 1)
    with pytest.raises(ValueError, match="nothing to do"):
        chosen(("coordinator-moved",), 1)


def left_behind(folder: Path) -> list[str]:
    """Processes whose command line or environment names the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        if str(folder).encode() in told:
            found.append(told[:300].decode(errors="replace"))
    return found
