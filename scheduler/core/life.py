"""The life of one run: what each event makes of its record. Pure and idempotent: an event that does not fit changes nothing.

An event fits when it names the attempt, claim and incarnation that the ledger granted; any other one is stale.
"""

from __future__ import annotations

from dataclasses import replace

from dueline.scheduler.core.retry import delay_ms
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.base import NONE
from dueline.schemas.job import Job
from dueline.schemas.run import Run, RunJob, RunState, StepRange, Trigger
from dueline.schemas.work import AttemptEvent, Outcome

NO_SLOT_PAUSE_MS = 1_000
"""How long a run rests that a worker gave back: long enough for a slot to come free, short enough to be on time."""

MAX_ERROR, MAX_REASON, MAX_RESULT = 64 * 1024, 1024, 512 * 1024
"""Characters of an event's texts that a run record keeps: it must fit its topic, whoever wrote the event."""

MAX_RANGES = 32
"""Ranges of steps that a run names one by one: beyond that, one for each home partition stands for them all."""

CANCEL = "cancel:"
"""How `recall` begins when the run is to end; anything else in it asks the run back to be decided again."""


def run_job(job: Job, version: int, payload: str = "") -> RunJob:
    """The constants of a run of this version."""
    return RunJob(
        id=job.id,
        version=version,
        queue=job.queue,
        handler=job.handler,
        payload=payload or job.payload,
        timeout_ms=job.timeout_ms,
        misfire_grace_ms=job.misfire_grace_ms,
        max_retries=job.max_retries,
        retry_backoff_ms=job.retry_backoff_ms,
        retry_backoff_factor=job.retry_backoff_factor,
        retry_backoff_max_ms=job.retry_backoff_max_ms,
        max_worker_losses=job.max_worker_losses,
    )


def created(job: RunJob, due_ms: int, *, trigger: Trigger, previous_ms: int, now: int, command: str = "") -> Run:
    """A run that was admitted and waits for a worker."""
    return Run(
        job=job,
        due_ms=due_ms,
        command=command,
        previous_due_ms=previous_ms,
        trigger=trigger,
        state=RunState.WAITING,
        reason=Waiting.NO_WORKER,
        created_ms=now,
    )


def skipped(run: Run, reason: str, now: int) -> Run:
    """Passed over, and why."""
    return replace(_released(run), state=RunState.SKIPPED, reason=reason, finished_ms=now)


def waiting(run: Run, reason: Waiting, until_ms: int = NONE) -> Run:
    """Not offered now: why, and not before when."""
    return replace(_released(run), state=RunState.WAITING, reason=reason, until_ms=until_ms)


def offered(run: Run, *, partition: int, seq: int, ahead: bool, term: int, generation: int, now: int) -> Run:
    """The next attempt, on offer by this term. What the attempts before left behind stays, but for their times."""
    return replace(
        run,
        state=RunState.DISPATCHED,
        reason="",
        until_ms=NONE,
        attempt=run.attempt + 1,
        ahead=ahead,
        recall="",
        partition=partition,
        dispatch_term=term,
        dispatch_seq=seq,
        incarnation="",
        worker="",
        claim=NONE,
        home=NONE,
        steps_from=NONE,
        deadline_ms=NONE,
        dispatched_ms=now,
        granted_ms=NONE,
        started_ms=NONE,
        outcome="",
        term=term,
        generation=generation,
        leader_ms=now,
    )


def answers_offer(run: Run, claim: AttemptEvent) -> bool:
    """Whether a claim answers the offer that stands: never a superseded attempt or a stale copy of a dispatch."""
    return run.state == RunState.DISPATCHED and (run.attempt, run.dispatch_term, run.dispatch_seq) == (
        claim.attempt,
        claim.dispatch_term,
        claim.dispatch_seq,
    )


def granted(run: Run, claim: AttemptEvent, now: int) -> Run:
    """The attempt is this claim's."""
    return replace(
        run,
        state=RunState.RUNNING,
        reason="",
        incarnation=claim.incarnation,
        worker=claim.worker,
        claim=claim.claim,
        home=claim.home,
        steps_from=claim.steps_from,
        granted_ms=now,
        deadline_ms=max(now, run.due_ms) + run.job.timeout_ms if run.job.timeout_ms else NONE,
    )


def holds(run: Run, event: AttemptEvent) -> bool:
    """Whether the event comes from the attempt that was granted."""
    return run.state == RunState.RUNNING and (run.attempt, run.claim, run.incarnation) == (
        event.attempt,
        event.claim,
        event.incarnation,
    )


def declined(run: Run, event: AttemptEvent, now: int) -> Run:
    """The worker gave the attempt back before it began."""
    if run.recall.startswith(CANCEL):
        return cancelled(run, run.recall.removeprefix(CANCEL), now)
    if run.recall:
        return waiting(run, Waiting.RECALLED)
    resting = now + NO_SLOT_PAUSE_MS if event.reason != "unknown claim" else NONE
    return waiting(run, Waiting.DECLINED, resting)


