"""`dueline jobs`: what is defined, what holds, and since when."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from dueline.scheduler.audit.readmodel import JobHistory, Ledger, RunTrail, read_histories, read_ledger
from dueline.scheduler.cli.control import check_seen, execute, new_command
from dueline.scheduler.cli.errors import CommandError
from dueline.scheduler.cli.jobs_apply import apply
from dueline.scheduler.cli.options import Job, Json, NoWait, Reason, Tz, WaitS
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.runs import run_row
from dueline.scheduler.cli.session import Session, display_of, session_of
from dueline.scheduler.cli.times import Display, instant
from dueline.scheduler.cli.watch import ReadWithoutEffect
from dueline.scheduler.core.schedule import ScheduleError, compile_schedule
from dueline.schemas.base import NONE
from dueline.schemas.codec import Record
from dueline.schemas.command import CommandKind
from dueline.schemas.definition import job_to_definition
from dueline.schemas.errors import ContractError
from dueline.schemas.job import JobVersion

app = typer.Typer(name="jobs", help="Define jobs and look at them.", no_args_is_help=True, rich_markup_mode=None)
app.command("apply")(apply)

LAST_RUNS = 5
"""Runs shown by `jobs show`."""


@app.command("list")
def list_jobs(
    context: typer.Context,
    deleted: Annotated[bool, typer.Option("--deleted", help="Show deleted jobs too.")] = False,
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """Every job: schedule, last run with its outcome, next due time, state.

    \b
    Example:
      dueline jobs list --tz Europe/Berlin
    """
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    with session.log() as admin:
        ledger = read_ledger(admin, session.namespace)
        histories = read_histories(admin, session.namespace)
    now = session.clock.wall_ms()
    last = _last_runs(ledger, now)
    shown = [history for history in histories.jobs.values() if deleted or not history.deleted]
    shown.sort(key=lambda history: history.job)
    if as_json:
        output.json([_summary(history, last.get(history.job), now) for history in shown])
        return
    columns, rows = _table(shown, last, display, now)
    output.table(columns, rows, empty="no jobs; define one with `dueline jobs apply FILE`")


@app.command("show")
def show(context: typer.Context, job: Job, tz: Tz = "UTC", as_json: Json = False) -> None:
    """A job's definition as it holds, its next due times and its last runs."""
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    with session.log() as admin:
        ledger = read_ledger(admin, session.namespace, job=job)
        history = history_of(session, read_histories(admin, session.namespace).jobs, job)
    now = session.clock.wall_ms()
    version = history.latest.record
    trails = sorted(ledger.runs.values(), key=lambda trail: trail.last.record.due_ms)[-LAST_RUNS:]
    if as_json:
        last = trails[-1] if trails else None
        output.json({**_summary(history, last, now), "definition": _definition(version)})
        return
    output.facts(
        [
            ("job", job),
            ("state", _state(history)),
            ("version", f"{version.version}, {version.change} at {display.show(version.effective_ms)}"),
            ("next due", display.show(_next_due(history, now))),
            ("tzdata", version.tzdata or "–"),
            *([("problem", problem)] if (problem := _problem(history)) else []),
        ]
    )
    output.line()
    output.block(json.dumps(_definition(version), indent=2, ensure_ascii=False))
    output.line()
    columns = ["run", "state", "reason", f"due ({display.name})", "started", "took", "#attempt", "worker"]
    output.table(columns, [run_row(trail, display) for trail in reversed(trails)], empty="no runs yet")


@app.command("history")
def history(context: typer.Context, job: Job, tz: Tz = "UTC", as_json: Json = False) -> None:
    """Every version of a job: what changed it, when, by whom, and where in the log it stands."""
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    with session.log() as admin:
        versions = history_of(session, read_histories(admin, session.namespace).jobs, job).versions
    if as_json:
        output.json(
            [
                {
                    "job": job,
                    "version": seen.record.version,
                    "change": seen.record.change,
                    "effective": instant(seen.record.effective_ms),
                    "paused": seen.record.paused,
                    "by": seen.record.by or None,
                    "command": seen.record.command or None,
                    "taken": [instant(due) for due in seen.record.taken],
                    "definition": _definition(seen.record),
                    "at": {"topic": seen.place.topic, "partition": seen.place.partition, "offset": seen.place.offset},
                    "source": {
                        "topic": seen.record.source_topic,
                        "partition": seen.record.source_partition,
                        "offset": seen.record.source_offset,
                    },
                }
                for seen in versions
            ]
        )
        return
    rows = [
        [
            str(seen.record.version),
            seen.record.change,
            display.show(seen.record.effective_ms),
            schedule_text(seen.record.definition.schedule),
            seen.record.definition.handler,
            seen.record.by or "–",
            str(seen.place),
        ]
        for seen in versions
    ]
    columns = ["#version", "change", f"from ({display.name})", "schedule", "handler", "by", "at"]
    output.table(columns, rows, empty="")


@app.command("delete")
def delete(
    context: typer.Context,
    job: Job,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Only if this is the version that holds.", show_default=False)
    ] = None,
    reason: Reason = "",
    no_wait: NoWait = False,
    wait_timeout: WaitS = 30.0,
    as_json: Json = False,
) -> None:
    """Delete a job. Its history stays; due times before the deletion are still decided."""
    wait_s = None if no_wait else wait_timeout
    _change(context, CommandKind.DELETE, job, reason, wait_s, version=version or NONE, as_json=as_json)


