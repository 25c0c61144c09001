"""What should have happened: the due times of a job, recomputed from its versions by the schedule engine alone.

A version holds from its instant until the next version's: its *span* [start, end). Within it the due times are those of
its schedule; none while the job is deleted. A due time that a later version lists as `taken` was granted before that
version came: it stays with the version before, although it lies in the later one's span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from dueline.scheduler.audit.evidence import Seen
from dueline.scheduler.audit.readmodel import JobHistory
from dueline.schemas.job import Change, JobVersion

FOREVER: Final = 1 << 62
"""End of the span of the version that holds now."""


FURTHEST_MS: Final = 3 * 3_600_000
"""How far other zone data moves an occurrence at most."""


class Excluded(Protocol):
    """What one calendar entry took out of a schedule: `due_times` instants from `first` to `last`, milliseconds."""

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def due_times(self) -> int: ...

    @property
    def entry(self) -> str:
        """The entry as its writer wrote it."""
        ...


class DueTimes(Protocol):
    """The due times of one schedule, in milliseconds."""

    def next_after(self, instant_ms: int) -> int | None:
        """The first one later than the instant."""
        ...

    def previous_before(self, instant_ms: int) -> int | None:
        """The last one earlier than the instant."""
        ...

    def count_between(self, low_ms: int, high_ms: int) -> int:
        """How many lie in [low, high)."""
        ...

    def start_offset(self, due_ms: int) -> int:
        """How long after a due time jitter puts off its start."""
        ...

    @property
    def zoned(self) -> bool:
        """Whether the due times depend on the rules of a zone."""
        ...

    def exclusions_between(self, low_ms: int, high_ms: int) -> Iterator[Excluded]:
        """What calendars took out of [low, high), in order."""
        ...


Compile = Callable[[JobVersion], DueTimes]
"""Makes the due times of a version's schedule. Raises ValueError when the schedule can't be understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The stretch of time in which one version holds."""

    seen: Seen[JobVersion]
    start: int
    end: int
    due_times: DueTimes | None  # None: deleted
    other_rules: bool = False  # recorded with other zone data than it is recomputed with, and it has a zone

    @property
    def version(self) -> JobVersion:
        """The version itself."""
        return self.seen.record

    def is_due(self, instant: int) -> bool:
        """Whether the version's schedule names this instant, in its span or not."""
        return self.due_times is not None and self.due_times.next_after(instant - 1) == instant

    def start_of(self, due: int) -> int:
        """When the run of a due time starts: jitter puts it off."""
        return due + (self.due_times.start_offset(due) if self.due_times is not None else 0)

    def walk(self, low: int, high: int) -> Iterator[int]:
        """Due times in [low, high) within the span."""
        if self.due_times is None:
            return
        instant = self.due_times.next_after(max(low, self.start) - 1)
        while instant is not None and instant < min(high, self.end):
            yield instant
            instant = self.due_times.next_after(instant)


@dataclass(slots=True, kw_only=True)
class Expected:
    """The due times of one job and the version each belongs to."""

    spans: list[Span]
    taken: dict[int, Span] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)  # of the taken ones: where a decided occurrence would be by newer rules
    troubles: list[tuple[Seen[JobVersion], str]] = field(default_factory=list)

    def owner(self, instant: int) -> Span | None:
        """The span whose version the due time belongs to; None: not a due time of the job."""
        if (span := self.taken.get(instant)) is not None:
            return span
        span = self.holding(instant)
        return span if span is not None and span.is_due(instant) else None

    def holding(self, instant: int) -> Span | None:
        """The span that contains the instant."""
        for span in reversed(self.spans):
            if span.start <= instant < span.end:
                return span
        return None

    def of_version(self, number: int) -> Span | None:
        """The span of the version with this number."""
        return next((span for span in self.spans if span.version.version == number), None)

    def walk(self, low: int, high: int) -> Iterator[tuple[int, Span]]:
        """Every due time in [low, high) in order, with its owner."""
        for span in self.spans:
            if span.end <= low or span.start >= high:
                continue
            inside = [t for t in self.taken if max(low, span.start) <= t < min(high, span.end)]
            yield from _merged(span.walk(low, high), sorted(inside), span, self.taken)

    def count(self, span: Span, low: int, high: int) -> int:
        """How many due times in [low, high) belong to the span's version and lie in its span."""
        low, high = max(low, span.start), min(high, span.end)
        if span.due_times is None or low >= high:
            return 0
        others = sum(1 for t, owner in self.taken.items() if low <= t < high and owner is not span and span.is_due(t))
        return span.due_times.count_between(low, high) - others

    def before(self, span: Span, instant: int) -> int | None:
        """The latest due time before the instant within the span, or None."""
        if span.due_times is None:
            return None
        found = span.due_times.previous_before(instant)
        while found is not None and found >= span.start:
            if self.owner(found) is span:
                return found
            found = span.due_times.previous_before(found)
        return None


