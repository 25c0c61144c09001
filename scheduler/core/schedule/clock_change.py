"""What changes of the clocks do to the due times of one entry, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dueline.scheduler.core.schedule.choices import Fold, Gap
from dueline.scheduler.core.schedule.entry import Entry
from dueline.scheduler.core.schedule.moment_text import length_text, offset_text, reading_text, time_text
from dueline.scheduler.core.schedule.months import DAY_S
from dueline.scheduler.core.schedule.timeline import LAST_INSTANT
from dueline.scheduler.core.schedule.zone import Span
from dueline.scheduler.core.schedule.zoned import LONGEST_GAP_S

_MOST_CHANGES = 1_000
_ALL_HOURS = (1 << 24) - 1


class ClockChange(NamedTuple):
    """A change of the clocks that concerns a schedule: its instant (in the unit of whoever asked: seconds here,
    milliseconds from a Schedule), a sentence, and whether a reading is skipped by it."""

    instant: int
    remark: str
    skips: bool


def clock_changes(entry: Entry, low: int, high: int) -> Iterator[ClockChange]:
    """The changes in `low` <= instant < `high` that skip, move, double or silence a reading of the entry. A wildcard job
    that names every hour is not concerned: it just goes on."""
    if entry.core.walls is None or _goes_on(entry):
        return
    span = entry.core.zone.span_at(low - 1)
    for _ in range(_MOST_CHANGES):
        if span.end >= min(high, LAST_INSTANT):
            return
        span = entry.core.zone.span_at(span.end)
        remark = _gap_remark(entry, span)
        if remark is not None:
            yield ClockChange(span.start, remark, _skips(entry, span))
            continue
        remark = _fold_remark(entry, span)
        if remark is not None:
            yield ClockChange(span.start, remark, False)


def _goes_on(entry: Entry) -> bool:
    cron = entry.core.cron
    return entry.core.elapsed and (cron is None or cron.hours == _ALL_HOURS)


def remark_on(entry: Entry, due: int) -> str | None:
    """A remark on a due time (s) of the entry that a change of the clocks concerns, or None."""
    if entry.core.walls is None:
        return None
    span = entry.core.zone.span_at(due)
    wall = due + span.offset
    if due == span.start and span.gap_from < wall:
        return _gap_remark(entry, span)
    if wall < span.shown_to:
        return f"second showing of {time_text(wall % DAY_S)}: the clocks went back"
    if wall >= span.shown_again:
        return f"first showing of {time_text(wall % DAY_S)}: the clocks will go back and show it again"
    return None


def _skips(entry: Entry, span: Span) -> bool:
    """Whether what the gap before the span leaves out is not made up for after it."""
    gap = span.start + span.offset - span.gap_from
    return entry.core.elapsed or gap > LONGEST_GAP_S or entry.spec.gap is Gap.SKIP


def _gap_remark(entry: Entry, span: Span) -> str | None:
    """What becomes of the first reading that the gap before the span leaves out."""
    shown = span.start + span.offset
    walls = entry.core.walls
    missing = walls.next(span.gap_from) if walls is not None else None
    if missing is None or missing >= shown:
        return None
    left_out = f"{reading_text(missing)} does not exist (clocks go from {time_text(span.gap_from % DAY_S)} to "
    left_out += (time_text(shown % DAY_S) if shown - span.gap_from < DAY_S else reading_text(shown)) + ")"
    if not _skips(entry, span):
        return f"{left_out}: due at the end of the gap"
    if entry.core.elapsed:
        return f"{left_out}: skipped, as a wildcard job goes on at the next reading it names"
    if shown - span.gap_from > LONGEST_GAP_S:
        return f"{left_out}: skipped, since more than 3 hours are struck from the calendar"
    return f"{left_out}: skipped, as gap: skip says"


def _fold_remark(entry: Entry, span: Span) -> str | None:
    """What becomes of the first reading that the span shows for the second time."""
    wall = span.start + span.offset
    walls = entry.core.walls
    twice = walls.next(wall) if walls is not None else None
    if twice is None or twice >= span.shown_to:
        return None
    back = f"{reading_text(twice)} is shown twice (clocks go back {length_text(span.shown_to - wall)}"
    back += f" to {offset_text(span.offset)})"
    if entry.core.elapsed:
        return f"{back}: a wildcard job is due both times"
    return {
        Fold.FIRST: f"{back}: due the first time only",
        Fold.SECOND: f"{back}: due the second time only",
        Fold.BOTH: f"{back}: due both times",
    }[entry.spec.fold or Fold.FIRST]
