"""W1, W8: signs of life of one incarnation, and the lease that their acknowledgement gives."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from dueline.scheduler.core.ports import Clock, Delivered, PlainWriter
from dueline.schemas.work import ENDED, Heartbeat, HeldClaim, WorkerState
from dueline.workers.events import Event, HeartbeatAnswered
from dueline.workers.lease import Lease
from dueline.workers.records import Origin

MAX_UNANSWERED: Final = 2
"""Heartbeats on their way. With the broker away more would only arrive late, and old ones renew no lease."""


def own_version() -> str:
    """Of the installed package; "" in a bare checkout."""
    try:
        return version("dueline")
    except PackageNotFoundError:
        return ""


VERSION: Final = own_version()

log = logging.getLogger(__name__)


class Heart:
    """One incarnation's heartbeats. Used by the loop; only the delivery report comes from another thread."""

    def __init__(
        self,
        incarnation: str,
        *,
        origin: Origin,
        transactional_ids: Sequence[str],
        plain: PlainWriter,
        clock: Clock,
        post: Callable[[Event], None],
        every_s: float,
        lease: Lease,
    ) -> None:
        self.incarnation = incarnation
        self.lease = lease
        self._origin = origin
        self._ids = list(transactional_ids)
        self._plain = plain
        self._clock = clock
        self._post = post
        self._every_s = every_s
        self._started_ms = clock.wall_ms()
        self._seq = 0
        self._unanswered = 0
        self._next_s = clock.monotonic_s()
        self._failed = False

    @property
    def next_s(self) -> float:
        """When the next one is due."""
        return self._next_s

    def due(self, state: WorkerState) -> bool:
        """Whether one is to be sent now: it is time, or it is the last one."""
        return self._clock.monotonic_s() >= self._next_s or state in ENDED

    def hasten(self) -> None:
        """Something changed that the leader needs to know: the next one is due now."""
        self._next_s = self._clock.monotonic_s()

    def beat(
        self,
        *,
        state: WorkerState,
        slots: int,
        prefetch: int,
        handlers: Sequence[str],
        partitions: Iterable[int],
        claims: Sequence[HeldClaim],
    ) -> None:
        """Send one, if it is due and not too many are unanswered; the last one (`stopped`) in any case."""
        if not self.due(state):
            return
        sent_s = self._clock.monotonic_s()
        self._next_s = sent_s + self._every_s
        if self._unanswered >= MAX_UNANSWERED and state not in ENDED:
            return
        self._seq += 1
        self._unanswered += 1
        heartbeat = Heartbeat(
            incarnation=self.incarnation, worker=self._origin.worker, queue=self._origin.queue, home=self._origin.home,
            state=state, seq=self._seq, slots=slots, prefetch=prefetch, handlers=list(handlers),
            partitions=sorted(partitions), claims=list(claims), transactional_ids=self._ids,
            worker_ms=self._clock.wall_ms(), started_ms=self._started_ms, version=VERSION,
        )  # fmt: skip

        def answered(delivered: Delivered | None, error: str) -> None:
            self._post(
                HeartbeatAnswered(
                    incarnation=self.incarnation,
                    sent_s=sent_s,
                    received_s=self._clock.monotonic_s(),
                    delivered=delivered,
                    error=error,
                )
            )

        self._plain.send(self._origin.heartbeat(heartbeat), answered)

    def answered(self, answer: HeartbeatAnswered) -> None:
        """A heartbeat was acknowledged or failed."""
        self._unanswered -= 1
        if answer.delivered is not None:
            self.lease.acknowledged(answer.sent_s)
            if self._failed:
                log.info("heartbeats of %s arrive again", self.incarnation, extra={"action": "worker.heartbeat-back"})
            self._failed = False
        elif not self._failed:
            self._failed = True
            log.warning("heartbeats of %s do not arrive: %s. Nothing new begins until they do; what runs goes on",
                        self.incarnation, answer.error, extra={"action": "worker.heartbeat-failed"})  # fmt: skip
