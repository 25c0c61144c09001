"""A dueline process on a simulated host: started, stopped, killed, frozen, and restarted by a supervisor.

Each life is a kernel host of its own, under the machine's name, so that nothing of a killed process can ever run again. The code
is that of `dueline scheduler` and `dueline worker`; what stands here is what their command-line wrappers do.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from greenlet import GreenletExit

from proof.history.acts import Life as LifeNote
from proof.history.acts import Role
from proof.simulation.kernel import Host, Kernel, time_of
from proof.simulation.threads import Event

WATCHDOG_EXIT: Final = 70
"""What a real watchdog ends the process with; the supervisor restarts it."""


class SimClock:
    """Port `Clock` of a host. `monotonic_s`: a frozen host's time goes on."""

    def __init__(self, kernel: Kernel, host: Host) -> None:
        self._kernel, self._host = kernel, host
        self.monotonic_s = time_of(kernel)

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as the host believes."""
        return self._kernel.wall_ms(self._host)



class Action(StrEnum):
    """What an armed failpoint does."""

    KILL = "kill"
    FREEZE = "freeze"
    STICK = "stick"


@dataclass(slots=True, kw_only=True)
class Point:
    """An armed failpoint: fires at the `left`-th time it is reached; a freeze or stick ends after `for_s`."""

    action: Action
    left: int = 1
    for_s: float = 0.0


class Life(Host):
    """One life of a process. `stop` is what SIGTERM sets."""

    def __init__(self, process: Process, pid: int, began_ms: int) -> None:
        super().__init__(process.name)
        self.process, self.pid, self.began_ms = process, pid, began_ms
        self.stop = Event(process.kernel)
        self.points: dict[str, Point] = {}
        self.ids = 0
        self.hangs = False  # the next transaction call never returns
        self.hung = False

    def new_id(self) -> str:
        """Unique in a world, the same in every replay."""
        self.ids += 1
        return f"{self.pid:04x}{self.ids:04x}"


Main = Callable[[Life], int]
"""The process's program; its exit code."""


@dataclass(slots=True, kw_only=True)
class Diary:
    """What a world notes of its processes. `findings`: what no process may do, each a line."""

    lives: list[LifeNote] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    pids: int = 0


class Process:
    """What a supervisor keeps running. `wanted`: whether it restarts what ended."""

    def __init__(self, kernel: Kernel, name: str, role: Role, main: Main, diary: Diary) -> None:
        self.kernel, self.name, self.role = kernel, name, role
        self._main, self._diary = main, diary
        self.life: Life | None = None
        self.wanted = False
        self.restart_s = 1.0
        self.call_ms = 0
        """Noted with each life."""
        self.skew_ms = self.drift = self.drift_from_s = 0.0

    # -- what can be done to it ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a life, if none is going on."""
        self.wanted = True
        if self.life is not None:
            return
        self._diary.pids += 1
        life = self.life = Life(self, self._diary.pids, int(self.kernel.true_ms()))
        life.skew_ms, life.drift, life.drift_from_s = self.skew_ms, self.drift, self.drift_from_s
        self.kernel.spawn(life, lambda: self._live(life), f"{self.name}.main")

    def stop(self) -> None:
        """SIGTERM, and no restart until `start`."""
        self.wanted = False
        if self.life is not None:
            self.life.stop.set()

    def kill(self) -> None:
        """SIGKILL, and no restart until `start`."""
        self.wanted = False
        if self.life is not None:
            self._end(self.life, "SIGKILL")

    def freeze(self, for_s: float) -> None:
        """SIGSTOP, and SIGCONT after so long."""
        life = self.life
        if life is not None and not life.frozen:
            self.kernel.after(for_s, lambda: self.kernel.thaw(life))
            self.kernel.freeze(life)

    def stick(self, for_s: float) -> None:
        """Python hangs for so long; the client's own threads do not."""
        life = self.life
        if life is not None and not life.stuck:
            self.kernel.after(for_s, lambda: self.kernel.unstick(life))
            self.kernel.stick(life)

    def set_clock(self, *, skew_ms: float, drift: float = 0.0) -> None:
        """The machine's wall clock from now on: so far off, and `drift` milliseconds more each second."""
        self.skew_ms, self.drift, self.drift_from_s = skew_ms, drift, self.kernel.now_s
        if self.life is not None:
            self.life.skew_ms, self.life.drift, self.life.drift_from_s = skew_ms, drift, self.kernel.now_s

    # -- what its own code does ------------------------------------------------------------------------------------------

    def reach(self, name: str) -> None:
        """A failpoint was reached by the running task."""
        life = self.life
        point = life.points.get(name) if life is not None else None
        if life is None or point is None:
            return
        point.left -= 1
        if point.left > 0:
            return
        del life.points[name]
        if point.action is Action.KILL:
            self._end(life, f"SIGKILL at {name}")
        elif point.action is Action.FREEZE:
            self.freeze(point.for_s)
        else:
            self.stick(point.for_s)

    def die(self) -> None:
        """The watchdog ends the process."""
        if self.life is None:
            return
        if not self.life.hung:
            self._diary.findings.append(f"the watchdog ended {self.name} at {self.kernel.now_s:.1f} s, though nothing hung")
        self._end(self.life, f"exit {WATCHDOG_EXIT}")

    # -- a life ----------------------------------------------------------------------------------------------------------

    def _live(self, life: Life) -> None:
        try:
            code = self._main(life)
        except GreenletExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a process that ends so is a finding, whatever it was
            self._diary.findings.append(f"{self.name} ended with {_told(error)}")
            self._end(life, f"{type(error).__name__}: {error}")
        else:
            self._end(life, f"exit {code}")

    def _end(self, life: Life, how: str) -> None:
        self._diary.lives.append(self.note(life, int(self.kernel.true_ms()), how))
        self.life = None
        if self.wanted:
            self.kernel.after(self.restart_s, self._restart)
        self.kernel.kill(life)  # does not return when the life's own task called

    def _restart(self) -> None:
        if self.wanted:
            self.start()

    def note(self, life: Life, ended_ms: int, how: str) -> LifeNote:
        """The life as a history tells it."""
        return LifeNote(
            process=self.name, role=self.role, pid=life.pid, began_ms=life.began_ms, ended_ms=ended_ms, how=how,
            call_ms=self.call_ms,
        )  # fmt: skip

    def thread_broke(self, thread: object, error: BaseException) -> None:
        """An exception that nobody caught ended a thread."""
        self._diary.findings.append(f"{self.name}: {thread} ended with {_told(error)}")


def _told(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in last)
    return f"{type(error).__name__}: {error}{where}"
