"""Commands from `control`: each applied once, or refused with a reason that tells its sender what to do."""

from __future__ import annotations

from dataclasses import replace

from dueline.scheduler.core.definitions import new_version
from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.inputs import Read
from dueline.scheduler.core.life import CANCEL, cancelled, created, run_job, waiting
from dueline.scheduler.core.spans import JobState
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.base import NONE
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.job import Change
from dueline.schemas.run import RunState, Trigger, run_key
from dueline.schemas.work import SignalKind


def decide_command(draft: Draft, read: Read[Command]) -> None:
    """One record of `control`."""
    if read.problem is not None:
        draft.reject(read, read.problem.error, read.problem.detail)
        return
    command = read.value
    if command is None:
        draft.reject(read, "empty", "a command record without a value; see `dueline trigger --help` for how to send one")
        return
    if command.kind == CommandKind.CANCEL:
        _cancel(draft, read, command)
        return
    if command.kind == CommandKind.ACCEPT_POSITIONS:
        return  # the leader's shell acts on it: it is about reading, not about runs
    job = draft.state.jobs.get(command.job)
    if job is not None and any(span.command == command.id for span in job.spans):
        return  # applied before
    at_its_turn = job.before(read.topic, read.partition, read.offset, read.append_ms) if job is not None else None
    if job is None or at_its_turn is None or not at_its_turn.live:
        _unknown(draft, read, command)
    elif command.kind == CommandKind.TRIGGER:
        _trigger(draft, read, command, at_its_turn)
    elif command.kind == CommandKind.DELETE:
        _delete(draft, read, command, at_its_turn, job)
    else:
        _pause(draft, read, command, at_its_turn, job)


def _unknown(draft: Draft, read: Read[Command], command: Command) -> None:
    draft.reject(read, "unknown-job", f"{command.kind}: there is no job {command.job!r}; see `dueline jobs list`")


def _trigger(draft: Draft, read: Read[Command], command: Command, job: JobState) -> None:
    """A manual run. It waits behind a run of a job that must not overlap; it is never passed over."""
    if draft.state.manual.get(run_key(job.id, 0, command.id)):
        return
    span = job.latest
    run = created(
        run_job(span.job, span.version, command.payload),
        read.append_ms,
        trigger=Trigger.MANUAL,
        previous_ms=NONE,
        now=draft.now,
        command=command.id,
    )
    draft.put_run(waiting(run, Waiting.OVERLAP))


def _delete(draft: Draft, read: Read[Command], command: Command, at_its_turn: JobState, job: JobState) -> None:
    """Delete the version that the command names, or whichever holds."""
    holds = at_its_turn.latest.version
    if command.version not in (NONE, holds):
        draft.reject(
            read,
            "version-changed",
            f"delete {job.id}: you named version {command.version}, but version {holds} holds now; look at it and delete again",
        )
    elif job.live:
        new_version(draft, job, Change.DELETED, read, job=job.latest.job, command=command.id, by=command.by)


def _pause(draft: Draft, read: Read[Command], command: Command, at_its_turn: JobState, job: JobState) -> None:
    """Pause or resume, from the instant at which the command was appended."""
    paused = command.kind == CommandKind.PAUSE
    if at_its_turn.latest.paused == paused:
        draft.reject(read, "no-change", f"{command.kind}: job {job.id} is {'paused' if paused else 'not paused'} already")
    elif not job.live:
        _unknown(draft, read, command)
    else:
        change = Change.PAUSED if paused else Change.RESUMED
        new_version(
            draft, job, change, read, job=job.latest.job, paused=paused, command=command.id, by=command.by
        )


def _cancel(draft: Draft, read: Read[Command], command: Command) -> None:
    """End a run: at once where no worker holds it, else by asking the worker that does."""
    run = draft.state.runs.get(command.run)
    if run is None:
        draft.reject(read, "not-active", f"cancel: there is no active run {command.run!r}; see `dueline runs JOB`")
        return
    reason = command.reason or (f"by {command.by}" if command.by else "by command")
    if run.state == RunState.RUNNING:
        if run.recall != CANCEL + reason:
            run = draft.put_run(replace(run, recall=CANCEL + reason))
        draft.signal_run(SignalKind.CANCEL, run, reason)
    else:
        draft.put_run(cancelled(run, reason, draft.now))
