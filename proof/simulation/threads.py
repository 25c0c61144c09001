"""The standard library's threads, locks, queues and clocks, on the kernel's tasks: same names, same rules, virtual time.

Only what dueline's processes use is here; `substitution` puts it in the place of the real ones. A task runs until it waits, so a
lock that is free is simply taken. Nothing here ever blocks a thread of the operating system.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import Empty
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from greenlet import GreenletExit

from proof.simulation.kernel import Kernel, Task, Waiters

T = TypeVar("T")
Uncaught = Callable[["Thread", BaseException], None]
"""Told of an exception that ended a thread, which a real interpreter prints."""


class Lock:
    """`threading.Lock`."""

    __slots__ = ("_kernel", "_taken", "_waiters")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._taken = False
        self._waiters: Waiters | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Whether it was taken."""
        if not self._taken:
            self._taken = True
            return True
        if not blocking:
            return False
        deadline = self._kernel.now_s + timeout if timeout >= 0 else None
        waiters = self._waiters = self._waiters or Waiters(self._kernel)
        while self.locked():
            left = None if deadline is None else deadline - self._kernel.now_s
            if left is not None and left <= 0:
                return False
            waiters.wait(left)
        self._taken = True
        return True

    def release(self) -> None:
        """Raises RuntimeError when it is free."""
        if not self._taken:
            raise RuntimeError("release of a lock that is free")
        self._taken = False
        if self._waiters is not None:
            self._waiters.wake_one()

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._taken

    def __enter__(self) -> bool:
        if self._taken:
            return self.acquire()
        self._taken = True
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._waiters is not None:
            self.release()
        self._taken = False


class RLock(Lock):
    """`threading.RLock`."""

    __slots__ = ("_depth", "_owner")

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._owner: Task | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Whether it was taken, once more if it was ours."""
        task = self._kernel.current
        if self._owner is not task and not super().acquire(blocking, timeout):
            return False
        self._owner = task
        self._depth += 1
        return True

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        """Raises RuntimeError when it is not ours."""
        if self._owner is not self._kernel.current:
            raise RuntimeError("release of a lock of somebody else")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            super().release()


class Event:
    """`threading.Event`."""

    __slots__ = ("_set", "_waiters")

    def __init__(self, kernel: Kernel) -> None:
        self._set = False
        self._waiters = Waiters(kernel)

    def is_set(self) -> bool:
        """Whether it is."""
        return self._set

    def set(self) -> None:
        """Any task, and the hub."""
        self._set = True
        self._waiters.wake_all()

    def clear(self) -> None:
        """It has to happen anew."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set, at the latest after so many seconds."""
        if not self._set:
            self._waiters.wait(timeout)
        return self._set


class Thread:
    """`threading.Thread`: a task of the host that starts it. Ends with its process, daemon or not."""

    def __init__(
        self,
        kernel: Kernel,
        uncaught: Uncaught,
        target: Callable[..., object],
        *,
        name: str = "thread",
        args: tuple[Any, ...] = (),
        daemon: bool | None = None,
    ) -> None:
        self.name, self.daemon = name, bool(daemon)
        self._kernel, self._uncaught = kernel, uncaught
        self._target, self._args = target, args
        self._task: Task | None = None
        self._ended = Event(kernel)

    def start(self) -> None:
        """Raises RuntimeError the second time."""
        if self._task is not None:
            raise RuntimeError(f"thread {self.name} was started already")
        self._task = self._kernel.spawn(self._kernel.current.host, self._run, self.name)
        self._task.local[_THREAD] = self

    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._task is not None and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, at most so many seconds."""
        if self._task is None or self._task is self._kernel.current:
            raise RuntimeError(f"thread {self.name} cannot be waited for here")
        self._ended.wait(timeout)

    def _run(self) -> None:
        try:
            self._target(*self._args)
        except GreenletExit:
            raise
        except BaseException as error:  # noqa: BLE001 - as in a real process: the thread ends, the process goes on
            self._uncaught(self, error)
        finally:
            self._ended.set()

    def __repr__(self) -> str:
        return f"<thread {self.name}>"


class SimpleQueue(Generic[T]):
    """`queue.SimpleQueue`."""

    __slots__ = ("_items", "_kernel", "_waiters")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._items: deque[T] = deque()
        self._waiters = Waiters(kernel)

    def put(self, item: T) -> None:
        """Any task, and the hub."""
        self._items.append(item)
        self._waiters.wake_one()

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Raises Empty after the time-out."""
        items, kernel = self._items, self._kernel
        deadline = None if timeout is None else kernel.now_s + timeout
        while not items:
            left = None if deadline is None else deadline - kernel.now_s
            if not block or (left is not None and left <= 0):
                raise Empty
            self._waiters.wait(left)
        return items.popleft()

    def get_nowait(self) -> T:
        """Raises Empty."""
        if not self._items:
            raise Empty
        return self._items.popleft()

    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not self._items

    def qsize(self) -> int:
        """How much is in it."""
        return len(self._items)


_THREAD: Final = "thread"
_Thread = Thread


class Threading:
    """In the place of the module `threading`. `uncaught` is told of exceptions that end threads."""

    def __init__(self, kernel: Kernel, uncaught: Uncaught) -> None:
        self._kernel, self._uncaught = kernel, uncaught

    def Lock(self) -> Lock:
        """A new one."""
        return Lock(self._kernel)

    def RLock(self) -> RLock:
        """A new one."""
        return RLock(self._kernel)

    def Event(self) -> Event:
        """A new one."""
        return Event(self._kernel)

    def Thread(
        self, *, target: Callable[..., object], name: str = "thread", args: tuple[Any, ...] = (), daemon: bool | None = None
    ) -> _Thread:
        """A new one, not started."""
        return _Thread(self._kernel, self._uncaught, target, name=name, args=args, daemon=daemon)

    def current_thread(self) -> _Thread:
        """The one that runs; that of a process's beginning has an object, too."""
        local = self._kernel.current.local
        thread = local.get(_THREAD)
        if not isinstance(thread, _Thread):
            thread = local[_THREAD] = _Thread(self._kernel, self._uncaught, _nothing, name="main")
        return thread


class Time:
    """In the place of the module `time`. `CLOCK_BOOTTIME` counts suspend, and so does everything here but the wall clock."""

    CLOCK_BOOTTIME: Final = 7

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def sleep(self, seconds: float) -> None:
        """The running task waits."""
        self._kernel.wait(seconds)

    def monotonic(self) -> float:
        """Seconds of virtual time."""
        return self._kernel.now_s

    def clock_gettime(self, _clock: int) -> float:
        """Seconds of virtual time."""
        return self._kernel.now_s

    def time_ns(self) -> int:
        """Nanoseconds since the epoch by the wall clock of the running task's host."""
        return self._kernel.wall_ms(self._kernel.current.host) * 1_000_000


def _nothing() -> None:
    """The beginning of a process has no target."""
