"""Virtual time: tasks (greenlets) that belong to hosts, timers, and one heap that decides what happens next.

Nothing here is concurrent: one task runs until it waits. Time stands still while it runs and jumps to the next entry of the heap
when all wait, so an hour without work costs nothing. The order is a function of the seed alone.

States of a host: running <-> frozen (SIGSTOP: tasks and timers wait, time goes on) | stuck (Python hangs, the client's threads,
which are timers, go on); any -> dead (kill -9: nothing of it ever runs again, no `finally` either).
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Final

from greenlet import GreenletExit, getcurrent, greenlet

Action = Callable[[], None]
FOREVER: Final = float("inf")


class Host:
    """A machine with one process: what can be frozen, and killed, as a whole. `skew_ms`: its wall clock less the true time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.skew_ms = 0.0
        self.drift = 0.0  # additional milliseconds of skew per second since `drift_from_s`
        self.drift_from_s = 0.0
        self.frozen = False
        self.stuck = False
        self.dead = False
        self.on_death: list[Action] = []
        self.late_tasks: list[tuple[Task, int]] = []
        self.late_timers: list[Timer] = []
        self.tasks: list[Task] = []

    def __repr__(self) -> str:
        return f"<host {self.name}>"


class Task:
    """A thread of a host. `main`: when it ends, the process ends."""

    def __init__(self, kernel: Kernel, host: Host, name: str, target: Action) -> None:
        self.kernel, self.host, self.name, self._target = kernel, host, name, target
        self.token = 0
        self.woken = False
        self.waiting = False
        self.over = False
        self.error: BaseException | None = None
        self.enders: list[Action] = []
        self.local: dict[str, object] = {}
        self.greenlet = greenlet(self._run, kernel.hub)

    def _run(self) -> None:
        try:
            self._target()
        except GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001 - the world decides what the end of a process means
            self.error = error
        self.over = True
        if not self.kernel.closed:
            for ender in self.enders:
                ender()

    def __repr__(self) -> str:
        return f"<task {self.host.name}/{self.name}>"


class Timer:
    """Something to do at a time, once. Made by `Kernel.after`, which fills it: there are many."""

    __slots__ = ("action", "host", "off")

    action: Action
    host: Host | None
    off: bool

    def cancel(self) -> None:
        """It does not happen. Harmless when it did."""
        self.off = True


Entry = tuple[float, int, "Task | Timer", int]
_new: Final = object.__new__


