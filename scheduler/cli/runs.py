"""`dueline runs JOB` and `dueline run show RUN`: what ran, when, where and how it ended."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dueline.scheduler.audit.evidence import Seen
from dueline.scheduler.audit.readmodel import (
    Attempts,
    RunTrail,
    read_attempts,
    read_histories,
    read_ledger,
    read_steps,
)
from dueline.scheduler.cli.errors import CommandError
from dueline.scheduler.cli.fleet import read_heartbeats, why_waiting
from dueline.scheduler.cli.options import Job, Json, Tz
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import display_of, instant_of, session_of
from dueline.scheduler.cli.times import NOTHING, Display, instant, took
from dueline.schemas.base import NONE
from dueline.schemas.run import Run, RunState, Summary
from dueline.schemas.work import AttemptEvent, EventKind, Step

run_app = typer.Typer(name="run", help="Look at one run.", no_args_is_help=True, rich_markup_mode=None)


def runs(
    context: typer.Context,
    job: Job,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Only due times from then on: -2h, 2026-11-30, ...")
    ] = "-24h",
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """The runs of a job, newest first, with what was passed over.

    \b
    Examples:
      dueline runs menu
      dueline runs menu --since -7d --tz Europe/Berlin
      dueline runs menu --since 2026-11-01 --json
    """
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    start = instant_of(display, "--since", since, session.clock.wall_ms())
    with session.log() as admin:
        ledger = read_ledger(admin, session.namespace, job=job)
        known = job in read_histories(admin, session.namespace).jobs
    if not known and not ledger.runs:
        raise CommandError(f"there is no job {job!r} in namespace {session.namespace_name}", todo="see `dueline jobs list`")
    entries: list[RunTrail | Seen[Summary]] = [
        *(trail for trail in ledger.runs.values() if trail.last.record.due_ms >= start),
        *(seen for seen in ledger.summaries.values() if seen.record.last_ms >= start),
    ]
    entries.sort(key=_due, reverse=True)
    if as_json:
        output.json([_entry_json(entry) for entry in entries])
        return
    rows = [run_row(entry, display) if isinstance(entry, RunTrail) else _summary_row(entry, display) for entry in entries]
    columns = ["run", "state", "reason", f"due ({display.name})", "started", "took", "#attempt", "worker"]
    output.table(columns, rows, empty=f"no runs of {job} since {display.show(start)}")


@run_app.command("show")
def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, e.g. menu@2026-11-30T06:00:00Z.")],
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """One run: each attempt with worker, times, steps and traceback.

    \b
    Example:
      dueline run show menu@2026-11-30T06:00:00Z
    """
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    with session.log() as admin:
        trail = read_ledger(admin, session.namespace, only=run).runs.get(run)
        if trail is None:
            raise CommandError(f"there is no run {run!r}", todo="see `dueline runs JOB`; a run's id looks like JOB@TIME")
        attempts = read_attempts(admin, session.namespace, only=run)
        steps = read_steps(admin, session.namespace, run)
        waits = trail.last.record.state == RunState.WAITING
        beats = read_heartbeats(admin, session.namespace) if waits else []
    why = why_waiting(trail.last.record, beats, session.clock.wall_ms())
    if as_json:
        output.json({**run_json(trail), "waiting": why or None, "attempts": _attempts_json(trail, attempts, steps)})
        return
    _show_run(output, display, trail, attempts, steps)
    if why:
        output.line(why)


# --- steps ------------------------------------------------------------------------------------------------------------


def run_row(trail: RunTrail, display: Display) -> list[str]:
    """A run as a row: run, state, reason, due, started, took, attempt, worker."""
    run = trail.last.record
    return [
        trail.key,
        run.state,
        run.reason,
        display.show(run.due_ms),
        display.show(run.started_ms),
        took(run.started_ms, run.finished_ms) if trail.final else NOTHING,
        str(run.attempt) if run.attempt else "",
        run.worker,
    ]


def _summary_row(seen: Seen[Summary], display: Display) -> list[str]:
    summary = seen.record
    stretch = f"{display.show(summary.first_ms)} – {display.show(summary.last_ms)}"
    return [f"{summary.count} due times", "skipped", summary.reason, stretch, NOTHING, NOTHING, "", ""]


def _due(entry: RunTrail | Seen[Summary]) -> int:
    return entry.last.record.due_ms if isinstance(entry, RunTrail) else entry.record.last_ms


def run_json(trail: RunTrail) -> dict[str, object]:
    """A run for programs."""
    run = trail.last.record
    return {
        "run": trail.key,
        "job": run.job.id,
        "version": run.job.version,
        "trigger": run.trigger,
        "state": run.state,
        "reason": run.reason or None,
        "due": instant(run.due_ms),
        "until": instant(run.until_ms),
        "started": instant(run.started_ms),
        "finished": instant(run.finished_ms),
        "attempt": run.attempt,
        "failures": run.failures,
        "losses": run.losses,
        "worker": run.worker or None,
        "outcome": run.outcome or None,
        "error": run.error or None,
        "result": _json(run.result),
        "at": {
            "topic": trail.last.place.topic,
            "partition": trail.last.place.partition,
            "offset": trail.last.place.offset,
        },
    }


def _entry_json(entry: RunTrail | Seen[Summary]) -> dict[str, object]:
    if isinstance(entry, RunTrail):
        return run_json(entry)
    summary = entry.record
    return {
        "summary": entry.key,
        "job": summary.job,
        "version": summary.version,
        "state": "skipped",
        "reason": summary.reason,
        "first": instant(summary.first_ms),
        "last": instant(summary.last_ms),
        "count": summary.count,
        "at": {"topic": entry.place.topic, "partition": entry.place.partition, "offset": entry.place.offset},
    }


def _show_run(output: Output, display: Display, trail: RunTrail, attempts: Attempts, steps: list[Seen[Step]]) -> None:
    run = trail.last.record
    output.facts(
        [
            ("run", trail.key),
            ("state", f"{run.state} ({run.reason})" if run.reason else run.state),
            ("due", f"{display.show(run.due_ms)} {display.name}"),
            ("trigger", run.trigger),
            ("job version", str(run.job.version)),
            ("handler", f"{run.job.handler} on queue {run.job.queue}"),
            ("failures", f"{run.failures}; {run.job.max_retries} retries allowed; workers lost: {run.losses}"),
            *_optional(run, display),
            ("at", str(trail.last.place)),
        ]
    )
    numbers = _attempt_numbers(trail, attempts)
    if not numbers:
        output.note("no worker has asked for it yet" if not trail.final else "it never reached a worker")
    for number in numbers:
        output.line()
        _show_attempt(output, display, number, trail, attempts, steps)


def _optional(run: Run, display: Display) -> list[tuple[str, str]]:
    facts = []
    if run.until_ms != NONE and run.state == "waiting":
        facts.append(("not before", display.show(run.until_ms)))
    if run.result not in ("", "null"):
        facts.append(("result", run.result))
    return facts


def _attempt_numbers(trail: RunTrail, attempts: Attempts) -> list[int]:
    events = {seen.record.attempt for seen in attempts.events.get(trail.key, [])}
    return sorted(events | {grant.attempt for grant in trail.grants})


def _show_attempt(
    output: Output, display: Display, number: int, trail: RunTrail, attempts: Attempts, steps: list[Seen[Step]]
) -> None:
    events = [seen for seen in attempts.events.get(trail.key, []) if seen.record.attempt == number]
    grant = next((grant for grant in trail.grants if grant.attempt == number), None)
    end = next((seen.record for seen in events if seen.record.kind == EventKind.FINISHED), None)
    claims = [seen for seen in events if seen.record.kind == EventKind.CLAIMED]
    worker = grant.worker if grant is not None else claims[0].record.worker if claims else "?"
    output.line(f"attempt {number} on {worker}: {_ended(end, events, _lost(trail, number))}")
    rows = [
        [_event_text(seen.record), display.show(seen.place.append_ms), seen.record.incarnation, str(seen.place)]
        for seen in sorted(events, key=lambda each: (each.place.append_ms, each.place.offset))
    ]
    if grant is not None:
        row = ["granted", display.show(grant.place.append_ms), grant.incarnation, str(grant.place)]
        rows.insert(1 if rows else 0, row)
    output.table(["event", f"at ({display.name})", "incarnation", "record"], rows, empty="")
    if end is not None:
        output.facts(
            [
                ("started", display.show(end.started_ms)),
                ("took", took(end.started_ms, end.finished_ms)),
                ("steps", f"{end.steps_done} done, {end.steps_skipped} skipped: done by an earlier attempt"),
            ]
        )
    own = [seen.record for seen in steps if seen.record.attempt == number]
    step_rows = [[step.name, display.show(step.finished_ms), took(step.started_ms, step.finished_ms)] for step in own]
    if step_rows:
        output.table(["step", "done", "took"], step_rows, empty="")
    if end is not None and end.error:
        output.block(end.error)


def _lost(trail: RunTrail, number: int) -> bool:
    """Whether the run went on, or ended, after an attempt that was granted and whose worker told no end."""
    run = trail.last.record
    granted = any(grant.attempt == number for grant in trail.grants)
    return granted and (run.attempt > number or run.state != RunState.RUNNING)


def _ended(end: AttemptEvent | None, events: list[Seen[AttemptEvent]], lost: bool) -> str:
    if end is not None:
        return f"{end.outcome} ({end.reason})" if end.reason else end.outcome
    declined = next((seen.record for seen in events if seen.record.kind == EventKind.DECLINED), None)
    if declined is not None:
        return f"declined ({declined.reason})"
    return "worker lost: it fell silent and was fenced" if lost else "no end recorded yet"


def _is_lost(trail: RunTrail, number: int, events: list[AttemptEvent]) -> bool:
    return _lost(trail, number) and all(event.kind == EventKind.CLAIMED for event in events)


def _event_text(event: AttemptEvent) -> str:
    detail = event.outcome if event.kind == EventKind.FINISHED else event.reason
    return f"{event.kind} ({detail})" if detail else event.kind


def _attempts_json(trail: RunTrail, attempts: Attempts, steps: list[Seen[Step]]) -> list[dict[str, object]]:
    result: list[dict[str, object]] = []
    for number in _attempt_numbers(trail, attempts):
        events = [seen.record for seen in attempts.events.get(trail.key, []) if seen.record.attempt == number]
        end = next((event for event in events if event.kind == EventKind.FINISHED), None)
        grant = next((grant for grant in trail.grants if grant.attempt == number), None)
        result.append(
            {
                "attempt": number,
                "worker": grant.worker if grant else events[0].worker,
                "incarnation": grant.incarnation if grant else events[0].incarnation,
                "granted": instant(grant.place.append_ms) if grant else None,
                "events": [event.kind for event in events],
                "started": instant(end.started_ms) if end else None,
                "finished": instant(end.finished_ms) if end else None,
                "outcome": end.outcome if end else "worker-lost" if _is_lost(trail, number, events) else None,
                "reason": (end.reason or None) if end else None,
                "error": (end.error or None) if end else None,
                "steps_done": end.steps_done if end else None,
                "steps_skipped": end.steps_skipped if end else None,
                "steps": [
                    {"name": seen.record.name, "finished": instant(seen.record.finished_ms)}
                    for seen in steps
                    if seen.record.attempt == number
                ],
            }
        )
    return result


def _json(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except json.JSONDecodeError:
        return text
