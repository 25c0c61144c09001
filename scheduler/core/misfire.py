"""Due times found at once: which of them run, which are passed over, and why. Arithmetic, not walking, over long stretches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dueline.scheduler.core.schedule import Schedule
from dueline.scheduler.core.spans import Span
from dueline.schemas.job import Misfire
from dueline.schemas.run import Trigger

PAUSED = "paused"
WINDOW = "catch-up-window"
MISFIRE = "misfire-skip"
SUPERSEDED = "later-due-time"
MAXIMUM = "catch-up-max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """This due time gets a run."""

    due_ms: int
    trigger: Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """These due times in a row are passed over."""

    first_ms: int
    last_ms: int
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The due times of one span found together: [first, end)."""

    span: Span
    first_ms: int
    end_ms: int
    superseded: bool  # of a later span in the same finding a due time gets a run
    late_after: int = 0  # late due times of later spans in the same finding that policy `all` wants to run


def decide(found: Stretch, now: int) -> Iterator[Fire | Pass]:
    """What becomes of the due times of a stretch, in order. Late is what is older than the job's `misfire_grace`."""
    span = found.span
    if span.paused:
        yield from _passed(span, found.first_ms, found.end_ms, PAUSED)
        return
    window_from, on_time_from = _bounds(found, now)
    if found.first_ms < on_time_from:
        yield from _passed(span, found.first_ms, window_from, WINDOW)
        yield from _decide_late(found, window_from, on_time_from)
    for due in _due_times(span, on_time_from, found.end_ms):
        yield Fire(due_ms=due, trigger=Trigger.SCHEDULE)


def _decide_late(found: Stretch, window_from: int, on_time_from: int) -> Iterator[Fire | Pass]:
    """The late due times inside the catch-up window, by the job's policy."""
    span, misfire = found.span, found.span.job.misfire
    if misfire == Misfire.SKIP:
        yield from _passed(span, window_from, on_time_from, MISFIRE)
    elif misfire == Misfire.ALL:
        first = _latest(span, window_from, on_time_from, span.job.catch_up_max - found.late_after)
        yield from _passed(span, window_from, first, MAXIMUM)
        for due in _due_times(span, first, on_time_from):
            yield Fire(due_ms=due, trigger=Trigger.CATCH_UP)
    else:
        on_time = next(_due_times(span, on_time_from, found.end_ms), None)
        latest = None
        if on_time is None and not found.superseded:
            latest = _last(span, window_from, on_time_from)
        yield from _passed(span, window_from, on_time_from if latest is None else latest, SUPERSEDED)
        if latest is not None:
            yield Fire(due_ms=latest, trigger=Trigger.CATCH_UP)


def fires(found: Stretch, now: int) -> bool:
    """Whether any due time of the stretch gets a run. One that is passed over anyway supersedes nothing."""
    if found.span.paused:
        return False
    window_from, on_time_from = _bounds(found, now)
    late_too = found.span.job.misfire != Misfire.SKIP
    return next(_due_times(found.span, window_from if late_too else on_time_from, found.end_ms), None) is not None


def late_of_all(found: Stretch, now: int) -> int:
    """How many late due times of the stretch policy `all` wants to run, before `catch_up_max` is looked at."""
    span = found.span
    if span.paused or span.job.misfire != Misfire.ALL:
        return 0
    window_from, on_time_from = _bounds(found, now)
    return _count(span, window_from, on_time_from)


def _bounds(found: Stretch, now: int) -> tuple[int, int]:
    """Where the catch-up window begins in the stretch, and where what is not late begins.

    Lateness counts from the start that jitter puts off. Jitter never reaches the next due time, so at most one due
    time is spared by it: the last of those that would be late without.
    """
    job = found.span.job
    punctual = now - job.misfire_grace_ms
    on_time_from = max(min(punctual, found.end_ms), found.first_ms)
    last = _last(found.span, found.first_ms, on_time_from) if found.span.jitters else None
    if last is not None and last + found.span.offset(last) >= punctual:
        on_time_from = last
    return max(min(now - job.catch_up_window_ms, on_time_from), found.first_ms), on_time_from


def _schedule(span: Span) -> Schedule:
    assert span.schedule is not None, "a stretch is made only of spans with due times"
    return span.schedule


def _due_times(span: Span, start: int, end: int) -> Iterator[int]:
    if start < end:
        yield from (due for due in _schedule(span).between(start, end) if due not in span.taken)


def _last(span: Span, start: int, end: int) -> int | None:
    """The last due time in [start, end): one step backward, or a few past taken ones."""
    due = _schedule(span).previous_before(end)
    while due is not None and due >= start and due in span.taken:
        due = _schedule(span).previous_before(due)
    return due if due is not None and due >= start else None


def _latest(span: Span, start: int, end: int, number: int) -> int:
    """Where the latest `number` due times of [start, end) begin: as many steps backward as that, however many there are."""
    if number <= 0:
        return end
    if _count(span, start, end) <= number:
        return start
    first = end
    for _ in range(number):
        due = _last(span, start, first)
        assert due is not None, "there are more than that"
        first = due
    return first


def _count(span: Span, start: int, end: int) -> int:
    """How many due times lie in [start, end), by arithmetic."""
    if start >= end:
        return 0
    schedule = _schedule(span)
    return schedule.count_between(start, end) - sum(1 for due in span.taken if start <= due < end and span.has(due))


def _passed(span: Span, start: int, end: int, reason: str) -> Iterator[Pass]:
    """One Pass for [start, end), with exact first, last and count."""
    first = next(_due_times(span, start, end), None)
    if first is None:
        return
    last = _last(span, start, end)
    assert last is not None, "there is a first, so there is a last"
    yield Pass(first_ms=first, last_ms=last, count=_count(span, first, last + 1), reason=reason)
