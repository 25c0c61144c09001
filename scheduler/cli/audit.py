"""`dueline audit`: every due time of a stretch of time, and what became of it, with the records that prove it."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from dueline.scheduler.audit.auditor import Evidence, Window, audit
from dueline.scheduler.audit.findings import PROBLEMS, Audit, Finding, Verdict
from dueline.scheduler.audit.readmodel import read_attempts, read_histories, read_ledger
from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.options import Json, Tz
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import Session, display_of, instant_of, session_of
from dueline.scheduler.cli.times import NOTHING, Display, instant
from dueline.scheduler.core.schedule import Schedule, compile_schedule, tzdata_version
from dueline.schemas.base import NONE
from dueline.schemas.job import JobVersion

SHOWN: Final = 200
"""Findings shown in a table without --all; JSON has every one."""


def audit_command(
    context: typer.Context,
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="The first instant: 2026-11-30, -24h, ...")] = "-24h",
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="The instant after the last one.")] = "now",
    job: Annotated[str, typer.Option("--job", metavar="JOB", help="Only this job.")] = "",
    grace: Annotated[
        float,
        typer.Option("--grace", metavar="SECONDS", min=0.0, help="A due time without a record counts as missed after this long."),
    ] = 30.0,
    skew: Annotated[
        float,
        typer.Option("--skew", metavar="SECONDS", min=0.0, help="How far two clocks may differ before a start counts as early."),
    ] = 1.0,
    every: Annotated[bool, typer.Option("--all", help="Show every due time, not only what is out of the ordinary.")] = False,
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """Recompute every due time and compare it with what the log says.

    Reads the job versions, the ledger and the workers' events by itself; asks no scheduler. Each due time ran, ran
    late, failed, was cancelled or skipped for a reason, is covered by a summary, moved with the zone data, or is
    pending. What is missed, duplicated, early or unexplained makes the exit code 1, and each is shown with topic,
    partition and offset.

    \b
    Examples:
      dueline audit
      dueline audit --from 2026-11-29 --to 2026-12-01 --tz Europe/Berlin
      dueline audit --from -7d --job menu --all
      dueline audit --json | jq .totals
    """
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    result = run_audit(session, display, start, end, job=job, grace_s=grace, skew_s=skew)
    if as_json:
        output.json(audit_json(result))
    else:
        _show(output, display, result, everything=every)
    if not result.explained:
        raise CommandError(
            f"the audit found {len(result.problems)} problem(s)",
            todo="look at the records it names; `dueline run show RUN` helps",
        )


def run_audit(session: Session, display: Display, start: str, end: str, *, job: str, grace_s: float, skew_s: float) -> Audit:
    """Read and compare. The ledger is read before the versions: it never holds a run of a version not read yet."""
    now = session.clock.wall_ms()
    window = Window(
        from_ms=instant_of(display, "--from", start, now),
        to_ms=instant_of(display, "--to", end, now),
        now_ms=now,
        job=job,
        grace_ms=round(grace_s * 1000),
        skew_ms=round(skew_s * 1000),
        tzdata=tzdata_version(),
    )
    if window.to_ms <= window.from_ms:
        raise CommandError(
            f"--to {display.show(window.to_ms)} is not later than --from {display.show(window.from_ms)}",
            code=ExitCode.USAGE,
        )
    with session.log() as admin:
        ledger = read_ledger(admin, session.namespace, job=job)
        histories = read_histories(admin, session.namespace)
        attempts = read_attempts(admin, session.namespace, finishes_only=True)
    if job and job not in histories.jobs and not ledger.runs:
        raise CommandError(f"there is no job {job!r} in namespace {session.namespace_name}", todo="see `dueline jobs list`")
    evidence = Evidence(histories=histories, ledger=ledger, attempts=attempts)
    return audit(evidence, window, compile_version, namespace=session.namespace_name)


def compile_version(version: JobVersion) -> Schedule:
    """The due times of a job version. Raises ScheduleError, a ValueError."""
    return compile_schedule(version.definition.schedule, job_id=version.job)


def audit_json(result: Audit) -> dict[str, object]:
    """The audit for programs: totals, totals of each job, and every finding with its evidence."""
    return {
        "namespace": result.namespace,
        "from": instant(result.from_ms),
        "to": instant(result.to_ms),
        "read": instant(result.now_ms),
        "grace_ms": result.grace_ms,
        "skew_ms": result.skew_ms,
        "explained": result.explained,
        "totals": dict(result.totals()),
        "jobs": {job: {verdict: n for verdict, n in totals.items() if n} for job, totals in result.by_job().items()},
        "findings": [_finding_json(finding) for finding in result.scheduled],
        "manual": [_finding_json(finding) for finding in result.manual],
    }


# --- steps ------------------------------------------------------------------------------------------------------------


def _finding_json(finding: Finding) -> dict[str, object]:
    return {
        "verdict": finding.verdict,
        "job": finding.job,
        "version": finding.version if finding.version != NONE else None,
        "due": instant(finding.due_ms),
        "last": instant(finding.last_ms) if finding.last_ms != finding.due_ms else None,
        "count": finding.count,
        "run": finding.run or None,
        "reason": finding.reason or None,
        "detail": finding.detail or None,
        "evidence": [
            {
                "topic": place.topic,
                "partition": place.partition,
                "offset": place.offset,
                "appended": instant(place.append_ms),
            }
            for place in finding.evidence
        ],
    }


def _show(output: Output, display: Display, result: Audit, *, everything: bool) -> None:
    output.line(
        f"{result.namespace}: due times from {display.show(result.from_ms)} to {display.show(result.to_ms)} {display.name}"
    )
    totals = result.totals()
    verdicts = [verdict for verdict in Verdict if verdict in PROBLEMS or totals[verdict]]
    by_job = result.by_job()
    shown_totals = {**by_job, "all": totals} if len(by_job) > 1 else by_job
    rows = [[job, *(str(of[verdict]) if of[verdict] else "·" for verdict in verdicts)] for job, of in shown_totals.items()]
    output.table(["job", *(f"#{verdict}" for verdict in verdicts)], rows, empty="no due time and no record in this time")
    ordinary = {Verdict.RAN, Verdict.PENDING, Verdict.EXCLUDED}
    told = [f for f in result.findings if everything or f.problem or (not f.manual and f.verdict not in ordinary)]
    told.sort(key=lambda finding: (not finding.problem, finding.job, finding.due_ms))
    shown = told if everything else told[:SHOWN]
    if shown:
        output.line()
        columns = ["verdict", "job", f"due ({display.name})", "reason", "detail", "records"]
        output.table(columns, [_row(finding, display) for finding in shown], empty="")
    if len(shown) < len(told):
        output.note(f"{len(told) - len(shown)} more; see them with --all or --json")
    for line in _exclusions(result, display):
        output.line(line)
    if result.manual:
        manual = {verdict: n for verdict, n in result.totals(manual=True).items() if n}
        output.line(f"manual runs: {', '.join(f'{n} {verdict}' for verdict, n in manual.items())}")
    if result.explained:
        output.note("everything is explained")


def _exclusions(result: Audit, display: Display) -> list[str]:
    """What calendars took out, by job and calendar entry."""
    of_entry: dict[tuple[str, str], list[Finding]] = {}
    for finding in result.findings:
        if finding.verdict == Verdict.EXCLUDED:
            of_entry.setdefault((finding.job, finding.reason), []).append(finding)
    lines = []
    for (job, entry), found in sorted(of_entry.items())[:SHOWN]:
        count, first, last = sum(f.count for f in found), min(f.due_ms for f in found), max(f.last_ms for f in found)
        when = display.show(first) if first == last else f"{display.show(first)} – {display.show(last)}"
        lines.append(f"excluded: {job}, {count} by its calendar's {entry}, {when}")
    return lines


def _row(finding: Finding, display: Display) -> list[str]:
    due = display.show(finding.due_ms)
    if finding.last_ms not in (finding.due_ms, NONE):
        due = f"{due} – {display.show(finding.last_ms)} ({finding.count})"
    records = ", ".join(map(str, finding.evidence)) or NOTHING
    return [finding.verdict, finding.job, due, finding.reason, finding.detail, records]
