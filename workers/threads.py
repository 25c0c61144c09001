"""How the worker's loop waits and has blocking work done. The loop owns all protocol state and is the only one to change
it; everything else runs elsewhere and answers with an event in the inbox. A simulation brings its own `Shell`, in which
nothing is a thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

E = TypeVar("E")
Task = Callable[[], None]


class Inbox(Generic[E]):
    """Events for the loop, from any thread, in the order posted."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[E] = SimpleQueue()

    def post(self, event: E) -> None:
        """Put an event in and wake the loop."""
        self._queue.put(event)

    def wait(self, timeout_s: float) -> list[E]:
        """All events that are here; waits for one, at most so long."""
        events: list[E] = []
        try:
            events.append(self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait())
            while True:
                events.append(self._queue.get_nowait())
        except Empty:
            return events


class Tasks(Protocol):
    """A place where blocking work is done."""

    def submit(self, task: Task) -> None:
        """Do it soon."""
        ...

    def close(self) -> None:
        """Take nothing more; what runs may end."""
        ...


class Shell(Protocol):
    """Where blocking work is done."""

    def tasks(self, name: str, threads: int, *, awaited: bool = True) -> Tasks:
        """So many pieces of work at a time, in order; 1: one after the other. `awaited`: `join` waits for it."""
        ...

    def feed(self, name: str, step: Callable[[float], bool], end: Task) -> None:
        """Call `step(timeout_s)` again and again until it returns False, then `end()`: a client that one thread uses."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait, in a task, before the next try."""
        ...

    def join(self, timeout_s: float) -> None:
        """After all was closed: wait until clients are released. Handlers that are stuck are not waited for."""
        ...


class ThreadTasks:
    """Daemon threads: a handler that never ends must not keep the process alive."""

    def __init__(self, name: str, threads: int, broken: Callable[[BaseException], None]) -> None:
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._count = threads
        self._broken = broken
        self.threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def submit(self, task: Task) -> None:
        """See Tasks."""
        self._queue.put(task)

    def close(self) -> None:
        """See Tasks."""
        for _ in range(self._count):
            self._queue.put(None)

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                task()
            except Exception as error:  # noqa: BLE001 - a right is missing, or a bug: the loop raises it
                self._broken(error)


class Threads:
    """The shell of a real process. `broken` is told of an error that nobody expected."""

    FEED_WAIT_S = 0.1
    """How long a reader waits for a record; bounds how late a seek or a stop is seen, not how late a record is."""

    def __init__(self, broken: Callable[[BaseException], None]) -> None:
        self._broken = broken
        self._threads: list[threading.Thread] = []

    def tasks(self, name: str, threads: int, *, awaited: bool = True) -> ThreadTasks:
        """See Shell."""
        made = ThreadTasks(name, threads, self._broken)
        if awaited:
            self._threads = [one for one in self._threads if one.is_alive()] + made.threads
        return made

    def join(self, timeout_s: float) -> None:
        """See Shell."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def pause(self, seconds: float) -> None:
        """See Shell."""
        time.sleep(seconds)

    def feed(self, name: str, step: Callable[[float], bool], end: Task) -> None:
        """See Shell."""

        def run() -> None:
            try:
                while step(self.FEED_WAIT_S):
                    pass
            except Exception as error:  # noqa: BLE001 - a right is missing, or a bug: the loop raises it
                self._broken(error)
            finally:
                end()

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
