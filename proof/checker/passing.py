"""(a) Due times that did not run, and why: each reason must be true by what this checker knows.

| reason | true if |
| --- | --- |
| `paused` | the version that holds then is paused |
| `misfire-skip` | the job's `misfire` is skip, and it was found more than `misfire_grace` late |
| `later-due-time` | so with `misfire: latest`, and a later due time of the job had come too |
| `catch-up-max` | so with `misfire: all`, and at least so many later ones had come too |
| `catch-up-window` | found later than `catch_up_window` and than `misfire_grace` |
| `overlap` | the job must not overlap, and another run of it was under way or waited before it |
| `deleted`, `superseded` | an offer was asked back, and the version that holds then is a deletion, or has no such due time |

A version that was read only after the due time lists what had been decided as taken; such a reason is true, too, by the version
that held before it was read.

*Late* counts from the start that `jitter` puts off. What ran although it had to be passed over: `spite.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from dueline.schemas.job import Change, Job, Misfire, Overlap
from dueline.schemas.run import Run, RunState, Summary
from proof.checker.expected import Expected, Span
from proof.checker.reading import Log, Placed
from proof.checker.spite import is_late
from proof.history.verdict import Kind, Violation

S = RunState
MISFIRES = {"misfire-skip": Misfire.SKIP, "later-due-time": Misfire.LATEST, "catch-up-max": Misfire.ALL}


def check_passing(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """The reasons of skipped runs and summaries."""
    dues = {job: sorted(known.owner) for job, known in expected.items()}
    for key, chain in log.runs.items():
        run = chain[-1].record
        known = expected.get(run.job.id)
        if known is None or run.due_ms > log.history.judged_ms:
            continue
        wrong = ""
        if run.state == S.SKIPPED:
            wrong = _wrong_reason(known, dues[known.job], chain)
        if wrong:
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=wrong, evidence=chain[-1].where)
    for job, summaries in log.summaries.items():
        for placed in summaries:
            if job in expected:
                wrong = _wrong_summary(expected[job], dues[job], placed)
                if wrong:
                    yield Violation(kind=Kind.UNEXPLAINED, subject=placed.record.key, what=wrong, evidence=placed.where)


def _wrong_reason(known: Expected, dues: list[int], chain: list[Placed[Run]]) -> str:
    run = chain[-1].record
    if run.reason == "overlap":  # whether another run was in the way is looked at where overlaps are counted
        spans = [span for span in known.spans if span.version.version >= run.job.version]
        skips = run.command or any(span.version.definition.overlap == Overlap.SKIP for span in spans)
        return "" if skips else "skipped for overlap, which the job allows"
    if run.reason in ("deleted", "superseded"):
        if len(chain) < 2:
            return f"skipped as {run.reason}, though it was never offered"
        if run.reason == "deleted":
            deleted = any(span.version.change == Change.DELETED for span in held_by(known, run))
            return "" if deleted else "skipped as deleted, but the job was not deleted then"
        superseded = any(span.version.change != Change.DELETED and not span.has(run.due_ms) for span in held_by(known, run))
        return "" if superseded else "skipped as superseded, but the version that holds then has this due time"
    if run.reason == "paused":
        paused = any(span.version.paused for span in held_by(known, run))
        return "" if paused else "skipped as paused, but the job was not paused then"
    span = known.number(run.job.version)
    return _late_reason(span, dues, run.reason, run.due_ms, run.leader_ms)


def held_by(known: Expected, run: Run) -> list[Span]:
    """The version that holds at its due time; and if that one was read later and lists it as taken, the one that held before."""
    holding = known.holding(run.due_ms)
    read_later = holding is not None and holding.version.leader_ms > run.leader_ms >= run.due_ms
    if holding is None or not read_later or run.due_ms not in holding.version.taken:
        return [holding] if holding is not None else []
    before = [span for span in known.spans if span.start <= run.due_ms and span.version.leader_ms <= run.leader_ms]
    return [holding, *before[-1:]]


def _wrong_summary(known: Expected, dues: list[int], placed: Placed[Summary]) -> str:
    summary = placed.record
    span = known.number(summary.version)
    if span is None:
        return f"of version {summary.version}, which does not exist"
    if summary.reason == "paused":
        return "" if span.version.paused else "passed over as paused, but the job was not paused then"
    if summary.reason == "overlap":
        return "" if span.version.definition.overlap == Overlap.SKIP else "passed over for overlap, which the job allows"
    return _late_reason(span, dues, summary.reason, summary.last_ms, summary.leader_ms)


def _late_reason(span: Span | None, dues: list[int], reason: str, due_ms: int, leader_ms: int) -> str:
    """What is wrong with having passed over this due time as late, when it was decided."""
    if span is None:
        return "of a version that does not exist"
    job: Job = span.version.definition
    late = leader_ms - due_ms
    if reason != "catch-up-window" and reason not in MISFIRES:
        return f"skipped for a reason that no rule knows: {reason!r}"
    if not is_late(span, due_ms, leader_ms):
        return f"skipped as {reason} after only {late} ms, its grace is {job.misfire_grace_ms} ms"
    if reason == "catch-up-window":
        return "" if late > job.catch_up_window_ms else f"outside the window of {job.catch_up_window_ms} ms after only {late} ms"
    if job.misfire != MISFIRES[reason]:
        return f"skipped as {reason}, but the job's policy is {job.misfire}"
    later = bisect_right(dues, leader_ms) - bisect_right(dues, due_ms)
    if reason == "later-due-time" and not later:
        return "skipped for a later due time, but there was none"
    if reason == "catch-up-max" and later < job.catch_up_max:
        return f"skipped as more than {job.catch_up_max} late ones, but only {later} came after it"
    return ""
