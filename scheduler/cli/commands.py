"""`dueline trigger`, `cancel` and `accept-positions`: what a person can ask of the leader beside a job's definition."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Final

import typer

from dueline.scheduler.audit.readmodel import FINAL_STATES, read_ledger
from dueline.scheduler.cli.control import check_seen, execute, new_command
from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.options import Job, Json, NoWait, Reason, WaitS
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import session_of
from dueline.scheduler.cli.times import instant
from dueline.scheduler.cli.watch import Answer, ReadWithoutEffect, Watch
from dueline.scheduler.core.ports import LogAdmin
from dueline.schemas.codec import Record
from dueline.schemas.command import CommandKind
from dueline.schemas.run import Run, RunState, run_key
from dueline.schemas.topics import Namespace

RECALL_CANCEL: Final = "cancel:"
"""How a run's `recall` begins once the leader has asked its worker to stop."""


def trigger(
    context: typer.Context,
    job: Job,
    payload: Annotated[str, typer.Option("--payload", metavar="JSON", help="JSON text that replaces the job's payload.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended; exit 1 unless it succeeded.")] = False,
    command_id: Annotated[
        str, typer.Option("--id", help="The command's id: sent twice with the same id, it makes one run.")
    ] = "",
    reason: Reason = "",
    no_wait: NoWait = False,
    wait_timeout: WaitS = 30.0,
    as_json: Json = False,
) -> None:
    """Run a job now, beside its schedule. Prints the id of the run.

    \b
    Examples:
      dueline trigger menu
      dueline trigger menu --payload '{"day": "2026-11-30"}' --wait
      dueline trigger menu --id deploy-1234        # repeat it freely: one run
    """
    session, output = session_of(context), Output(as_json=as_json)
    if payload:
        _check_json(payload)
    command = new_command(CommandKind.TRIGGER, command_id=command_id, job=job, payload=payload, reason=reason)
    key = run_key(job, 0, command.id)

    def is_run(record: Record) -> bool:
        return isinstance(record, Run) and record.key == key

    def ended(record: Record) -> bool:
        return isinstance(record, Run) and record.key == key and record.state in FINAL_STATES

    def until_ended(watch: Watch, first: Record) -> Record:
        return first if ended(first) else watch.follow(ended, None) or first

    then = until_ended if wait else None
    stands = _standing(session.namespace, key, is_run)
    found = execute(session, command, is_run, wait_s=None if no_wait else wait_timeout, then=then, stands=stands)
    run = found if isinstance(found, Run) else None
    outcome = "made" if run is not None else "sent" if no_wait else "unconfirmed"
    if as_json:
        state = run.state if run is not None else None
        output.json({"run": key, "command": command.id, "outcome": outcome, "state": state, **_end_json(run)})
    elif outcome != "unconfirmed":
        output.line(key)
    check_seen(command, found, f"dueline run show '{key}'")
    if run is not None and wait:
        output.note(f"{run.state} ({run.reason})" if run.reason else run.state)
        if run.state != RunState.SUCCEEDED:
            raise CommandError(f"run {key} {run.state}", todo=f"see `dueline run show '{key}'`")


def cancel(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as `dueline runs JOB` shows it.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    reason: Reason = "",
    no_wait: NoWait = False,
    wait_timeout: WaitS = 30.0,
    as_json: Json = False,
) -> None:
    """Cancel a run that has not ended.

    A run that waits ends at once. One that runs is asked to stop: its handler sees it at its next step.

    \b
    Example:
      dueline cancel menu@2026-11-30T06:00:00Z --reason 'wrong menu'
    """
    session, output = session_of(context), Output(as_json=as_json)
    command = new_command(CommandKind.CANCEL, run=run, reason=reason)

    def asked_back(record: Record) -> bool:
        return isinstance(record, Run) and record.key == run and record.recall.startswith(RECALL_CANCEL)

    def asked(record: Record) -> bool:
        return asked_back(record) or ended(record)

    def ended(record: Record) -> bool:
        return isinstance(record, Run) and record.key == run and record.state in FINAL_STATES

    def until_ended(watch: Watch, first: Record) -> Record:
        return first if ended(first) else watch.follow(ended, None) or first

    then = until_ended if wait else None
    stands = _standing(session.namespace, run, asked_back)
    found = execute(session, command, asked, wait_s=None if no_wait else wait_timeout, then=then, stands=stands)
    if as_json:
        output.json({"run": run, "command": command.id, "outcome": _cancelled(found), **_end_json(found)})
    elif found is None:
        output.note(f"cancel {run}: sent")
    elif isinstance(found, Run) and found.state in FINAL_STATES:
        output.note(f"run {run} {found.state}{f' ({found.reason})' if found.reason else ''}")
    elif isinstance(found, Run):
        output.note(f"run {run} was asked to stop; it ends at its next step")
    check_seen(command, found, f"dueline run show '{run}'")


def accept_positions(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic the alarm names, e.g. dueline.jobs.")],
    reason: Reason = "",
    no_wait: NoWait = False,
    wait_timeout: WaitS = 30.0,
    as_json: Json = False,
) -> None:
    """Let the leader read on in a topic that was created anew or has lost records.

    The leader alarms when a position it wrote down is not in the topic any more, or the topic has another id. It reads
    nothing there until somebody who knows why says that this is right.

    \b
    Example:
      dueline accept-positions dueline.attempts --reason 'topic was recreated after the disk failure'
    """
    session, output = session_of(context), Output(as_json=as_json)
    command = new_command(CommandKind.ACCEPT_POSITIONS, topic=topic, reason=reason)
    execute(session, command, lambda _: False, wait_s=None if no_wait else wait_timeout)
    if as_json:
        output.json({"topic": topic, "command": command.id, "outcome": "sent" if no_wait else "taken-up"})
    else:
        output.note(f"{topic}: {'sent' if no_wait else 'the leader has taken it up; see its log for what it reads now'}")


# --- steps ------------------------------------------------------------------------------------------------------------


def _standing(namespace: Namespace, run: str, answers: Answer) -> Callable[[LogAdmin], Record | None]:
    """For a command that was given before: the leader does nothing twice, and what it did then stands in the ledger."""

    def look(admin: LogAdmin) -> Record | None:
        trail = read_ledger(admin, namespace, only=run).runs.get(run)
        return trail.last.record if trail is not None and answers(trail.last.record) else None

    return look


def _check_json(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise CommandError(
            f"--payload is not JSON: {error.msg} at character {error.pos + 1}",
            todo="quote it for the shell: --payload '{\"day\": 1}'",
            code=ExitCode.USAGE,
        ) from error


def _cancelled(found: Record | ReadWithoutEffect | None) -> str:
    """What became of a cancel, in one word for programs."""
    if not isinstance(found, Run):
        return "sent" if found is None else "unconfirmed"
    return found.state if found.state in FINAL_STATES else "asked"


def _end_json(run: Record | ReadWithoutEffect | None) -> dict[str, object]:
    if not isinstance(run, Run) or run.state not in FINAL_STATES:
        return {}
    return {"reason": run.reason or None, "finished": instant(run.finished_ms), "error": run.error or None}
