"""The real processes of the demo: two schedulers and two workers, each the `dueline` command with a log file of its own.

A child is the leader of its own session, so Ctrl-C in the terminal reaches the demo alone, which then ends them in
order. SIGKILL also ends what is stopped, and `leash` ends all children of a demo that was itself killed.
"""

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
LEASH: Final = (sys.executable, "-m", "examples.demo.leash", str(os.getpid()))
DUELINE: Final = (*LEASH, "dueline.scheduler.cli.main")
END_S: Final = 10.0
"""For a killed process to be gone."""


class Child:
    """One process at a time under one name; it can be started again. `folder` keeps its log, health and failpoints."""

    def __init__(
        self, name: str, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], launcher: Sequence[str] = DUELINE
    ) -> None:
        """`launcher`: what runs the command, e.g. under a profiler."""
        self.name = name
        self.log_file = folder / f"{name}.log"
        self.health_file = folder / f"{name}.health"
        self.failpoint_file = folder / f"{name}.failpoints"
        self._arguments = [*launcher, *arguments, "--health-file", str(self.health_file)]
        self._environ = {**environ, FILE_ENVIRONMENT: str(self.failpoint_file)}
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def start(self) -> None:
        """Start it; the log goes on where it ended."""
        self.health_file.unlink(missing_ok=True)
        self.failpoint_file.unlink(missing_ok=True)
        self._killed = False
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
    def ended_by_itself(self) -> int | None:
        """The exit code of a process that nobody here killed; None while all is well."""
        return self._process.poll() if self._process is not None and not self._killed else None

    def arm(self, failpoint: str) -> None:
        """Arm a named failpoint in the running process, e.g. `leader.before-commit=stop`."""
        fresh = self.failpoint_file.with_suffix(".new")
        fresh.write_text(failpoint)
        os.replace(fresh, self.failpoint_file)

    def wake(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def strike(self) -> None:
        """SIGKILL; `gone` waits for the end. Does nothing to one that has ended."""
        self._killed = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def gone(self) -> None:
        """Wait until the process has ended."""
        if self._process is not None:
            self._process.wait(END_S)

    def terminate(self) -> None:
        """SIGTERM: it ends in order; `gone` waits for it."""
        self._killed = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def log_size(self) -> int:
        """How long its log is now, bytes."""
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def log_lines(self, since: int = 0) -> list[str]:
        """Its log from this byte on."""
        if not self.log_file.exists():
            return []
        with open(self.log_file, "rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace").splitlines()


class Crew:
    """All children of the demo."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = dict(environ)
        self.schedulers: list[Child] = []
        self.workers: list[Child] = []

    def add_scheduler(self, name: str, *arguments: str, launcher: Sequence[str] = DUELINE) -> None:
        """A scheduler, not yet started."""
        self.schedulers.append(Child(name, ["scheduler", *arguments], self._folder, self._environ, launcher))

    def add_worker(self, name: str, *arguments: str, launcher: Sequence[str] = DUELINE) -> None:
        """A worker, not yet started."""
        given = ["worker", "--worker-id", name, *arguments]
        self.workers.append(Child(name, given, self._folder, self._environ, launcher))

    @property
    def all(self) -> list[Child]:
        """Schedulers, then workers."""
        return [*self.schedulers, *self.workers]

    def with_pid(self, pid: int) -> Child:
        """The child whose process has, or last had, this id. Raises LookupError."""
        for child in self.all:
            if child.pid == pid:
                return child
        raise LookupError(f"no process of the demo has the id {pid}")

    def command(self, *arguments: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run another `dueline` command to its end."""
        return subprocess.run(
            [*DUELINE, *arguments], cwd=ROOT, env=self._environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=timeout_s, check=False,
        )  # fmt: skip

    def kill(self) -> None:
        """The power fails: everything at once."""
        for child in self.all:
            child.strike()
        for child in self.all:
            child.gone()


def environment(bootstrap_servers: str, namespace: str, own: Mapping[str, str]) -> dict[str, str]:
    """What children inherit: nothing of the caller's own dueline settings but the cache of the broker's jars."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DUELINE_") or name == "DUELINE_CACHE"}
    return {
        **kept,
        "DUELINE_BOOTSTRAP_SERVERS": bootstrap_servers,
        "DUELINE_NAMESPACE": namespace,
        "PYTHONUNBUFFERED": "1",
        **own,
    }
