"""L10: a call into the Kafka client that hangs longer than its bound ends the process.

Every such call has a time-out of its own, shorter than the bound here, so an expiry means that the client is broken
and that nothing in this process can be trusted to release what it holds. The watch counts its own ticks, not a clock:
a process that was stopped and woken (SIGSTOP, suspend) has not hung, and must find out from the broker that it is late.

While no broker answers, a call may overrun its time-out and yet be well: the client sends offsets of a transaction only
once it has found the group's coordinator, and waits for that as long as it takes (seen with 2.16). So the broker is asked
before the process ends, and a call that was waiting for it is given a last chance once it answers.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)

TICK_S: Final = 0.25  # coarse: bounds are tens of seconds
AWAY_S: Final = 5.0  # how soon a broker that did not answer is asked again
LAST_CHANCE_S: Final = 10.0  # a client needs about 1 s to connect again, and a few requests to end its call
EXIT_CODE: Final = 70  # EX_SOFTWARE: a supervisor restarts it


def die_now() -> None:
    """End the process at once: no cleanup, since cleanup would call the client that hangs."""
    logging.shutdown()
    os._exit(EXIT_CODE)


@dataclass(slots=True)
class _Watch:
    what: str
    ticks_left: int
    bound_s: float
    excused: bool = False
    last_chance: bool = False


class Watchdog:
    """Watches calls of any thread. The watching thread starts with the first of them. `answers`: whether a broker does."""

    def __init__(
        self, die: Callable[[], None] = die_now, *, tick_s: float = TICK_S, answers: Callable[[], bool] | None = None
    ) -> None:
        self._die = die
        self._answers = answers
        self._tick_s = tick_s
        self._watches: dict[int, _Watch] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @contextmanager
    def guard(self, what: str, bound_s: float) -> Iterator[None]:
        """The body must end within `bound_s` seconds of running time, or the process ends."""
        number = next(self._numbers)
        watch = _Watch(what, self._ticks(bound_s), bound_s)
        with self._lock:
            self._watches[number] = watch
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="dueline-watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._watches[number]

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._tick_s):
            for watch in self._expired():
                if self._excused(watch):
                    continue
                log.critical(
                    "%s has not returned for %.0f s, which its own time-out forbids: the Kafka client hangs; "
                    "ending this process, another one takes over",
                    watch.what,
                    watch.bound_s,
                    extra={"action": "watchdog.expired"},
                )
                self._die()

    def _excused(self, watch: _Watch) -> bool:
        """Whether it may wait longer, since it waits for a broker."""
        if self._answers is None or watch.last_chance:
            return False
        if self._answers():
            watch.last_chance = True
            watch.ticks_left = self._ticks(LAST_CHANCE_S)
            return True
        if not watch.excused:
            watch.excused = True
            log.warning("%s waits for a broker", watch.what, extra={"action": "watchdog.excused"})
        watch.ticks_left = self._ticks(AWAY_S)
        return True

    def _ticks(self, seconds: float) -> int:
        return max(1, round(seconds / self._tick_s))

    def _expired(self) -> list[_Watch]:
        with self._lock:
            expired = []
            for watch in self._watches.values():
                watch.ticks_left -= 1
                if watch.ticks_left == 0:
                    expired.append(watch)
            return expired
