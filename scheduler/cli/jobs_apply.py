"""`dueline jobs apply`: a file's jobs are checked, sent to `jobs`, and waited for until a scheduler has made versions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from dueline.scheduler.audit.reading import read_partition
from dueline.scheduler.audit.readmodel import Histories, JobHistory, read_histories
from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.jobfile import FileRefused, ReadJob, read_jobs
from dueline.scheduler.cli.next import preview_json, show_preview
from dueline.scheduler.cli.options import Json, NoWait, Tz, WaitS
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.sending import Sender
from dueline.scheduler.cli.session import Session, display_of, session_of
from dueline.scheduler.cli.times import Display, instant
from dueline.scheduler.cli.watch import Answered, NoAnswer, ReadWithoutEffect, Refusal, Watch, watching
from dueline.scheduler.core.ports import Delivered, LogAdmin, Outgoing
from dueline.schemas.codec import Record, encode, headers
from dueline.schemas.definition import parse_job
from dueline.schemas.errors import ContractError
from dueline.schemas.job import Change, Job, JobVersion

PREVIEW: Final = 3
"""Due times shown of each job."""

MOST_PREVIEWS: Final = 10
"""Jobs whose schedule is shown in words; of a longer file only the warnings are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of one job of the file."""

    read: ReadJob
    result: str  # unchanged | created | updated | sent | refused | no answer | unconfirmed
    version: int = 0
    effective_ms: int = -1
    error: str = ""


def apply(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A job file, YAML or JSON; - reads standard input.")],
    check: Annotated[bool, typer.Option("--check", help="Check the file and show the due times; send nothing.")] = False,
    no_wait: NoWait = False,
    wait_timeout: WaitS = 30.0,
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """Create or change the jobs of a file.

    The file is checked as a whole, with line numbers, before anything is sent: one bad job refuses it. A job that is
    defined so already is left alone ("unchanged"). Jobs that are not in the file stay as they are.

    \b
    Examples:
      dueline jobs apply jobs.yaml
      dueline jobs apply --check jobs.yaml
      generate-jobs | dueline jobs apply -
    """
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    jobs = _checked(file)
    now = session.clock.wall_ms()
    if check:
        results = [Applied(read=read, result="valid") for read in jobs]
    else:
        results = _send(session, jobs, wait_s=None if no_wait else wait_timeout)
    _show(output, display, results, now)
    _end(results, wait_timeout)


# --- steps ------------------------------------------------------------------------------------------------------------


def _checked(file: str) -> list[ReadJob]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{file}: not UTF-8 text, at byte {error.start}", code=ExitCode.USAGE) from error
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}", code=ExitCode.USAGE) from error
    try:
        return read_jobs(text)
    except FileRefused as refused:
        name = "standard input" if file == "-" else file
        raise CommandError(
            "\n".join(fault.show(name) for fault in refused.faults),
            todo=f"nothing was sent: mend the {len(refused.faults)} place(s) above and apply the file again",
            code=ExitCode.USAGE,
        ) from refused


def _send(session: Session, jobs: Sequence[ReadJob], *, wait_s: float | None) -> list[Applied]:
    """Send what differs from what holds; then wait for all of it together, `wait_s` at most."""
    namespace = session.namespace
    with session.cluster() as kafka:
        admin = kafka.admin()
        histories = read_histories(admin, namespace)
        latest = _newer_than_versions(admin, namespace.jobs, histories)
        with watching(kafka, namespace, session.clock) as watch, Sender(kafka, session.timeout_s) as sender:
            sent: dict[str, Delivered] = {}
            for read in jobs:
                if not _holds(read.job, histories.jobs.get(read.job.id), latest):
                    record = Outgoing(
                        topic=namespace.jobs,
                        partition=0,
                        key=read.job.id.encode(),
                        value=encode(read.job),
                        headers=headers(read.job),
                    )
                    sent[read.job.id] = sender.send(record)
            deadline = session.clock.monotonic_s() + (wait_s or 0.0)
            results = []
            for read in jobs:
                if read.job.id not in sent:
                    results.append(_unchanged(read, histories.jobs[read.job.id]))
                elif wait_s is None:
                    results.append(Applied(read=read, result="sent"))
                else:
                    left = max(0.0, deadline - session.clock.monotonic_s())
                    results.append(_await(watch, read, sent[read.job.id], left))
            return results


def _newer_than_versions(admin: LogAdmin, topic: str, histories: Histories) -> dict[str, Job | None]:
    """The last record of each job on `jobs` behind the last one that became a version: what is still on its way.

    None stands for a deletion and for what can't be read.
    """
    sources = [
        seen.record.source_offset
        for history in histories.jobs.values()
        for seen in history.versions
        if seen.record.source_topic == topic
    ]
    latest: dict[str, Job | None] = {}
    start = max(sources, default=-1) + 1
    if start > admin.end_offset((topic, 0)):
        return latest
    for received in read_partition(admin, (topic, 0), start=start):
        key = (received.key or b"").decode(errors="replace")
        try:
            latest[key] = parse_job(received.value) if received.value is not None else None
        except ContractError:
            latest[key] = None
    return latest


def _holds(job: Job, history: JobHistory | None, latest: dict[str, Job | None]) -> bool:
    if history is None or history.deleted or history.latest.record.definition != job:
        return False
    return job.id not in latest or latest[job.id] == job


def _unchanged(read: ReadJob, history: JobHistory) -> Applied:
    version = history.latest.record
    return Applied(read=read, result="unchanged", version=version.version, effective_ms=version.effective_ms)


def _await(watch: Watch, read: ReadJob, sent: Delivered, timeout_s: float) -> Applied:
    match watch.wait(sent, _version_of(sent), timeout_s):
        case Answered(record=JobVersion() as version):
            result = "created" if version.version == 1 else "updated"
            return Applied(read=read, result=result, version=version.version, effective_ms=version.effective_ms)
        case Refusal(rejected=rejected):
            return Applied(read=read, result="refused", error=f"{rejected.error}: {rejected.detail}")
        case ReadWithoutEffect():
            return _without_effect(watch, read)
        case NoAnswer() | Answered():
            return Applied(read=read, result="no answer")


def _without_effect(watch: Watch, read: ReadJob) -> Applied:
    """The leader makes no version of a definition that holds, as somebody else may have made it hold; else nobody knows yet."""
    history = read_histories(watch.kafka.admin(), watch.namespace).jobs.get(read.job.id)
    if history is not None and _holds(read.job, history, {}):
        return _unchanged(read, history)
    return Applied(read=read, result="unconfirmed")


def _version_of(sent: Delivered) -> Callable[[Record], bool]:
    def answers(record: Record) -> bool:
        return (
            isinstance(record, JobVersion)
            and record.change == Change.DEFINED
            and (record.source_topic, record.source_partition, record.source_offset) == (sent.topic, sent.partition, sent.offset)
        )

    return answers


def _show(output: Output, display: Display, results: Sequence[Applied], now: int) -> None:
    if output.as_json:
        output.json([_applied_json(applied, _start(applied, now)) for applied in results])
        return
    rows = [
        [
            applied.read.job.id,
            applied.result,
            str(applied.version or ""),
            display.show(applied.read.schedule.next_after(_start(applied, now))),
        ]
        for applied in results
    ]
    output.table(["job", "result", "#version", f"next due ({display.name})"], rows, empty="")
    _preview(output, [applied for applied in results if applied.result != "unchanged"], now)
    for applied in results:
        if applied.error:
            output.note(f"job {applied.read.job.id} was refused: {applied.error}")


def _preview(output: Output, results: Sequence[Applied], now: int) -> None:
    """The schedule of each job in words and due times, in its own zone; of many jobs, the warnings alone."""
    for applied in results:
        job, schedule, start = applied.read.job, applied.read.schedule, _start(applied, now)
        if len(results) > MOST_PREVIEWS:
            for warning in schedule.warnings_at(start):
                output.note(f"line {applied.read.line}: job {job.id}: warning: {warning}")
            continue
        output.line()
        output.line(f"{job.id}:")
        show_preview(output, schedule, start=start, count=PREVIEW, zone=schedule.entries[0].core.zone)


def _start(applied: Applied, now: int) -> int:
    """From when on due times are shown: a version that takes effect later has none before."""
    return max(now, applied.effective_ms - 1)


def _applied_json(applied: Applied, start: int) -> dict[str, object]:
    schedule = applied.read.schedule
    return {
        "job": applied.read.job.id,
        "result": applied.result,
        "version": applied.version or None,
        "effective": instant(applied.effective_ms),
        "error": applied.error or None,
        "preview": preview_json(schedule, start=start, count=PREVIEW, zone=schedule.entries[0].core.zone),
    }


def _end(results: Sequence[Applied], waited_s: float) -> None:
    refused = [applied.read.job.id for applied in results if applied.result == "refused"]
    if refused:
        raise CommandError(f"refused: {', '.join(refused)}", todo="mend what is said above, and apply the file again")
    silent = [applied.read.job.id for applied in results if applied.result == "no answer"]
    if silent:
        raise CommandError(
            f"sent, but no scheduler took it up within {waited_s:g} s: {', '.join(silent)}",
            todo="see that a scheduler runs for this namespace (`dueline scheduler`); the definitions wait for it",
            code=ExitCode.NO_ANSWER,
        )
    unseen = [applied.read.job.id for applied in results if applied.result == "unconfirmed"]
    if unseen:
        raise CommandError(
            f"read by the leader; no effect and no refusal seen yet: {', '.join(unseen)}",
            todo="see `dueline rejected`, where a refusal may come late, and `dueline jobs history JOB`, before you apply again",
            code=ExitCode.NO_ANSWER,
        )
