"""One real process of dueline on the leash of the tests, its log and its failpoints at hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from proof.faults import process
from proof.faults.process import GONE_S

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = "dueline.scheduler.cli.main"
LEASH: Final = "examples.demo.leash"
QUICK: Final = "tests.fault.quick"
"""The same command, with settings that have no option: see that module."""


class Process(process.Process):
    """See the module's text."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], *, module: str) -> None:
        super().__init__(name, folder)
        # On the leash of this process, so that nothing is left however the tests end.
        self._arguments = [sys.executable, "-m", LEASH, str(os.getpid()), module, *arguments]
        self._environ = dict(environ)
        self._began_at = 0  # of its log: where this life of it begins

    def start(self) -> None:
        """Start it, with nothing armed."""
        self._began_at = self.log_size()
        with open(self.log_file, "ab") as log:
            self.born(
                subprocess.Popen(
                    self._arguments, cwd=ROOT, env={**self._environ, **self.unarmed()}, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=log, start_new_session=True,
                )
            )  # fmt: skip

    def wait_ended(self, timeout_s: float = GONE_S) -> int:
        """The exit code, once it ends by itself."""
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} goes on:\n{self.log()[-3000:]}") from None

    def log(self, since: int | None = None) -> str:
        """What it said from this byte on; by default since it was started last."""
        return self.log_since(self._began_at if since is None else since)
