"""What workers say in `attempts`: a claim is granted or refused, a return or an end changes its run, anything else is stale."""

from __future__ import annotations

from typing import Final

from dueline.scheduler.core.definitions import ask_back_run
from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.fleet import incarnation_ended
from dueline.scheduler.core.inputs import Read
from dueline.scheduler.core.life import CANCEL, answers_offer, declined, finished, given_up, granted, holds, lost, waiting
from dueline.scheduler.core.ports import FenceResult
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.base import NONE
from dueline.schemas.ledger import Fence, FencePhase
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, HeldClaim, HeldState, SignalKind, WorkerState

LAST_WORDS: Final[dict[str, str]] = {WorkerState.LOST: "it gave up", WorkerState.STOPPED: "it stopped and held runs"}
"""Why an incarnation is fenced that was not silent."""


def decide_event(draft: Draft, read: Read[AttemptEvent]) -> None:
    """One record of `attempts`."""
    if read.problem is not None:
        draft.reject(read, read.problem.error, read.problem.detail)
        return
    event = read.value
    if event is None:
        return
    run = draft.state.runs.get(event.run)
    if event.kind == EventKind.CLAIMED:
        _decide_claim(draft, event, run)
    elif run is not None and holds(run, event):
        if event.kind == EventKind.DECLINED:
            _given_back(draft, declined(run, event, draft.now))
        elif event.kind == EventKind.FINISHED:
            steps_end = draft.inputs.steps_ends.get(event.home, NONE)
            draft.put_run(finished(run, event, steps_end=steps_end, now=draft.now))


def decide_undecided(draft: Draft, event: AttemptEvent, error: str) -> None:
    """An event that met a bug told that its attempt is over: the run must not stay with a worker that has forgotten it."""
    run = draft.state.runs.get(event.run)
    if run is not None and holds(run, event) and event.kind != EventKind.CLAIMED:
        skew, steps_end = draft.settings.allowed_skew_ms, draft.inputs.steps_ends.get(event.home, NONE)
        _given_back(draft, given_up(run, event, error, steps_end=steps_end, allowed_skew_ms=skew, now=draft.now))


def _given_back(draft: Draft, run: Run) -> None:
    """An attempt that did not begin leaves the run to what holds at its due time now."""
    run = draft.put_run(run)
    if run.state == RunState.WAITING:
        ask_back_run(draft, run)


def _decide_claim(draft: Draft, claim: AttemptEvent, run: Run | None) -> None:
    """Grant one claim of the offer that stands. A claim of a fenced incarnation yields the next attempt (W3, W7)."""
    if incarnation_ended(draft.state, claim.incarnation):
        _answer(draft, SignalKind.FENCED, claim, "this incarnation was fenced")
        if run is not None and answers_offer(run, claim):
            draft.put_run(waiting(run, Waiting.NO_WORKER))
    elif run is not None and answers_offer(run, claim):
        draft.signal_run(SignalKind.GRANT, draft.put_run(granted(run, claim, draft.now)))
    elif run is not None and holds(run, claim):
        draft.signal_run(SignalKind.GRANT, run)
    else:
        _answer(draft, SignalKind.DECLINE, claim, "another attempt holds, or the run has ended")


def _answer(draft: Draft, kind: SignalKind, claim: AttemptEvent, reason: str) -> None:
    draft.signal(
        kind,
        home=claim.home,
        incarnation=claim.incarnation,
        run=claim.run,
        claim=claim.claim,
        attempt=claim.attempt,
        reason=reason,
    )


def decide_dead(draft: Draft, worker: Heartbeat) -> None:
    """A worker was silent for too long, or said its last word: first the intent, in the ledger, then the shell fences it (W7)."""
    if incarnation_ended(draft.state, worker.incarnation):
        return
    held = next(draft.state.holding.prefixed(worker.incarnation), None) is not None
    if held or worker.state != WorkerState.STOPPED:  # its last events may have been decided in this round
        draft.put_fence(
            Fence(
                incarnation=worker.incarnation,
                worker=worker.worker,
                queue=worker.queue,
                home=worker.home,
                phase=FencePhase.INTENT,
                reason=LAST_WORDS.get(worker.state, "no heartbeat"),
                transactional_ids=worker.transactional_ids,
            )
        )


