"""Due times become runs: found, judged by the misfire policy, admitted or not, and offered."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from itertools import islice
from typing import Final

from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.life import created, run_job, skipped, waiting
from dueline.scheduler.core.misfire import Fire, Pass, Stretch, decide, fires, late_of_all
from dueline.scheduler.core.spans import JobState, NextDue, Span
from dueline.scheduler.core.waiting import Waiting, admits
from dueline.schemas.base import NONE
from dueline.schemas.job import Misfire, Overlap
from dueline.schemas.run import Run, Summary, Trigger

SUMMARY_FROM = 3
"""Due times in a row, passed over for one reason, from which on one summary record stands for them all."""

OVERLAP: Final = "overlap"
"""Why a due time is passed over that comes while an earlier run of its job is not finished."""

MAX_AHEAD = 2_000
"""Due times looked at ahead of time in one round: those beyond are looked at in the next ones."""


class Admission(Enum):
    """Whether a due time may run."""

    NOW = auto()
    AFTER_EARLIER = auto()  # a run of a job that must not overlap, and must not be passed over either
    AFTER_OTHERS = auto()  # `max_concurrent` is reached
    NEVER = auto()  # passed over: an earlier run is not finished


WAITS: Final = {Admission.AFTER_EARLIER: Waiting.OVERLAP, Admission.AFTER_OTHERS: Waiting.LIMIT}


def decide_dues(draft: Draft) -> None:
    """Every due time that has come and has no record."""
    draft.state.settle()
    for _, job_id in list(draft.state.due.between(None, (draft.now + 1,))):
        if draft.full:
            return
        draft.for_job(str(job_id), _decide_job, draft, str(job_id))


def offer_ahead(draft: Draft) -> None:
    """Due times that come within `dispatch_ahead`, where nothing can decide otherwise any more and a worker has room."""
    draft.state.settle()
    for _, job_id in list(islice(draft.state.ahead.between(None, (draft.now + 1,)), MAX_AHEAD)):
        if draft.full or not draft.placement.any_room():
            return
        found = draft.state.dues.get(str(job_id))
        if found is not None and found.due_ms > draft.now:
            draft.for_job(str(job_id), _offer_one_ahead, draft, found)


def _offer_one_ahead(draft: Draft, found: NextDue) -> None:
    job = found.span.job
    now = admission(draft, found.span, Trigger.SCHEDULE) is Admission.NOW
    if now and draft.placement.has_room(job.queue, job.handler):
        draft.offer(_new_run(draft, found.span, found.due_ms, Trigger.SCHEDULE))


def _decide_job(draft: Draft, job_id: str) -> None:
    job = draft.state.jobs.get(job_id)
    if job is None:
        return
    passing = _Passing(draft, job_id)
    for stretch in _stretches(draft, job):
        for verdict in decide(stretch, draft.now):
            if isinstance(verdict, Pass):
                passing.add(stretch.span, verdict)
            else:
                _fire(draft, stretch.span, verdict, passing)
            if draft.full and not passing.row:
                break  # never inside a row: how the work is cut must not show in what is recorded
        passing.flush()
        if draft.full:
            return


def _stretches(draft: Draft, job: JobState) -> list[Stretch]:
    """The due times up to now, span by span. A later span counts only once the earlier one's are decided, in order."""
    first = draft.state.dues.get(job.id)
    if first is None or first.due_ms > draft.now:
        return []
    found = [_stretch(first.span, first.due_ms, min(job.until(first.place), draft.now + 1))]
    for place in range(first.place + 1, len(job.spans)):
        span, end = job.spans[place], min(job.until(place), draft.now + 1)
        due = span.next_due(NONE, end)
        if due is not None:
            found.append(_stretch(span, due, end))
    runs_later, late_later = False, 0
    for place in reversed(range(len(found) - 1)):
        runs_later = runs_later or fires(found[place + 1], draft.now)
        late_later += late_of_all(found[place + 1], draft.now)
        found[place] = replace(found[place], superseded=runs_later, late_after=late_later)
    return found


