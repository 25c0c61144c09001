"""One real process of dueline: started, stopped (SIGSTOP), woken, killed; its log and its failpoints at hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dueline.scheduler.kafka.failpoints import FILE_ENVIRONMENT

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = "dueline.scheduler.cli.main"
LEASH: Final = "examples.demo.leash"
QUICK: Final = "tests.fault.quick"
"""The same command, with settings that have no option: see that module."""
GONE_S: Final = 20.0
STOPPED: Final = "T"


class Process:
    """One process at a time under one name; started again, it appends to the same log."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], *, module: str) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._points = folder / f"{name}.failpoints"
        # On the leash of this process, so that nothing is left however the tests end.
        self._arguments = [sys.executable, "-m", LEASH, str(os.getpid()), module, *arguments]
        self._environ = {**environ, FILE_ENVIRONMENT: str(self._points)}
        self._process: subprocess.Popen[bytes] | None = None
        self._began_at = 0  # of its log: where this life of it begins

    def start(self) -> None:
        """Start it, with nothing armed."""
        self._points.unlink(missing_ok=True)
        self._began_at = self.log_size()
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                self._arguments, cwd=ROOT, env=self._environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Of the process that runs, or ran last; -1 before the first start."""
        return self._process.pid if self._process is not None else -1

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll() if self._process is not None else None

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended; a stopped process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def stopped(self) -> bool:
        """Whether it stands still by SIGSTOP."""
        if not self.runs:
            return False
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == STOPPED

    def arm(self, text: str) -> None:
        """Arm exactly these failpoints; "" disarms all, and lets a blocked thread go on."""
        fresh = self._points.with_suffix(".new")
        fresh.write_text(text)
        os.replace(fresh, self._points)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to a process that runs."""
        if self.runs:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, which ends a stopped process too; returns when it is gone."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait(GONE_S)

    def wait_ended(self, timeout_s: float = GONE_S) -> int:
        """The exit code, once it ends by itself."""
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} goes on:\n{self.log()[-3000:]}") from None

    def log_size(self) -> int:
        """Bytes."""
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def log(self, since: int | None = None) -> str:
        """What it said from this byte on; by default since it was started last."""
        if not self.log_file.exists():
            return ""
        with open(self.log_file, "rb") as log:
            log.seek(self._began_at if since is None else since)
            return log.read().decode(errors="replace")
