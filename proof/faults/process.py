"""One real process at a time under one name, however it is born: told what to do by signals and failpoints, asked how it is."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from dueline.scheduler.kafka.failpoints import FILE_ENVIRONMENT

GONE_S: Final = 20.0
STOPPED: Final = "T"


class Running(Protocol):
    """A process as `subprocess.Popen` shows it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """The exit code once it has ended; negative: by that signal."""

    def wait(self, timeout: float) -> int:
        """The exit code. Raises when it does not end in time."""


class Process:
    """Started again, it appends to the same log. Whoever derives from this starts it (`born`)."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._points = folder / f"{name}.failpoints"
        self._process: Running | None = None

    def born(self, process: Running) -> None:
        """It runs from now on."""
        self._process = process

    def unarmed(self) -> dict[str, str]:
        """What its environment needs so that `arm` reaches it. Nothing is armed from now on."""
        self._points.unlink(missing_ok=True)
        return {FILE_ENVIRONMENT: str(self._points)}

    # -- how it is -----------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Of the process that runs, or ran last; -1 before the first start."""
        return self._process.pid if self._process is not None else -1

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and before the first start."""
        return self._process.poll() if self._process is not None else None

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended; a stopped process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def killed(self) -> bool:
        """Whether the process that ran last was ended by SIGKILL."""
        return self.exit_code == -signal.SIGKILL

    @property
    def stopped(self) -> bool:
        """Whether it stands still by SIGSTOP."""
        try:
            return self.runs and Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == STOPPED
        except (FileNotFoundError, ProcessLookupError):
            return False

    def log_size(self) -> int:
        """Bytes."""
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def log_since(self, byte: int) -> str:
        """What it said from this byte on."""
        if not self.log_file.exists():
            return ""
        with open(self.log_file, "rb") as log:
            log.seek(max(0, byte))
            return log.read().decode(errors="replace")

    # -- what it is told -----------------------------------------------------------------------------------------------

    def arm(self, text: str) -> None:
        """Arm exactly these failpoints; "" disarms all, and lets a blocked thread go on."""
        fresh = self._points.with_suffix(".new")
        fresh.write_text(text)
        os.replace(fresh, self._points)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to a process that runs; one that ends just now needs none."""
        if self.runs:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, which ends a stopped process too; returns when it is gone."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._process.wait(GONE_S)