def expected_of(history: JobHistory, compile_version: Compile, *, tzdata: str = "") -> Expected:
    """The spans of a history, with what is wrong with it: numbers missing, instants going back, schedules that fail.

    `tzdata`: the zone data with which due times are recomputed; "" compares as if it had never changed.
    """
    expected = Expected(spans=[])
    _note_numbering(history, expected)
    ends = [seen.record.effective_ms for seen in history.versions[1:]] + [FOREVER]
    for seen, end in zip(history.versions, ends, strict=False):  # no version: no end
        version = seen.record
        due_times: DueTimes | None = None
        if version.change != Change.DELETED:
            try:
                due_times = compile_version(version)
            except ValueError as error:
                expected.troubles.append((seen, f"its schedule {version.definition.schedule} can't be read: {error}"))
        changed = bool(tzdata) and version.tzdata not in ("", tzdata)
        other_rules = changed and due_times is not None and due_times.zoned
        span = Span(seen=seen, start=version.effective_ms, end=end, due_times=due_times, other_rules=other_rules)
        expected.spans.append(span)
    _note_taken(expected)
    return expected


def _note_numbering(history: JobHistory, expected: Expected) -> None:
    number, instant = 0, -1
    for seen in history.versions:
        version = seen.record
        if version.version != number + 1:
            expected.troubles.append((seen, f"version {version.version} follows version {number}"))
        if version.effective_ms < instant:
            back = instant - version.effective_ms
            expected.troubles.append((seen, f"it takes effect {back} ms before its predecessor"))
        number, instant = version.version, version.effective_ms


def _note_taken(expected: Expected) -> None:
    """A due time taken at a version stays where it was: with an earlier `taken`, or with the version before."""
    for before, span in zip(expected.spans, expected.spans[1:], strict=False):
        if span.version.change == Change.REZONED:
            _note_moved(expected, span)
        for instant in span.version.taken:
            owner = expected.taken.get(instant, before)
            if instant < span.start:
                trouble = "before its instant"
            elif not owner.is_due(instant):
                if owner.other_rules or span.other_rules:
                    continue  # it was one by the rules of its time
                trouble = f"that is no due time of version {owner.version.version}"
            else:
                expected.taken[instant] = owner
                continue
            expected.troubles.append((span.seen, f"it lists a taken due time ({instant}) {trouble}"))


def _note_moved(expected: Expected, span: Span) -> None:
    """What this version lists as taken has moved there; what an earlier one said of later instants no longer counts."""
    for instant in [instant for instant in expected.moved if instant >= span.start]:
        expected.moved.discard(instant)
        expected.taken.pop(instant, None)
    expected.moved.update(span.version.taken)


def _merged(own: Iterator[int], taken: list[int], span: Span, owners: dict[int, Span]) -> Iterator[tuple[int, Span]]:
    """The span's own due times and those taken by other versions, in order, each once."""
    waiting = list(reversed(taken))
    for instant in own:
        while waiting and waiting[-1] < instant:
            early = waiting.pop()
            yield early, owners[early]
        if waiting and waiting[-1] == instant:
            waiting.pop()
            yield instant, owners[instant]
        else:
            yield instant, span
    for instant in reversed(waiting):
        yield instant, owners[instant]
