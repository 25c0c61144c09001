"""`dueline`, with settings that no option of the command sets, so that a run need not wait for production's time-outs.

`PROOF_SCHEDULER` and `PROOF_WORKER` hold JSON objects of fields of SchedulerSettings and WorkerSettings. `PROOF_CLOCK_FILE`
names a file with the milliseconds by which this host's wall clock is wrong now. All else is the command's own code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from dueline.scheduler.cli import processes
from dueline.scheduler.cli.main import main
from dueline.scheduler.cli.session import Session
from dueline.scheduler.kafka.clock import SystemClock

SCHEDULER_ENVIRONMENT: Final = "PROOF_SCHEDULER"
WORKER_ENVIRONMENT: Final = "PROOF_WORKER"
CLOCK_ENVIRONMENT: Final = "PROOF_CLOCK_FILE"


class WrongClock(SystemClock):
    """A host whose wall clock is wrong by what a file says, which may change at any time."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def wall_ms(self) -> int:
        """See SystemClock."""
        return super().wall_ms() + self._shift_ms()

    def _shift_ms(self) -> int:
        try:
            return int(self._file.read_text(encoding="utf-8") or "0")
        except FileNotFoundError:
            return 0


def prepare() -> None:
    """Put the settings in place: by name, in the module that uses them."""
    for name, variable in (("SchedulerSettings", SCHEDULER_ENVIRONMENT), ("WorkerSettings", WORKER_ENVIRONMENT)):
        replace(processes, name, variable)
    if os.environ.get(CLOCK_ENVIRONMENT):
        of = vars(processes)["session_of"]
        setattr(processes, "session_of", lambda context: wrong(of(context)))  # noqa: B010 - see replace


def replace(module: ModuleType, name: str, variable: str) -> None:
    """The same settings, but for the fields that the environment names."""
    make: Callable[..., Any] = vars(module)[name]
    fields: dict[str, Any] = json.loads(os.environ.get(variable, "{}"))
    setattr(module, name, lambda **given: make(**{**given, **fields}))


def wrong(made: Session) -> Session:
    """The session of a host whose wall clock is wrong."""
    made.clock = WrongClock(Path(os.environ[CLOCK_ENVIRONMENT]))
    return made


if __name__ == "__main__":
    prepare()
    main()
