"""W7: fences dead incarnations, outside the leader loop, several in parallel.

Initialising an id aborts what its last owner left open and refuses everything that owner sends later. Only after all
ids of an incarnation are initialised the ends of its home partition are taken: nothing of it can come after them.

A broker that was killed may forget to end a transaction in some partitions (docs/kafka.md). Readers would stand before it for
ever, so where something is still open in the home partition each id ends its own part of it, and of its group's offsets: by an
aborted transaction there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dueline.scheduler.core.ports import (
    Aborted,
    Doubtful,
    Fenced,
    FenceResult,
    LogAdmin,
    Outgoing,
    Partition,
    Refused,
    Unavailable,
)
from dueline.schemas.ledger import FORGOTTEN_KEY

from .capture import unfenced
from .config import KafkaConfig
from .errors import ConfigError, NotAuthorized
from .timing import Timing
from .transaction import TransactionalProducer
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

    def start(self, incarnation: str, transactional_ids: Sequence[str], home: int, group: str) -> None:
        """Begin; a second call for the same one does nothing: it is asked for until its end is decided."""
        with self._lock:
            if incarnation in self._begun or self._stop.is_set():
                return
            self._begun.add(incarnation)
        self._pool.submit(self._run, incarnation, tuple(transactional_ids), home, group)

    def results(self) -> list[FenceResult]:
        """Those done since the last call."""
        with self._lock:
            done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Stop: a call under way ends by its own time-out, nothing is tried again."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, incarnation: str, ids: Sequence[str], home: int, group: str) -> None:
        wait_s, said = FIRST_WAIT_S, ""
        while not self._stop.is_set():
            try:
                result = self._fence(incarnation, ids, home, group)
            except (Fenced, Unavailable) as error:
                said = _say(logging.WARNING, incarnation, error, said)
            except (NotAuthorized, ConfigError) as error:
                said = _say(logging.ERROR, incarnation, error, said)
            except Exception as error:  # noqa: BLE001 - nobody else would see it in this thread, and the fence must not stop
                said = _say(logging.ERROR, incarnation, error, said, traceback=True)
            else:
                with self._lock:
                    self._done.append(result)
                return
            self._stop.wait(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _fence(self, incarnation: str, ids: Sequence[str], home: int, group: str) -> FenceResult:
        producers = [
            Heir(self._config, id_, name="fencer", timing=Timing(), watchdog=self._watchdog)
            for id_ in ids
        ]
        admin, attempts, steps = self._admin(), (self._attempts, home), (self._steps, home)
        try:
            initialise(producers)
            held = [place for place in (attempts, steps) if admin.stable_offset(place) < admin.end_offset(place)]
            for producer in producers if held else ():
                self._forget(producer, held, group)
        finally:
            for producer in producers:
                producer.close()
        return FenceResult(
            incarnation=incarnation, attempts_end=admin.end_offset(attempts), steps_end=admin.end_offset(steps)
        )

    def _forget(self, producer: Heir, places: Sequence[Partition], group: str) -> None:
        try:
            forget(producer, places, group)
        except NotAuthorized as error:  # the fence itself needs no such right
            log.warning("%s: what stands open of it cannot be ended: %s", producer.transactional_id, error,
                        extra={"action": "fence.forget"})  # fmt: skip


class Heir(TransactionalProducer):
    """The last owner of an id."""

    def end_inheritance(self, places: Sequence[Partition], group: str) -> None:
        """A transaction with a record in each of these partitions and an offset of the group, aborted; the last one.
        Raises Fenced, Aborted, Doubtful, Unavailable, NotAuthorized."""
        self._begin()
        self._send_offsets({places[0]: 0}, unfenced(group))
        self._produce([[Outgoing(topic=topic, partition=number, key=FORGOTTEN_KEY, value=None) for topic, number in places]])
        if not self._abort():
            raise Unavailable(f"{self.transactional_id}: the abort was not acknowledged")


def forget(producer: Heir, places: Sequence[Partition], group: str) -> None:
    """End what is open there, and in the group's offsets, of older owners. Raises Fenced, Unavailable, NotAuthorized."""
    try:
        producer.end_inheritance(places, group)
    except NotAuthorized:
        raise
    except (Aborted, Doubtful, Refused) as error:
        raise Unavailable(str(error)) from None


def _say(level: int, incarnation: str, error: Exception, said: str, *, traceback: bool = False) -> str:
    """What was said: a trouble that lasts is told once, and tried against for as long as it takes."""
    kind = f"{type(error).__name__}: {error}"
    log.log(
        logging.DEBUG if kind == said else level,
        "fencing %s: %s; trying again until it succeeds, its runs wait for that",
        incarnation,
        error,
        exc_info=error if traceback and kind != said else None,
        extra={"action": "fence.error" if level == logging.ERROR else "fence.retry", "incarnation": incarnation},
    )
    return kind