class Kernel:
    """The hub. `now_s` begins at 0; `epoch_ms` is the wall-clock time of that moment."""

    def __init__(self, seed: int, *, epoch_ms: int = 1_800_000_000_000) -> None:
        self.random = random.Random(seed)
        self.epoch_ms = epoch_ms
        self.now_s = 0.0
        self.hub = getcurrent()
        self.closed = False
        self.steps = 0
        self._heap: list[Entry] = []
        self._numbers = itertools.count()
        self._current: Task | None = None
        self._tasks: list[Task] = []

    # -- time ------------------------------------------------------------------------------------------------------------

    def true_ms(self) -> float:
        """Milliseconds since the epoch by a clock that is always right."""
        return self.epoch_ms + self.now_s * 1000

    def wall_ms(self, host: Host) -> int:
        """The same by the host's clock."""
        true_ms = self.epoch_ms + self.now_s * 1000
        return int(true_ms + host.skew_ms + host.drift * (self.now_s - host.drift_from_s))

    # -- tasks and timers ------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Task:
        """The task that runs. Raises LookupError outside of all tasks."""
        if self._current is None:
            raise LookupError("no task of the simulation runs")
        return self._current

    @property
    def in_task(self) -> bool:
        """Whether a task runs, not the hub."""
        return self._current is not None

    def spawn(self, host: Host, target: Action, name: str) -> Task:
        """A task that begins at once, when the one that runs waits."""
        task = Task(self, host, name, target)
        self._tasks.append(task)
        host.tasks.append(task)
        self._push(self.now_s, task, task.token)
        return task

    def after(self, delay_s: float, action: Action, host: Host | None = None) -> Timer:
        """Do it later, in the hub: the action must not wait. With a host: it dies and freezes with it."""
        timer: Timer = _new(Timer)
        timer.action, timer.host, timer.off = action, host, False
        at_s = self.now_s + delay_s if delay_s > 0 else self.now_s
        heapq.heappush(self._heap, (at_s, next(self._numbers), timer, 0))
        return timer

    def wait(self, timeout_s: float | None = None) -> bool:
        """The running task waits until it is woken (True) or the time is over (False)."""
        if self.closed:
            raise GreenletExit
        task = self._current or self.current
        task.token += 1
        task.woken, task.waiting = False, True
        if timeout_s is not None and timeout_s != FOREVER:
            at_s = self.now_s + timeout_s if timeout_s > 0 else self.now_s
            heapq.heappush(self._heap, (at_s, next(self._numbers), task, task.token))
        self._current = None
        self.hub.switch()
        if self.closed:
            raise GreenletExit
        self._current = task
        task.waiting = False
        return task.woken

    def give_way(self) -> None:
        """Let whatever is ready now go first."""
        self.wait(0.0)

    def wake(self, task: Task) -> None:
        """End its wait. Harmless when it does not wait."""
        if task.waiting and not task.woken:
            task.woken = True
            task.token += 1
            self._push(self.now_s, task, task.token)

    # -- hosts -----------------------------------------------------------------------------------------------------------

    def freeze(self, host: Host) -> None:
        """SIGSTOP. Called by a task of the host itself, that task stops as well."""
        host.frozen = True
        self._stop_here(host)

    def thaw(self, host: Host) -> None:
        """SIGCONT: what was due meanwhile happens now, the client's threads first."""
        host.frozen = False
        self._release(host)

    def stick(self, host: Host) -> None:
        """Python hangs; librdkafka's threads do not."""
        host.stuck = True
        self._stop_here(host)

    def unstick(self, host: Host) -> None:
        """Python goes on."""
        host.stuck = False
        self._release(host)

    def kill(self, host: Host) -> None:
        """SIGKILL."""
        if host.dead:
            return
        host.dead = True
        host.late_tasks, host.late_timers = [], []
        for action in host.on_death:
            action()
        if self._current is not None and self._current.host is host:
            self._leave()

    def _stop_here(self, host: Host) -> None:
        if self._current is not None and self._current.host is host:
            self.give_way()

    def _release(self, host: Host) -> None:
        timers, host.late_timers = host.late_timers, []
        for timer in timers:
            self._push(self.now_s, timer, 0)
        if not (host.frozen or host.stuck):
            tasks, host.late_tasks = host.late_tasks, []
            for task, token in tasks:
                self._push(self.now_s, task, token)

    # -- the loop --------------------------------------------------------------------------------------------------------

    def run(self, until_s: float) -> None:
        """Everything up to that moment. Called from the hub."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= until_s:
            at_s, _, entry, token = pop(heap)
            if isinstance(entry, Timer):
                if entry.off:
                    continue
                self.now_s = at_s  # never before now: nothing is put in the past
                host = entry.host
                if host is not None and (host.dead or host.frozen):
                    if not host.dead:
                        host.late_timers.append(entry)
                    continue
                entry.off = True
                entry.action()
            elif entry.token == token:  # else it was woken before
                self.now_s = at_s
                host = entry.host
                if entry.over or host.dead:
                    continue
                if host.frozen or host.stuck:
                    host.late_tasks.append((entry, token))
                    continue
                self.steps += 1
                self._current = entry
                entry.greenlet.switch()
                self._current = None
        self.now_s = max(self.now_s, until_s)

    def stop(self) -> None:
        """Nothing that was to come happens, and `run` returns soon."""
        self._heap.clear()

    def close(self) -> None:
        """End every task, so that nothing is left of the world. Their `finally` runs, and every wait in it ends at once."""
        self.closed = True
        self._heap.clear()
        for task in self._tasks:
            if task.greenlet and not task.over:
                self._current = task
                task.greenlet.throw(GreenletExit)
        self._current = None
        self._tasks.clear()

    def _push(self, at_s: float, entry: Task | Timer, token: int) -> None:
        heapq.heappush(self._heap, (at_s, next(self._numbers), entry, token))

    def _leave(self) -> None:
        current, self._current = self._current, None
        self.hub.switch()
        if self.closed:
            raise GreenletExit
        self._current = current


def time_of(kernel: Kernel) -> Callable[[], float]:
    """Reads `now_s`: asked for several times at each step, so not by a function of Python's."""
    return partial(attrgetter("now_s"), kernel)


class Waiters:
    """Tasks that wait for one thing to happen."""

    __slots__ = ("_kernel", "_tasks")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._tasks: list[Task] = []

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until `wake_all` (True) or the time is over (False)."""
        task = self._kernel._current or self._kernel.current
        self._tasks.append(task)
        try:
            return self._kernel.wait(timeout_s)
        finally:
            if task in self._tasks:
                self._tasks.remove(task)

    def wake_all(self) -> None:
        """It happened."""
        if not self._tasks:
            return
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            self._kernel.wake(task)

    def wake_one(self) -> None:
        """It happened, for the one that has waited longest."""
        if self._tasks:
            self._kernel.wake(self._tasks.pop(0))
