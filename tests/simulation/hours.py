"""A hundred hours of a cluster, half of them under all kinds of faults, as a process: `python -m tests.simulation.hours REPORT`.

It needs both processors for minutes, while tests of real brokers mostly wait. So it starts with the session, at the lowest
priority, and its test comes last (`conftest.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from proof.simulation.plan import Profile
from proof.simulation.runner import replay_command, run_many, totals
from proof.simulation.setup import Setup

HOURS: Final = 1.0
WORLDS: Final = ((Profile.CALM, 50, 0.5), (Profile.ROUGH, 35, 1.0), (Profile.BRUTAL, 15, 1.0))
"""Profile, how many worlds, and their load."""
LOWEST: Final = 19


class Hours:
    """The process, from its start to its report in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._report = folder / "hours.json"
        self._log = folder / "hours.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.simulation.hours", str(self._report)], stdout=log, stderr=subprocess.STDOUT
            )

    def report(self) -> str:
        """Its JSON, once it is there. What it printed is printed."""
        code = self._process.wait()
        sys.stdout.write(self._log.read_text())
        assert code == 0, f"the simulated hours ended with {code}"
        return self._report.read_text()

    def end(self) -> None:
        """Nothing of it is left."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def main(report: Path) -> None:
    """Run all of them, and write what came of it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the worlds' processes are ended too
    os.nice(LOWEST)
    setups = [
        Setup(seed=seed, hours=HOURS, profile=profile, load=load)
        for profile, count, load in WORLDS
        for seed in range(1, count + 1)
    ]
    reports = []
    for one in run_many(setups, jobs=os.cpu_count() or 1):
        reports.append(one)
        setup, faults = one.setup, sum(one.faults.values())
        sys.stdout.write(f"seed {setup.seed} {setup.profile}: {one.runs} runs, {faults} faults, {one.cpu_s:.1f} s\n")
        sys.stdout.flush()
    broken = {replay_command(one.setup): one.lines for one in reports if not one.holds}
    report.write_text(json.dumps({**totals(reports), "broken": broken}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