@app.command("pause")
def pause(
    context: typer.Context, job: Job, reason: Reason = "", no_wait: NoWait = False, wait_timeout: WaitS = 30.0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Pause a job: from now on its due times are recorded as skipped (paused)."""
    _change(context, CommandKind.PAUSE, job, reason, None if no_wait else wait_timeout, as_json=as_json)


@app.command("resume")
def resume(
    context: typer.Context, job: Job, reason: Reason = "", no_wait: NoWait = False, wait_timeout: WaitS = 30.0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Resume a paused job: its next due time runs again."""
    _change(context, CommandKind.RESUME, job, reason, None if no_wait else wait_timeout, as_json=as_json)


# --- steps ------------------------------------------------------------------------------------------------------------


def _change(
    context: typer.Context, kind: CommandKind, job: str, reason: str, wait_s: float | None, *, version: int = NONE, as_json: bool
) -> None:
    session, output = session_of(context), Output(as_json=as_json)
    command = new_command(kind, job=job, version=version, reason=reason)

    def answers(record: Record) -> bool:
        return isinstance(record, JobVersion) and record.command == command.id

    record = execute(session, command, answers, wait_s=wait_s)
    made = record if isinstance(record, JobVersion) else None
    if as_json:
        output.json(
            {
                "job": job,
                "command": command.id,
                "outcome": made.change if made is not None else _without_version(record, sent=wait_s is None),
                "version": made.version if made is not None else None,
                "effective": instant(made.effective_ms) if made is not None else None,
            }
        )
    elif wait_s is None:
        output.note(f"{kind} {job}: sent")
    elif made is not None:
        output.note(f"job {job} {made.change}: version {made.version}, from {display_of('UTC').show(made.effective_ms)}")
    elif record is None:
        output.note(f"job {job}: no change, it was so already")
    check_seen(command, record, f"dueline jobs history {job}")


def _without_version(found: Record | ReadWithoutEffect | None, *, sent: bool) -> str:
    """What became of a command that made no version, in one word for programs."""
    return "unconfirmed" if isinstance(found, ReadWithoutEffect) else "sent" if sent else "no-change"


def _table(
    shown: Sequence[JobHistory], last: Mapping[str, RunTrail], display: Display, now: int
) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of `jobs list`; a column of problems only when there is one."""
    rows = [
        [
            history.job,
            _state(history),
            schedule_text(history.latest.record.definition.schedule),
            display.show(last[history.job].last.record.due_ms) if history.job in last else "–",
            last[history.job].last.record.state if history.job in last else "–",
            display.show(_next_due(history, now)),
            _problem(history),
        ]
        for history in shown
    ]
    columns = ["job", "state", "schedule", f"last due ({display.name})", "outcome", f"next due ({display.name})", "problem"]
    if not any(row[-1] for row in rows):
        rows, columns = [row[:-1] for row in rows], columns[:-1]
    return columns, rows


def history_of(session: Session, histories: dict[str, JobHistory], job: str) -> JobHistory:
    """The job's history. Raises CommandError when there never was such a job."""
    found = histories.get(job)
    if found is None:
        raise CommandError(
            f"there is no job {job!r} in namespace {session.namespace_name}", todo="see `dueline jobs list --deleted`"
        )
    return found


def schedule_text(schedule: str) -> str:
    """A schedule's JSON text as short as it can be read: a cron expression alone without its quotes."""
    try:
        value = json.loads(schedule)
    except json.JSONDecodeError:
        return schedule
    if isinstance(value, str):
        return value
    entries: Sequence[object] = value if isinstance(value, list) else [value]
    parts = [
        " ".join(str(v) if k == "cron" else f"{k} {_plain(v)}" for k, v in entry.items())
        if isinstance(entry, dict)
        else str(entry)
        for entry in entries
    ]
    return "; ".join(parts)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _last_runs(ledger: Ledger, now: int) -> dict[str, RunTrail]:
    """Each job's latest run that is due: one made ahead of time is not its last run yet."""
    last: dict[str, RunTrail] = {}
    for trail in ledger.runs.values():
        run = trail.last.record
        if run.due_ms > now:
            continue
        if run.job.id not in last or run.due_ms > last[run.job.id].last.record.due_ms:
            last[run.job.id] = trail
    return last


def _state(history: JobHistory) -> str:
    if history.deleted:
        return "deleted"
    return "paused" if history.latest.record.paused else "active"


def _next_due(history: JobHistory, now: int) -> int | None:
    """None while paused or deleted, or when the schedule has ended."""
    version = history.latest.record
    if history.deleted or version.paused:
        return None
    try:
        schedule = compile_schedule(version.definition.schedule, job_id=history.job)
    except ScheduleError:
        return None  # `_problem` says why; a list must not fail for it
    return schedule.next_after(max(now, version.effective_ms - 1))


def _problem(history: JobHistory) -> str:
    """Why the job has no due times though it is there: this release does not understand its stored schedule."""
    if history.deleted:
        return ""
    try:
        compile_schedule(history.latest.record.definition.schedule, job_id=history.job)
    except ScheduleError as error:
        return f"its schedule does not compile: {error}"
    return ""


def _definition(version: JobVersion) -> dict[str, object]:
    try:
        return job_to_definition(version.definition)
    except ContractError:
        return {"id": version.job, "schedule": version.definition.schedule, "handler": version.definition.handler}


def _summary(history: JobHistory, last: RunTrail | None, now: int) -> dict[str, object]:
    version = history.latest.record
    run = last.last.record if last is not None else None
    return {
        "job": history.job,
        "state": _state(history),
        "version": version.version,
        "schedule": json.loads(version.definition.schedule),
        "handler": version.definition.handler,
        "queue": version.definition.queue,
        "last_run": None
        if run is None
        else {"run": run.key, "due": instant(run.due_ms), "state": run.state, "reason": run.reason or None},
        "next_due": instant(_next_due(history, now)),
        "problem": _problem(history) or None,
    }
