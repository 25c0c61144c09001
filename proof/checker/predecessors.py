"""(a) `previous_due_ms`: the job's due time before a run or summary, whatever version that belongs to, so that a gap shows.

It is the latest instant before the due time that a version names which was known then, within its span, or that one lists as
taken; -1 if there is none, and of a manual run. It stands as it was worked out when the run was made, or decided again under a
later version. Jobs that new zone data gave a version are not asked: what had moved is not named any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dueline.schemas.base import NONE
from dueline.schemas.job import Change
from dueline.schemas.run import Run
from proof.checker.expected import Expected, Span
from proof.checker.reading import Log
from proof.checker.schedule import FOREVER
from proof.history.verdict import Kind, Violation

FIRST_LOOK_MS: Final = 60_000


def check_predecessors(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Every record of a run, every summary."""
    rezoned = {job for job, known in expected.items() if any(span.version.change == Change.REZONED for span in known.spans)}
    for key, chain in log.runs.items():
        known = expected.get(chain[0].record.job.id)
        if known is None or known.job in rezoned:
            continue
        before: Run | None = None
        for placed in chain:
            run = placed.record
            if run.command:
                wanted = NONE
            elif before is not None and before.job.version == run.job.version:
                wanted = before.previous_due_ms
            else:
                wanted = predecessor(known, run.due_ms, run.leader_ms)
            before = run
            if run.previous_due_ms != wanted and not _known_meanwhile(log, known, run):
                what = f"names {run.previous_due_ms} as the due time before it, not {wanted}"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)
    for job, summaries in log.summaries.items():
        for each in summaries if job in expected and job not in rezoned else ():
            summary = each.record
            wanted = predecessor(expected[job], summary.first_ms, summary.leader_ms)
            if summary.previous_due_ms != wanted:
                what = f"names {summary.previous_due_ms} as the due time before it, not {wanted}"
                yield Violation(kind=Kind.UNEXPLAINED, subject=summary.key, what=what, evidence=each.where)


def _known_meanwhile(log: Log, known: Expected, run: Run) -> bool:
    """Whether it is so by a version that a leader before had decided, whose time was ahead of this one's by the skew."""
    if run.command or run.previous_due_ms == NONE:
        return False
    return run.previous_due_ms == predecessor(known, run.due_ms, run.leader_ms + log.skew.at(run.leader_ms))


def predecessor(known: Expected, due_ms: int, now_ms: int) -> int:
    """The due time before this one, by the versions that were known at that leader time; NONE: there is none."""
    spans = [span for span in known.spans if span.version.leader_ms <= now_ms]
    found = max((due for span in spans for due in span.version.taken if due < due_ms), default=NONE)
    ends = [later.start for later in spans[1:]] + [FOREVER] * bool(spans)
    for span, end in zip(reversed(spans), reversed(ends), strict=True):
        last = _last(span, min(end, due_ms))
        if last != NONE:
            return max(found, last)
    return found


def _last(span: Span, end_ms: int) -> int:
    """The last instant before `end_ms` that the span has; looked for in ever longer stretches."""
    look_ms, high = FIRST_LOOK_MS, end_ms
    while span.dues is not None and high > span.start:
        low = max(span.start, high - look_ms)
        found = span.dues.between(low, high)
        if found:
            return found[-1]
        high, look_ms = low, look_ms * 4
    return NONE
