"""Carries out what the pure part decided: starts handlers, writes events, closes attempts. Called by the loop only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from dueline.schemas.base import NONE
from dueline.schemas.work import EventKind, Outcome
from dueline.workers.attempt import Attempt, Facts, StepDone
from dueline.workers.claim import (
    UNKNOWN_CLAIM,
    Abandon,
    AskToStop,
    Begin,
    Claim,
    ClaimId,
    Decision,
    Decline,
    DeclineUnknown,
    Ending,
    EndNow,
    Resume,
)
from dueline.workers.errors import AttemptClosed
from dueline.workers.events import STEP_KIND, Event, StepSubmitted, Write
from dueline.workers.executor import Executor
from dueline.workers.incarnation import Incarnation
from dueline.workers.logclock import LogClock
from dueline.workers.loop import settle
from dueline.workers.outcome import DRAINED, STEPS_EXPIRED, TIMED_OUT, Ended
from dueline.workers.records import Origin
from dueline.workers.registry import Registry

Incarnations = Mapping[str, Incarnation]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A handler that was started."""

    attempt: Attempt
    started_ms: int


class Ground:
    """What an attempt stands on: the port it has on its worker. Any thread."""

    def __init__(
        self,
        id: ClaimId,
        *,
        may_begin: Callable[[str], bool],
        now_ms: Callable[[], int],
        unwritable: Callable[[str], str],
        post: Callable[[Event], None],
    ) -> None:
        self._id = id
        self._may_begin = may_begin
        self._unwritable = unwritable
        self._post = post
        self.now_ms = now_ms
        self.attempt: Attempt | None = None

    def may_begin(self) -> bool:
        """See StepPort."""
        return self._may_begin(self._id[0])

    def unwritable(self, topic: str) -> str:
        """See StepPort."""
        return self._unwritable(topic)

    def submit(self, done: StepDone) -> None:
        """See StepPort."""
        if self.attempt is None:
            raise LookupError("an attempt submits steps only once it stands on its ground")
        self._post(StepSubmitted(id=self._id, attempt=self.attempt, done=done))


