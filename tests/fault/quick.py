"""`dueline`, with settings that no option of the command sets, so that a test need not wait for production's time-outs.

`FAULT_SCHEDULER` and `FAULT_WORKER` hold JSON objects of fields of SchedulerSettings and WorkerSettings; `FAULT_WALL_MS`
is added to the wall clock; `FAULT_NO_FENCE=1` makes the self-test send what every broker accepts, as if this broker had
no fence; `FAULT_UNUSABLE_S` is how long a topic that can't be written is left alone. All else is the command's own code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dueline.scheduler.cli import processes
from dueline.scheduler.cli.main import main
from dueline.scheduler.cli.session import Session
from dueline.scheduler.kafka import cluster
from dueline.scheduler.kafka.clock import SystemClock
from dueline.scheduler.kafka.selftest import sentinel
from dueline.scheduler.leader import queues


class ShiftedClock(SystemClock):
    """A host whose wall clock is wrong."""

    def wall_ms(self) -> int:
        """See SystemClock."""
        return super().wall_ms() + int(os.environ["FAULT_WALL_MS"])


def prepare() -> None:
    """Put the settings in place: by name, in the modules that use them."""
    for name, variable in (("SchedulerSettings", "FAULT_SCHEDULER"), ("WorkerSettings", "FAULT_WORKER")):
        replace(processes, name, variable)
    if os.environ.get("FAULT_WALL_MS"):
        of = vars(processes)["session_of"]
        setattr(processes, "session_of", lambda context: shifted(of(context)))  # noqa: B010 - see replace
    if os.environ.get("FAULT_UNUSABLE_S"):
        setattr(queues, "UNUSABLE_S", float(os.environ["FAULT_UNUSABLE_S"]))  # noqa: B010
    if os.environ.get("FAULT_NO_FENCE"):
        check = vars(cluster)["check_fence"]
        setattr(cluster, "check_fence", lambda *given, **named: check(*given, **{**named, "forge": sentinel}))  # noqa: B010


def replace(module: ModuleType, name: str, variable: str) -> None:
    """The same settings, but for the fields that the environment names."""
    make: Callable[..., Any] = vars(module)[name]
    fields: dict[str, Any] = json.loads(os.environ.get(variable, "{}"))
    setattr(module, name, lambda **given: make(**{**given, **fields}))


def shifted(made: Session) -> Session:
    """The session of a host whose wall clock is wrong."""
    made.clock = ShiftedClock()
    return made


if __name__ == "__main__":
    prepare()
    main()
