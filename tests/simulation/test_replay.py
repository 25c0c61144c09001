"""A seed is a world: run again, even with another hash seed of the interpreter, it gives the same history, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import sys
from proof.simulation.runner import run_one
from proof.simulation.setup import Setup
from proof.simulation.plan import Profile
for seed in map(int, sys.argv[2:]):
    report = run_one(Setup(seed=seed, hours=float(sys.argv[1]), profile=Profile.BRUTAL))
    assert report.runs > 20, report
    print(seed, report.digest)
"""


def digests(hash_seed: str, *seeds: int, hours: float = 0.1) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(hours), *map(str, seeds)],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_seed_gives_the_same_history_byte_for_byte() -> None:
    first, second = digests("1", 3, 4), digests("2", 4, 3)  # in another order: nothing is left over of the world before
    assert first == second
    assert first["3"] != first["4"]
