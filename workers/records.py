"""The records a worker writes, ready to go: which topic, partition and key each has is said here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from dueline.scheduler.core.ports import Outgoing
from dueline.schemas.base import NONE
from dueline.schemas.codec import encode, headers
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, Step
from dueline.workers.attempt import StepDone
from dueline.workers.claim import ClaimId
from dueline.workers.outcome import Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who writes: a worker in its home partition."""

    namespace: Namespace
    worker: str
    queue: str
    home: int

    def claimed(self, id: ClaimId, run: str, attempt: int, offer: tuple[int, int], steps_from: int) -> Outgoing:
        """A claim. `offer`: the dispatch's (term, sequence)."""
        return self._event(
            AttemptEvent(
                kind=EventKind.CLAIMED, run=run, attempt=attempt, claim=id[1], incarnation=id[0], worker=self.worker,
                queue=self.queue, home=self.home, dispatch_term=offer[0], dispatch_seq=offer[1], steps_from=steps_from,
            )
        )  # fmt: skip

    def declined(
        self, id: ClaimId, run: str, attempt: int, reason: str, offer: tuple[int, int] = (NONE, NONE)
    ) -> Outgoing:
        """A claim given back."""
        return self._event(
            AttemptEvent(
                kind=EventKind.DECLINED, run=run, attempt=attempt, claim=id[1], incarnation=id[0], worker=self.worker,
                queue=self.queue, home=self.home, dispatch_term=offer[0], dispatch_seq=offer[1], reason=reason,
            )
        )  # fmt: skip

    def finished(
        self, id: ClaimId, run: str, attempt: int, ended: Ended, *, started_ms: int, finished_ms: int, steps: tuple[int, int]
    ) -> Outgoing:
        """An attempt's end. `steps`: done by it, and skipped since done before."""
        return self._event(
            AttemptEvent(
                kind=EventKind.FINISHED, run=run, attempt=attempt, claim=id[1], incarnation=id[0], worker=self.worker,
                queue=self.queue, home=self.home, outcome=ended.outcome, reason=ended.reason, error=ended.error,
                retryable=ended.retryable, result=ended.result, until_ms=ended.until_ms, started_ms=started_ms,
                finished_ms=finished_ms, steps_done=steps[0], steps_skipped=steps[1],
            )
        )  # fmt: skip

    def step(self, id: ClaimId, run: str, attempt: int, done: StepDone) -> Outgoing:
        """A step's completion."""
        step = Step(
            run=run, attempt=attempt, claim=id[1], incarnation=id[0], name=done.name, encoding=done.recorded.encoding,
            result=done.recorded.result, started_ms=done.started_ms, finished_ms=done.finished_ms,
        )  # fmt: skip
        return Outgoing(
            topic=self.namespace.steps, partition=self.home, key=step.key.encode(), value=encode(step), headers=headers(step)
        )

    def heartbeat(self, heartbeat: Heartbeat) -> Outgoing:
        """A sign of life."""
        return Outgoing(
            topic=self.namespace.workers,
            partition=0,
            key=heartbeat.incarnation.encode(),
            value=encode(heartbeat),
            headers=headers(heartbeat),
        )

    def _event(self, event: AttemptEvent) -> Outgoing:
        return Outgoing(
            topic=self.namespace.attempts,
            partition=self.home,
            key=event.run.encode(),
            value=encode(event),
            headers=headers(event),
        )