def finished(run: Run, event: AttemptEvent, *, steps_end: int, now: int) -> Run:
    """The attempt ended. `steps_end`: end of its home partition of `steps`, taken after the event was read."""
    event = replace(event, error=event.error[:MAX_ERROR], reason=event.reason[:MAX_REASON], result=_bounded(event.result))
    run = replace(run, started_ms=event.started_ms, outcome=event.outcome, error=event.error, begun=True)
    ended = _ended_ms(event, now)
    if event.outcome == Outcome.SUCCESS:
        return replace(run, state=RunState.SUCCEEDED, reason="", result=event.result, error="", finished_ms=ended)
    if run.recall.startswith(CANCEL):
        return cancelled(run, run.recall.removeprefix(CANCEL), ended)
    if event.outcome == Outcome.CANCELLED:
        return cancelled(run, event.reason or "by its handler", ended)
    run = _with_steps(run, steps_end)
    if event.outcome == Outcome.SNOOZE:
        return waiting(run, Waiting.SNOOZE, max(event.until_ms, now))
    if event.outcome == Outcome.INTERRUPTED:
        return waiting(run, Waiting.INTERRUPTED)
    failures = run.failures + 1
    run = replace(run, failures=failures)
    if not event.retryable or failures > run.job.max_retries:
        return replace(run, state=RunState.FAILED, reason=event.reason or "failure", finished_ms=ended)
    return waiting(run, Waiting.RETRY, now + delay_ms(run.job, run.key, failures))


def lost(run: Run, *, steps_end: int, allowed_skew_ms: int, now: int, why: Waiting = Waiting.LOST) -> Run:
    """The worker was fenced. From its due time (less the skew) on, a granted attempt has begun: that mark stays.

    One that was held for its due time did nothing that could be lost: it is not counted among the lost workers.
    """
    run = _with_steps(run, steps_end)
    began = now >= run.due_ms - allowed_skew_ms
    run = replace(run, losses=run.losses + began, begun=run.begun or began)
    if run.recall.startswith(CANCEL):
        return cancelled(run, run.recall.removeprefix(CANCEL), now)
    if run.recall and not run.begun:
        return waiting(run, Waiting.RECALLED)
    if run.losses > run.job.max_worker_losses:
        return replace(run, state=RunState.FAILED, reason=why, finished_ms=now)
    return waiting(run, why)


def given_up(run: Run, event: AttemptEvent, error: str, *, steps_end: int, allowed_skew_ms: int, now: int) -> Run:
    """The attempt is over, but what its worker told of it cannot be decided: it counts as lost. If it succeeded, the run fails:
    what was done must not be done again."""
    run = replace(run, error=error[:MAX_ERROR])
    if event.outcome == Outcome.SUCCESS:
        return replace(run, state=RunState.FAILED, reason=Waiting.UNDECIDED, finished_ms=now)
    return lost(run, steps_end=steps_end, allowed_skew_ms=allowed_skew_ms, now=now, why=Waiting.UNDECIDED)


def cancelled(run: Run, reason: str, now: int) -> Run:
    """Ended by a command, or by the handler itself."""
    return replace(run, state=RunState.CANCELLED, reason=reason, until_ms=NONE, finished_ms=now)


def _ended_ms(event: AttemptEvent, now: int) -> int:
    """When the attempt ended, as its worker tells: the leader may read of it long after. Now, when it tells nothing."""
    return min(event.finished_ms, now) if event.finished_ms >= 0 else now


def _with_steps(run: Run, steps_end: int) -> Run:
    """Remember where this attempt wrote, for the next one to resume."""
    if run.steps_from == NONE or steps_end <= run.steps_from:
        return run
    part = StepRange(attempt=run.attempt, home=run.home, start=run.steps_from, end=steps_end)
    earlier = [*run.earlier, part]
    if len(earlier) > MAX_RANGES:
        earlier = _one_a_home(earlier)
    return replace(run, earlier=earlier)


def _one_a_home(parts: list[StepRange]) -> list[StepRange]:
    """One range for each home partition: it covers what its ranges did, and names the newest attempt."""
    merged: dict[int, StepRange] = {}
    for part in parts:
        known = merged.get(part.home)
        merged[part.home] = replace(part, start=min(part.start, known.start), end=max(part.end, known.end)) if known else part
    return sorted(merged.values(), key=lambda part: part.attempt)


def _bounded(result: str) -> str:
    """Workers refuse larger results; another client's must not make a ledger record that no topic takes."""
    return result if len(result) <= MAX_RESULT else '"(a result over the limit was left out)"'


def _released(run: Run) -> Run:
    """Without offer, claim and recall; what the attempts before left behind stays."""
    return replace(
        run,
        recall="",
        ahead=False,
        partition=NONE,
        dispatch_term=NONE,
        dispatch_seq=NONE,
        incarnation="",
        worker="",
        claim=NONE,
        home=NONE,
        steps_from=NONE,
        deadline_ms=NONE,
    )
