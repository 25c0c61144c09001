"""What had to happen: the due times of each job, each with the version that it belongs to, from `job-versions` and this checker's
own reading of the schedules.

A version holds from its instant to the next one's. A due time that a later version lists as taken stays with the version that
had it. A version must be what the user's record says it is: the same definition, the instant max(append time, the instant
before), and a paused state that follows from its kind. Two exceptions are the product's own: a version after more than ten
thousand decided due times begins right after the last of them, and one made by new zone data right after the last decided one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from dueline.schemas.job import Change, JobVersion
from proof.checker.reading import Log, Placed
from proof.checker.schedule import FOREVER, Schedule, schedule
from proof.checker.trouble import CannotJudge
from proof.history.verdict import Kind, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The stretch of time [start, end) in which a version holds. `dues`: all that its schedule names, None after a deletion."""

    placed: Placed[JobVersion]
    start: int
    end: int
    dues: Schedule | None

    @property
    def version(self) -> JobVersion:
        """The version's record."""
        return self.placed.record

    def has(self, instant: int) -> bool:
        """Whether the schedule names this instant."""
        return self.dues is not None and self.dues.between(instant, instant + 1) == [instant]


@dataclass(slots=True, kw_only=True)
class Expected:
    """One job: its spans in order, and the owner of each due time up to the horizon."""

    job: str
    spans: list[Span]
    owner: dict[int, Span] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)

    def holding(self, instant: int) -> Span | None:
        """The span that contains the instant."""
        return next((span for span in reversed(self.spans) if span.start <= instant < span.end), None)

    def number(self, version: int) -> Span | None:
        """The span of the version with this number."""
        return next((span for span in self.spans if span.version.version == version), None)


def expected_of(log: Log) -> dict[str, Expected]:
    """By job. Raises CannotJudge for a schedule that this checker does not know."""
    horizon: dict[str, int] = {}
    for chain in log.runs.values():
        run = chain[0].record
        horizon[run.job.id] = max(horizon.get(run.job.id, 0), run.due_ms)
    for job, summaries in log.summaries.items():
        horizon[job] = max(horizon.get(job, 0), *(placed.record.last_ms for placed in summaries))
    judged = log.history.judged_ms
    return {job: _expected(job, found, max(judged, horizon.get(job, 0))) for job, found in log.by_job.items()}


def _expected(job: str, versions: list[Placed[JobVersion]], horizon: int) -> Expected:
    ordered = sorted({placed.record.version: placed for placed in versions}.values(), key=lambda placed: placed.record.version)
    ends = [placed.record.effective_ms for placed in ordered[1:]] + [FOREVER]
    spans = [
        Span(placed=placed, start=placed.record.effective_ms, end=end, dues=_schedule(placed))
        for placed, end in zip(ordered, ends, strict=True)
    ]
    expected = Expected(job=job, spans=spans)
    owners: dict[int, Span] = {}
    for before, span in pairwise(spans):
        for due in span.version.taken:
            owners.setdefault(due, before)
            expected.taken.add(due)
    for span in spans:
        if span.dues is not None:
            for due in span.dues.between(span.start, min(span.end, horizon + 1)):
                expected.owner[due] = span
    expected.owner.update({due: owner for due, owner in owners.items() if due <= horizon})
    return expected


def _schedule(placed: Placed[JobVersion]) -> Schedule | None:
    version = placed.record
    if version.change == Change.DELETED:
        return None
    try:
        return schedule(version.definition.schedule)
    except ValueError as error:
        raise CannotJudge(f"{placed.where}: version {version.version} of job {version.job}: its schedule: {error}") from error


# --- the versions themselves ------------------------------------------------------------------------------------------


def check_versions(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Numbers, instants, paused states and taken due times."""
    for job, found in log.by_job.items():
        before: JobVersion | None = None
        for placed in found:
            yield from _version(log, expected[job], placed, before)
            before = placed.record


def _version(log: Log, expected: Expected, placed: Placed[JobVersion], before: JobVersion | None) -> Iterator[Violation]:
    version = placed.record
    subject = f"{version.job}#{version.version}"
    number = before.version + 1 if before is not None else 1
    if before is not None and version.version == before.version:
        yield Violation(kind=Kind.DOUBLED, subject=subject, what="the version was made twice", evidence=placed.where)
    elif version.version != number:
        kind = Kind.LOST if version.version > number else Kind.ORDER
        yield Violation(kind=kind, subject=subject, what=f"stands where version {number} should", evidence=placed.where)
    floor = before.effective_ms if before is not None else version.source_ms
    wanted = max(version.source_ms, floor)
    if version.effective_ms != wanted and not _late_instant(log, version, wanted):
        kind = Kind.EARLY if version.effective_ms < wanted else Kind.LATE
        what = f"holds from {version.effective_ms}, not from max({version.source_ms} of its source, {floor} of the one before)"
        yield Violation(kind=kind, subject=subject, what=what, evidence=placed.where)
    if version.paused != _paused(version, before):
        what = f"{version.change}, paused is {version.paused}"
        yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=what, evidence=placed.where)
    if version.change != Change.DEFINED and (before is None or version.definition != before.definition):
        what = f"{version.change}, but with another definition than before"
        yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=what, evidence=placed.where)
    for due in version.taken:
        owner = expected.owner.get(due)
        if due < version.effective_ms or owner is None or not owner.has(due) or owner.version.version >= version.version:
            if version.change == Change.REZONED:
                continue  # where an occurrence moved to
            what = f"lists {due} as taken, which is no due time of a version before"
            yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=what, evidence=placed.where)


def _paused(version: JobVersion, before: JobVersion | None) -> bool:
    match version.change:
        case Change.PAUSED:
            return True
        case Change.RESUMED:
            return False
    return before is not None and before.change != Change.DELETED and before.paused


def _late_instant(log: Log, version: JobVersion, wanted: int) -> bool:
    """The two exceptions: right after the last decided due time, and nothing of it listed."""
    if version.effective_ms < wanted or (version.taken and version.change != Change.REZONED):
        return False
    last = version.effective_ms - 1
    runs = (chain[0].record for chain in log.runs.values())
    decided = any(run.job.id == version.job and run.due_ms == last for run in runs if not run.command)
    return decided or any(placed.record.last_ms == last for placed in log.summaries.get(version.job, ()))
