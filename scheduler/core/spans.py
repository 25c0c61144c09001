"""A job through time: each version holds for a span, and the next due time is the first one that no record decides yet.

Nothing here depends on the order in which `job-versions` and `runs` are folded: a span's cursor is the latest due time
recorded under its version, and due times that stay with an earlier version are named by the version record itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dueline.scheduler.core.schedule import Schedule, ScheduleError, compile_schedule
from dueline.schemas.base import NONE
from dueline.schemas.job import Change, Job, JobVersion

NEVER: Final = 1 << 62
"""Later than any instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What one version of a job says, from `from_ms` until the next version."""

    version: int
    from_ms: int
    change: str  # Change
    paused: bool
    job: Job
    schedule: Schedule | None  # None: it no longer compiles; it has no due times and the leader says so
    taken: frozenset[int]
    source: tuple[str, int, int]  # topic, partition, offset of the record that made it
    source_ms: int
    command: str
    tzdata: str = ""  # release of the zone data that the version was made with
    problem: str = ""  # why the schedule no longer compiles

    @property
    def zoned(self) -> bool:
        """Whether other zone data may move its due times."""
        return not self.deleted and self.schedule is not None and self.schedule.zoned

    @property
    def jitters(self) -> bool:
        """Whether starts are put off."""
        return self.schedule is not None and any(entry.jitter_ms for entry in self.schedule.entries)

    @property
    def deleted(self) -> bool:
        """Whether the job does not exist in this span."""
        return self.change == Change.DELETED

    def made_by(self, topic: str, partition: int, offset: int, append_ms: int) -> bool:
        """Whether this very input made the version, or a later one of the same log.

        Append times keep a topic that was made anew, with offsets from 0, from being taken for the old one.
        """
        return self.source[:2] == (topic, partition) and self.source[2] >= offset and self.source_ms >= append_ms

    def next_due(self, cursor: int, until_ms: int) -> int | None:
        """The first due time after `cursor`, inside the span and not taken by an earlier version."""
        if self.deleted or self.schedule is None:
            return None
        due = self.schedule.next_after(max(cursor, self.from_ms - 1))
        while due is not None and due < until_ms and due in self.taken:
            due = self.schedule.next_after(due)
        return due if due is not None and due < until_ms else None

    def has(self, due_ms: int) -> bool:
        """Whether the schedule names this instant."""
        if self.deleted or self.schedule is None:
            return False
        return self.schedule.next_after(due_ms - 1) == due_ms

    def offset(self, due_ms: int) -> int:
        """How long after this due time its start is put off (jitter): less than the way to the next one."""
        return self.schedule.start_offset(due_ms) if self.schedule is not None else 0

    def last_before(self, instant_ms: int) -> int:
        """The last instant before this one that the schedule names and the span contains, else NONE."""
        if self.deleted or self.schedule is None:
            return NONE
        due = self.schedule.previous_before(instant_ms)
        return due if due is not None and due >= self.from_ms else NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Every version of a job, in order; numbers never restart."""

    id: str
    spans: tuple[Span, ...]

    @property
    def latest(self) -> Span:
        """The version that holds now or will next."""
        return self.spans[-1]

    @property
    def live(self) -> bool:
        """Whether the job exists (a deleted one keeps its spans)."""
        return not self.latest.deleted

    def until(self, place: int) -> int:
        """Where the span at this place ends."""
        return self.spans[place + 1].from_ms if place + 1 < len(self.spans) else NEVER

    def at(self, instant_ms: int) -> Span | None:
        """The span that holds at an instant; None before the first."""
        found = None
        for span in self.spans:
            if span.from_ms <= instant_ms:
                found = span
        return found

    def previous(self, due_ms: int) -> int:
        """The job's due time before this one, whatever version it belongs to; NONE: this is the first."""
        found = NONE
        for place, span in enumerate(self.spans):
            if span.from_ms >= due_ms:
                break
            found = max(found, span.last_before(min(self.until(place), due_ms)))
        taken = (due for span in self.spans for due in span.taken if due < due_ms)
        return max(found, max(taken, default=NONE))

    def before(self, topic: str, partition: int, offset: int, append_ms: int) -> JobState | None:
        """The job as it stood when this input had its turn; None: there was none.

        It differs from the job as it stands only when the input is read again after a torn transaction: versions that
        were kept of it may have been made by inputs that come later.
        """
        spans = tuple(span for span in self.spans if not span.made_by(topic, partition, offset, append_ms))
        return JobState(id=self.id, spans=spans) if spans else None

    def with_version(self, record: JobVersion) -> JobState:
        """The state with one more version; the same record again changes nothing."""
        others = tuple(span for span in self.spans if span.version != record.version)
        spans = sorted((*others, span_of(record)), key=lambda span: span.version)
        return JobState(id=self.id, spans=tuple(spans))


@dataclass(frozen=True, slots=True, kw_only=True)
class NextDue:
    """A job's next undecided due time and the version it belongs to."""

    due_ms: int
    place: int  # of the span in the job's spans
    span: Span


def span_of(record: JobVersion) -> Span:
    """The span that a version record opens."""
    schedule, problem = None, ""
    try:
        schedule = compile_schedule(record.definition.schedule, job_id=record.job)
    except ScheduleError as error:
        problem = str(error)
    except MemoryError:  # of this process now, not of what it looks at
        raise
    except Exception as error:  # noqa: BLE001 - a bug that one job's schedule meets must not keep the ledger from being read
        problem = f"{type(error).__name__}: {error}"
    return Span(
        version=record.version,
        from_ms=record.effective_ms,
        change=record.change,
        paused=record.paused,
        job=record.definition,
        schedule=schedule,
        taken=frozenset(record.taken),
        source=(record.source_topic, record.source_partition, record.source_offset),
        source_ms=record.source_ms,
        command=record.command,
        tzdata=record.tzdata,
        problem=problem,
    )


def next_due(job: JobState, cursors: dict[int, int]) -> NextDue | None:
    """The first due time that no record decides. `cursors`: version -> latest due time recorded under it."""
    newest = max(cursors, default=0)
    for place, span in enumerate(job.spans):
        if span.version < newest:
            continue  # decided in order: a later version has records, so this one has nothing left
        due = span.next_due(cursors.get(span.version, NONE), job.until(place))
        if due is not None:
            return NextDue(due_ms=due, place=place, span=span)
    return None