def decide_fenced(draft: Draft, result: FenceResult) -> None:
    """A worker was fenced and its events are read out: its runs go on elsewhere, after what it finished has been counted."""
    fence = draft.state.fences.get(result.incarnation)
    if fence is None or fence.phase != FencePhase.INTENT:
        return
    for _, key in list(draft.state.holding.prefixed(result.incarnation)):
        run = draft.state.runs.get(key)
        if run is not None:
            draft.for_job(run.job.id, _take_from_fenced, draft, run, result)
    if next(draft.state.holding.prefixed(result.incarnation), None) is None:
        draft.put_fence(_done(fence, result))  # not while it holds a run of a job that was set aside


def _take_from_fenced(draft: Draft, run: Run, result: FenceResult) -> None:
    skew = draft.settings.allowed_skew_ms
    _given_back(draft, lost(run, steps_end=result.steps_end, allowed_skew_ms=skew, now=draft.now))


def _done(fence: Fence, result: FenceResult) -> Fence:
    return Fence(
        incarnation=fence.incarnation,
        worker=fence.worker,
        queue=fence.queue,
        home=fence.home,
        phase=FencePhase.DONE,
        reason=fence.reason,
        transactional_ids=fence.transactional_ids,
        steps_end=result.steps_end,
        attempts_end=result.attempts_end,
    )


def answer_heartbeat(draft: Draft, worker: Heartbeat) -> None:
    """Say again what a worker does not seem to know: grants, refusals, recalls, its own end (W4)."""
    if incarnation_ended(draft.state, worker.incarnation):
        draft.signal(SignalKind.FENCED, home=worker.home, incarnation=worker.incarnation, reason="it was fenced")
        return
    named: set[str] = set()
    for claim in worker.claims:
        run = draft.state.runs.get(claim.run)
        if run is not None and _is_granted(run, worker.incarnation, claim.claim):
            named.add(claim.run)
            _remind(draft, run, claim)
        elif run is None or not _may_be_granted(run, claim):
            draft.signal(
                SignalKind.DECLINE,
                home=worker.home,
                incarnation=worker.incarnation,
                run=claim.run,
                claim=claim.claim,
                attempt=claim.attempt,
                reason="the ledger does not have it",
            )
    for _, key in draft.state.holding.prefixed(worker.incarnation):
        run = draft.state.runs.get(key)
        if run is not None and key not in named and _rested(draft, run):
            draft.signal_run(SignalKind.GRANT, run)


def _remind(draft: Draft, run: Run, claim: HeldClaim) -> None:
    """What the ledger says of a claim and the worker seems not to have read."""
    if run.recall.startswith(CANCEL):
        draft.signal_run(SignalKind.CANCEL, run, run.recall.removeprefix(CANCEL))
    elif run.recall and claim.state != HeldState.RUNNING:
        draft.signal_run(SignalKind.RECALL, run, run.recall)
    elif claim.state == HeldState.REQUESTED and _rested(draft, run):
        draft.signal_run(SignalKind.GRANT, run)


def _is_granted(run: Run, incarnation: str, claim: int) -> bool:
    return run.state == RunState.RUNNING and run.incarnation == incarnation and run.claim == claim


def _may_be_granted(run: Run, claim: HeldClaim) -> bool:
    """Whether the claim answers the offer that stands: the heartbeat may have come before the claim itself was read."""
    return run.state == RunState.DISPATCHED and run.attempt == claim.attempt


def _rested(draft: Draft, run: Run) -> bool:
    """Whether the grant is old enough that the worker should have read it."""
    return draft.now - run.granted_ms >= draft.settings.resend_ms