class Acts:
    """See the module's text."""

    def __init__(
        self,
        *,
        origin: Origin,
        registry: Registry,
        executor: Executor,
        log_clock: LogClock,
        monotonic_s: Callable[[], float],
        read_steps: Callable[[Claim], None],
        lease_holds: Callable[[str], bool],
        unwritable: Callable[[str], str],
        post: Callable[[Event], None],
    ) -> None:
        self._origin = origin
        self._registry = registry
        self._executor = executor
        self._log_clock = log_clock
        self._monotonic_s = monotonic_s
        self._read_steps = read_steps
        self._lease_holds = lease_holds
        self._unwritable = unwritable
        self._post = post
        self._running: dict[ClaimId, Running] = {}

    def act(self, decision: Decision, now_s: float, incarnations: Incarnations) -> None:
        """Carry one decision out."""
        match decision:
            case Resume(claim=claim):
                self._read_steps(claim)
            case Begin(claim=claim):
                self._begin(claim, now_s)
            case Decline(claim=claim, reason=reason):
                self._decline(claim.id, claim.dispatch.run, claim.dispatch.attempt, reason, incarnations)
            case DeclineUnknown(signal=signal):
                id = (signal.incarnation, signal.claim)
                self._decline(id, signal.run, signal.attempt, UNKNOWN_CLAIM, incarnations)
            case AskToStop(claim=claim, reason=reason):
                self._running[claim.id].attempt.cancel(reason)
            case EndNow(claim=claim, ending=ending):
                self._end_now(claim, ending, now_s, incarnations)
            case Abandon(claim=claim):
                self._running[claim.id].attempt.close("given to another worker: this one was fenced")
            case _:
                assert_never(decision)

    # -- what the loop asks for directly -------------------------------------------------------------------------------

    def forget(self, id: ClaimId) -> None:
        """Its handler's code has ended."""
        self._running.pop(id, None)

    def doubt(self, incarnation: str) -> None:
        """W8: its lease lapsed. What runs may be another worker's by now."""
        for id, running in self._running.items():
            if id[0] == incarnation:
                running.attempt.doubt()

    def finish(self, claim: Claim, ended: Ended, now_s: float, incarnations: Incarnations) -> None:
        """Write the end of an attempt that began."""
        running = self._running[claim.id]
        running.attempt.close("it ended")
        log.info("run %s, attempt %d: %s%s", claim.dispatch.run, claim.dispatch.attempt, ended.outcome,
                 f" ({ended.reason})" if ended.reason else "", extra={"action": "attempt.finished"})  # fmt: skip
        steps = (running.attempt.steps_done, running.attempt.steps_skipped)
        self._finished(claim, ended, running.started_ms, steps, now_s, incarnations)

    def expire(self, claim: Claim, why: str, now_s: float, incarnations: Incarnations) -> None:
        """W9: it cannot be resumed and is not started over."""
        ended = Ended(outcome=Outcome.FAILURE, reason=STEPS_EXPIRED, error=why, retryable=False)
        log.error("run %s: %s", claim.dispatch.run, why, extra={"action": "attempt.steps-expired"})
        self._finished(claim, ended, NONE, (0, 0), now_s, incarnations)

    def step_write(self, event: StepSubmitted) -> Write:
        """A step's completion as the group-commit loop takes it."""
        facts, done = event.attempt.facts, event.done
        return Write(
            id=event.id,
            kind=STEP_KIND,
            name=done.name,
            record=self._origin.step(event.id, facts.run, facts.attempt, done),
            produced=done.produced,
            attempt=event.attempt,
            answer=done.answer,
        )

    def refuse(self, write: Write) -> None:
        """Its incarnation is over."""
        settle(write, AttemptClosed(f"incarnation {write.id[0]} is over: step {write.name!r} was not recorded"))

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _begin(self, claim: Claim, now_s: float) -> None:
        dispatch = claim.dispatch
        handler = self._registry.get(dispatch.job.handler)
        if handler is None:
            raise LookupError(f"claim {claim.id}: handler {dispatch.job.handler!r} was there when it was claimed")
        ground = Ground(
            claim.id, may_begin=self._lease_holds, now_ms=self._now_ms, unwritable=self._unwritable, post=self._post
        )
        facts = Facts(
            run=dispatch.run,
            job=dispatch.job.id,
            handler=handler.name,
            due_ms=dispatch.due_ms,
            attempt=dispatch.attempt,
            payload=dispatch.job.payload,
        )
        attempt = ground.attempt = Attempt(facts, claim.recorded, ground)
        self._running[claim.id] = Running(attempt=attempt, started_ms=self._log_clock.now_ms(now_s))
        self._executor.start(claim.id, handler, attempt)
        log.info("run %s, attempt %d begins", dispatch.run, dispatch.attempt, extra={"action": "attempt.begins"})

    def _end_now(self, claim: Claim, ending: Ending, now_s: float, incarnations: Incarnations) -> None:
        running = self._running[claim.id]
        dispatch = claim.dispatch
        if ending == Ending.TIMEOUT:
            error = f"not ended within {dispatch.job.timeout_ms / 1000:g} s, the job's timeout"
            ended = Ended(outcome=Outcome.FAILURE, reason=TIMED_OUT, error=error)
        else:
            error = "the worker stops, and the handler did not end within its drain timeout"
            ended = Ended(outcome=Outcome.INTERRUPTED, reason=DRAINED, error=error)
        running.attempt.close(f"{ended.reason}: {error}")
        log.warning("run %s, attempt %d: %s; its code goes on until its next call on the context", dispatch.run,
                    dispatch.attempt, error, extra={"action": f"attempt.{ending}"})  # fmt: skip
        steps = (running.attempt.steps_done, running.attempt.steps_skipped)
        self._finished(claim, ended, running.started_ms, steps, now_s, incarnations)

    def _decline(self, id: ClaimId, run: str, attempt: int, reason: str, incarnations: Incarnations) -> None:
        log.info("run %s, attempt %d: declined, %s", run, attempt, reason, extra={"action": "attempt.declined"})
        record = self._origin.declined(id, run, attempt, reason)
        self._write(Write(id=id, kind=EventKind.DECLINED, name="", record=record), incarnations)

    def _finished(
        self, claim: Claim, ended: Ended, started_ms: int, steps: tuple[int, int], now_s: float, incarnations: Incarnations
    ) -> None:
        record = self._origin.finished(
            claim.id,
            claim.dispatch.run,
            claim.dispatch.attempt,
            ended,
            started_ms=started_ms,
            finished_ms=self._log_clock.now_ms(now_s),
            steps=steps,
        )
        self._write(Write(id=claim.id, kind=EventKind.FINISHED, name="", record=record), incarnations)

    def _write(self, write: Write, incarnations: Incarnations) -> None:
        incarnation = incarnations.get(write.id[0])
        if incarnation is not None:
            incarnation.commits.add(write)

    def _now_ms(self) -> int:
        return self._log_clock.now_ms(self._monotonic_s())