def _stretch(span: Span, first_ms: int, end_ms: int) -> Stretch:
    return Stretch(span=span, first_ms=first_ms, end_ms=end_ms, superseded=False)


def _fire(draft: Draft, span: Span, verdict: Fire, passing: _Passing) -> None:
    """A due time that is to run: admitted at once, made to wait, or passed over because an earlier run is not finished."""
    admitted = admission(draft, span, verdict.trigger)
    if admitted is Admission.NEVER:
        passing.add(span, Pass(first_ms=verdict.due_ms, last_ms=verdict.due_ms, count=1, reason=OVERLAP))
        return
    passing.flush()
    run = _new_run(draft, span, verdict.due_ms, verdict.trigger)
    if verdict.trigger == Trigger.CATCH_UP and span.job.misfire == Misfire.ALL and span.job.catch_up_every_ms:
        draft.put_run(waiting(run, Waiting.CATCH_UP), fires=True)
    elif admitted is Admission.NOW:
        start(draft, run, span, fires=True)
    else:
        draft.put_run(waiting(run, WAITS[admitted]), fires=True)


def start(draft: Draft, run: Run, span: Span, *, fires: bool = False) -> None:
    """Offer an admitted run, or let it wait until the instant to which jitter puts its start off."""
    start_ms = run.due_ms + span.offset(run.due_ms)
    if run.due_ms <= draft.now < start_ms:
        draft.put_run(waiting(run, Waiting.JITTER, start_ms), fires=fires)
    else:
        draft.offer(run, fires=fires)


def admission(draft: Draft, span: Span, trigger: str) -> Admission:
    """Whether a due time of this span may run now, beside and after the other runs of its job.

    What waits for its turn already goes first. A run that was asked back has no turn: its due time is decided again.
    """
    job = span.job
    engaged, behind = draft.state.engaged.get(job.id) or 0, draft.state.behind.get(job.id) or 0
    if job.overlap == Overlap.SKIP:
        behind += draft.state.pacing.get(job.id) or 0
    if not behind and admits(job, engaged):
        return Admission.NOW
    if job.overlap != Overlap.SKIP:
        return Admission.AFTER_OTHERS if job.max_concurrent else Admission.NOW
    queues_up = trigger == Trigger.CATCH_UP and job.misfire == Misfire.ALL
    return Admission.AFTER_EARLIER if queues_up else Admission.NEVER


def _new_run(draft: Draft, span: Span, due_ms: int, trigger: Trigger) -> Run:
    return created(
        run_job(span.job, span.version),
        due_ms,
        trigger=trigger,
        previous_ms=draft.state.previous_due(span.job.id, due_ms),
        now=draft.now,
    )


class _Passing:
    """Due times passed over in a row, gathered until another reason or a run comes: then one record, or one each."""

    def __init__(self, draft: Draft, job_id: str) -> None:
        self._draft = draft
        self._job = job_id
        self._span: Span | None = None
        self.row: list[Pass] = []

    def add(self, span: Span, passed: Pass) -> None:
        if self.row and (self.row[0].reason != passed.reason or self._span is not span):
            self.flush()
        self._span = span
        self.row.append(passed)

    def flush(self) -> None:
        if not self.row or self._span is None:
            return
        first, last, reason = self.row[0].first_ms, self.row[-1].last_ms, self.row[0].reason
        count = sum(passed.count for passed in self.row)
        self.row.clear()
        if count < SUMMARY_FROM:
            self._one_each(self._span, first, last, reason)
            return
        self._draft.put_summary(
            Summary(
                job=self._job,
                version=self._span.version,
                reason=reason,
                first_ms=first,
                last_ms=last,
                count=count,
                previous_due_ms=self._draft.state.previous_due(self._job, first),
            )
        )

    def _one_each(self, span: Span, first: int, last: int, reason: str) -> None:
        for due in {first: None, last: None}:
            run = _new_run(self._draft, span, due, Trigger.SCHEDULE)
            self._draft.put_run(skipped(run, reason, self._draft.now), fires=True)
