"""One real process of dueline in a run: a child of the nursery, its lives noted.

It is the leader of a session of its own, so Ctrl-C reaches the harness alone, and it ends when the harness does, however that
ends (see `nursery`).
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proof.faults.clock import now_ms
from proof.faults.notes import Notebook
from proof.faults.nursery import Nursery
from proof.faults.process import Process
from proof.history.acts import Life, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where processes come from, where their files are, and who takes notes of them."""

    nursery: Nursery
    folder: Path
    notes: Notebook


class Child(Process):
    """See the module's text. `arguments` and `environ` may be changed between two lives."""

    def __init__(
        self, name: str, role: Role, home: Home, arguments: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        super().__init__(name, home.folder)
        self.role = role
        self.arguments = list(arguments)
        self.environ = dict(environ)
        self.session_ms = 0
        """Noted with each life: a session time-out that is not the run's."""
        self.call_ms = 0
        """The same: how long its transactions may go without an answer."""
        self._nursery, self._notes = home.nursery, home.notes
        self._noted = True
        self._born_at = 0

    def start(self) -> None:
        """Start it, with nothing armed. Does nothing to one that runs."""
        if self.runs:
            return
        self.noted_end()
        self._born_at = self.log_size()
        self.born(self._nursery.bear(self.arguments, {**self.environ, **self.unarmed()}, self.log_file))
        self._noted = False
        life = Life(
            process=self.name, role=self.role, pid=self.pid, began_ms=now_ms(), ended_ms=-1, how="runs",
            session_ms=self.session_ms, call_ms=self.call_ms,
        )  # fmt: skip
        self._notes.began(life)

    def has_said(self, text: str) -> bool:
        """In this life."""
        return text in self.log_since(self._born_at)

    def noted_end(self) -> int | None:
        """Note the end of a life that has ended; the exit code if that was not noted before."""
        code = self.exit_code
        if self._noted or code is None:
            return None
        self._noted = True
        self._notes.ended(self.name, self.pid, how_ended(code))
        return code

    def kill(self) -> None:
        """See Process."""
        super().kill()
        self.noted_end()

    def last_words(self, count: int = 2_000) -> str:
        """The end of its log."""
        return self.log_since(self.log_size() - count)


def how_ended(code: int) -> str:
    """As lives tell it."""
    return signal.Signals(-code).name if code < 0 else f"exit {code}"
