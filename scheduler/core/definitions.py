"""What users publish on `jobs` becomes job versions: numbered, each from an instant that the ledger names."""

from __future__ import annotations

from dataclasses import replace

from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.dues import OVERLAP, WAITS, Admission, admission, start
from dueline.scheduler.core.inputs import Read
from dueline.scheduler.core.life import run_job, skipped, waiting
from dueline.scheduler.core.misfire import PAUSED
from dueline.scheduler.core.rezoning import rezone
from dueline.scheduler.core.schedule import ScheduleError, compile_schedule
from dueline.scheduler.core.spans import JobState, Span
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.base import NONE
from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.run import Run, RunState, Trigger
from dueline.schemas.work import SignalKind


def decide_definition(draft: Draft, read: Read[Job]) -> None:
    """One record of `jobs`: a new version, a deletion, nothing new, or a refusal with its coordinates."""
    if read.problem is not None:
        draft.reject(read, read.problem.error, read.problem.detail)
        return
    job_id = read.key.decode(errors="replace") if read.value is None else read.value.id
    state = draft.state.jobs.get(job_id)
    if state is not None and any(span.made_by(read.topic, read.partition, read.offset, read.append_ms) for span in state.spans):
        return  # read again after a torn transaction that kept the version
    if read.value is None:
        if state is not None and state.live:
            new_version(draft, state, Change.DELETED, read, job=state.latest.job)
        return
    refusal = _refusal(draft, read, read.value)
    if refusal is not None:
        draft.reject(read, *refusal)
    elif not _unchanged(state, read.value):
        new_version(draft, state, Change.DEFINED, read, job=read.value)


def decide_absences(draft: Draft, job_ids: list[str], topic: str) -> None:
    """Jobs that were not there when `jobs` was read whole: deleted, when it was last read to its end (L12), or, if that was never
    recorded, when this term began: nothing that was due before is left out. As for a deletion
    that is read, it does not matter whether the job was set aside."""
    for job_id in job_ids:
        draft.guard.job(job_id, _decide_absence, draft, job_id, topic)


def _decide_absence(draft: Draft, job_id: str, topic: str) -> None:
    state = draft.state.jobs.get(job_id)
    if state is not None and state.live:
        gone: Read[Job] = Read(
            topic=topic,
            partition=0,
            offset=state.latest.source[2],
            append_ms=draft.state.jobs_read_ms if draft.state.jobs_read_ms != NONE else draft.inputs.led_ms,
            key=job_id.encode(),
            raw=b"",
            value=None,
        )
        new_version(draft, state, Change.DELETED, gone, job=state.latest.job, by="absent from jobs")


def new_version(
    draft: Draft,
    state: JobState | None,
    change: Change,
    read: Read[Job] | Read[object],
    *,
    job: Job,
    paused: bool | None = None,
    command: str = "",
    by: str = "",
) -> JobVersion:
    """Make the next version. Due times before its instant stay with the version before, and so do those it lists as taken."""
    if state is not None:
        state = rezone(draft, state)
    before = state.latest if state is not None else None
    effective = max(read.append_ms, before.from_ms if before is not None else read.append_ms)
    taken = _taken(draft, state, effective)
    if state is not None and len(taken) > draft.settings.max_taken:
        effective, taken = _after_all_recorded(draft, state), []
    held = before is not None and not before.deleted and before.paused
    version = JobVersion(
        job=job.id,
        version=before.version + 1 if before is not None else 1,
        change=change,
        effective_ms=effective,
        paused=held if paused is None else paused,
        definition=job,
        source_topic=read.topic,
        source_partition=read.partition,
        source_offset=read.offset,
        source_ms=read.append_ms,
        command=command,
        by=by,
        taken=taken,
    )
    draft.put_version(version)
    _ask_back_job(draft, job.id)
    return version


def _unchanged(state: JobState | None, job: Job) -> bool:
    return state is not None and state.live and state.latest.job == job


def _refusal(draft: Draft, read: Read[Job], job: Job) -> tuple[str, str] | None:
    """Why this definition cannot become a version: a stable word, and what to do."""
    if read.key.decode(errors="replace") != job.id:  # also an empty one: compaction would merge such jobs
        key = read.key.decode(errors="replace")
        return "key-mismatch", f"job {job.id}: the record's key is {key!r}; publish it with its id as the key"
    if _unchanged(draft.state.jobs.get(job.id), job):
        return None  # accepted before; a one-shot that has run may be published again
    if job.queue not in draft.inputs.fleet.queues:
        known = ", ".join(sorted(draft.inputs.fleet.queues)) or "none"
        return "unknown-queue", (
            f"job {job.id}: queue {job.queue!r} has no dispatch topic; create it with "
            f"`dueline init --queue {job.queue}`, then publish the job again. Queues: {known}"
        )
    try:
        schedule = compile_schedule(job.schedule, job_id=job.id)
    except ScheduleError as error:
        return "invalid-schedule", f"job {job.id}: {error}"
    if schedule.next_after(read.append_ms - 1) is None:
        return "never-due", f"job {job.id}: its schedule has no due time after it was published; correct it"
    return None


