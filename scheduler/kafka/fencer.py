"""W7: fences dead incarnations, outside the leader loop, several in parallel.

Initialising an id aborts what its last owner left open and refuses everything that owner sends later. Only after all
ids of an incarnation are initialised the ends of its home partition are taken: nothing of it can come after them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dueline.scheduler.core.ports import Fenced, FenceResult, LogAdmin, Unavailable

from .config import KafkaConfig
from .transaction import Timing, TransactionalProducer
from .watchdog import Watchdog
from .writers import initialise

log = logging.getLogger(__name__)

AT_ONCE: Final = 16  # incarnations; each opens three short-lived clients
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 5.0


class KafkaFencer:
    """Port `Fencer`."""

    def __init__(
        self, config: KafkaConfig, *, attempts: str, steps: str, admin: Callable[[], LogAdmin], watchdog: Watchdog
    ) -> None:
        self._config = config
        self._attempts = attempts
        self._steps = steps
        self._admin = admin
        self._watchdog = watchdog
        self._lock = threading.Lock()
        self._begun: set[str] = set()
        self._done: list[FenceResult] = []
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="dueline-fencer")

    def start(self, incarnation: str, transactional_ids: Sequence[str], home: int) -> None:
        """Begin; a second call for the same one does nothing: it is asked for until its end is decided."""
        with self._lock:
            if incarnation in self._begun or self._stop.is_set():
                return
            self._begun.add(incarnation)
        self._pool.submit(self._run, incarnation, tuple(transactional_ids), home)

    def results(self) -> list[FenceResult]:
        """Those done since the last call."""
        with self._lock:
            done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Stop: a call under way ends by its own time-out, nothing is tried again."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, incarnation: str, ids: Sequence[str], home: int) -> None:
        wait_s = FIRST_WAIT_S
        while not self._stop.is_set():
            try:
                result = self._fence(incarnation, ids, home)
            except (Fenced, Unavailable) as error:
                log.warning(
                    "fencing %s: %s; trying again in %.1f s",
                    incarnation,
                    error,
                    wait_s,
                    extra={"action": "fence.retry", "incarnation": incarnation},
                )
            except Exception:  # nobody else would see it in this thread, and the fence must not stop
                log.exception("fencing %s", incarnation, extra={"action": "fence.error", "incarnation": incarnation})
            else:
                with self._lock:
                    self._done.append(result)
                return
            self._stop.wait(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _fence(self, incarnation: str, ids: Sequence[str], home: int) -> FenceResult:
        producers = [
            TransactionalProducer(self._config, id_, name="fencer", timing=Timing(), watchdog=self._watchdog)
            for id_ in ids
        ]
        try:
            initialise(producers)
        finally:
            for producer in producers:
                producer.close()
        admin = self._admin()
        return FenceResult(
            incarnation=incarnation,
            attempts_end=admin.end_offset((self._attempts, home)),
            steps_end=admin.end_offset((self._steps, home)),
        )