def _taken(draft: Draft, state: JobState | None, effective: int) -> list[int]:
    """Due times at or after the new version's instant that have a record already; one more than allowed: too many."""
    if state is None:
        return []
    taken: set[int] = set()
    cursors = draft.state.cursors.get(state.id) or {}
    for place, span in enumerate(state.spans):
        if span.change != Change.REZONED or span is state.latest:  # what had moved was worked out anew after that
            taken.update(due for due in span.taken if due >= effective)
        last, start = cursors.get(span.version, NONE), max(effective, span.from_ms)
        if last < start or span.schedule is None:
            continue
        for due in span.schedule.between(start, min(last + 1, state.until(place))):
            if len(taken) > draft.settings.max_taken:
                break
            taken.add(due)
    return sorted(taken)


def _after_all_recorded(draft: Draft, state: JobState) -> int:
    """The first instant of which nothing is recorded: what is too much to be listed stays with the version before whole."""
    recorded = (draft.state.cursors.get(state.id) or {}).values()
    named = (due for span in state.spans for due in span.taken)
    return max([state.latest.from_ms - 1, *recorded, *named]) + 1


def ask_back_all(draft: Draft) -> None:
    """For every job, when a term begins: a torn transaction may have kept a version and lost what it asked back."""
    for job_id in sorted({run.job.id for _, run in draft.state.runs.items()}):
        draft.for_job(job_id, _ask_back_job, draft, job_id)


def _ask_back_job(draft: Draft, job_id: str) -> None:
    for _, _, key in list(draft.state.live.prefixed(job_id)):
        ask_back_run(draft, draft.state.runs[key])


def ask_back_run(draft: Draft, run: Run) -> None:
    """A run at whose due time another version holds is decided again under that one, unless it has begun."""
    job = draft.state.jobs.get(run.job.id)
    span = job.at(run.due_ms) if job is not None else None
    if span is not None and span.version > run.job.version and run.trigger == Trigger.SCHEDULE and not run.begun:
        _ask_back(draft, run, span)


def _ask_back(draft: Draft, run: Run, span: Span) -> None:
    """One that a worker holds is asked for: its word counts. Any other one is taken back at once."""
    if run.state != RunState.RUNNING:
        if run.reason != Waiting.RECALLED:
            draft.put_run(waiting(run, Waiting.RECALLED))
    elif run.ahead and draft.now < run.due_ms and not run.recall:
        draft.signal_run(SignalKind.RECALL, draft.put_run(replace(run, recall=span.change)), span.change)


def decide_recalled(draft: Draft) -> None:
    """Runs that came back before they began: what holds at their due time now decides."""
    draft.state.settle()
    for _, _, key in list(draft.state.recalled.between()):
        run = draft.state.runs[key]
        job = draft.state.jobs.get(run.job.id)
        if job is not None:
            draft.for_job(job.id, _decide_again, draft, run, job)


def _decide_again(draft: Draft, run: Run, job: JobState) -> None:
    """Ahead of its due time it can only be offered again; all else waits for it, since versions may still come."""
    following, span = draft.state.dues.get(job.id), job.at(run.due_ms)
    if span is None or (following is not None and following.due_ms < run.due_ms):
        return  # in order: an earlier due time of the new version comes first
    admitted = admission(draft, span, run.trigger)
    passed = _passed_over(span, run.due_ms) or (OVERLAP if admitted is Admission.NEVER else "")
    again = replace(
        run, job=run_job(span.job, span.version), previous_due_ms=draft.state.previous_due(job.id, run.due_ms)
    )
    if draft.now < run.due_ms:
        soon = draft.now >= run.due_ms - span.job.dispatch_ahead_ms and not span.offset(run.due_ms)
        if soon and not passed and admitted is Admission.NOW and draft.placement.has_room(again.job.queue, again.job.handler):
            draft.offer(again)
    elif passed:
        draft.put_run(skipped(run, passed, draft.now))
    elif admitted is Admission.NOW:
        start(draft, again, span)
    else:
        draft.put_run(waiting(again, WAITS[admitted]))


def _passed_over(span: Span, due_ms: int) -> str:
    """Why a due time that an earlier version had is not one of this version; "": it is."""
    if span.deleted:
        return "deleted"
    if not span.has(due_ms):
        return "superseded"
    return PAUSED if span.paused else ""
