"""A timeline without what a calendar takes out, and the record of what was taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dueline.scheduler.core.schedule.calendar import Calendar
from dueline.scheduler.core.schedule.timeline import FIRST_INSTANT, LAST_INSTANT, Timeline
from dueline.scheduler.core.schedule.union import walk
from dueline.scheduler.core.schedule.zone import Zone

_MOST_STEPS = 2_000
"""Due times in a row that the calendar takes out, each after a jump over closed days, before it counts as never."""


class Exclusion(NamedTuple):
    """Due times in a row that one calendar entry took out: the first, the last (in the unit of whoever asked: seconds
    here, milliseconds from a Schedule), and how many they are."""

    entry: str
    first: int
    last: int
    due_times: int


class Filtered:
    """The instants of `inner` whose local reading the calendar lets through."""

    __slots__ = ("_calendar", "_inner", "_zone")

    def __init__(self, inner: Timeline, zone: Zone, calendar: Calendar) -> None:
        self._inner = inner
        self._zone = zone
        self._calendar = calendar

    def next_after(self, instant: int) -> int | None:
        """The first instant later than `instant`."""
        return self.next_within(instant, LAST_INSTANT)

    def next_within(self, instant: int, limit: int) -> int | None:
        """The first instant later than `instant` and not later than `limit`."""
        for _ in range(_MOST_STEPS):
            found = self._inner.next_after(instant)
            if found is None or found > limit:
                return None
            span = self._zone.span_at(found)
            wall = found + span.offset
            if self._calendar.closed(wall) is None:
                return found
            opening = self._calendar.next_open(wall)
            if opening is None:
                return None
            instant = max(found, min(opening - span.offset, span.end) - 1)
        return None

    def previous_before(self, instant: int) -> int | None:
        """The last instant earlier than `instant`."""
        for _ in range(_MOST_STEPS):
            found = self._inner.previous_before(instant)
            if found is None:
                return None
            span = self._zone.span_at(found)
            wall = found + span.offset
            if self._calendar.closed(wall) is None:
                return found
            closing = self._calendar.last_open(wall)
            if closing is None:
                return None
            instant = min(found, max(closing - span.offset + 1, span.start))
        return None

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`: open stretch by open stretch, each by arithmetic."""
        at, end, found = max(low, FIRST_INSTANT), min(high, LAST_INSTANT + 1), 0
        while at < end:
            span = self._zone.span_at(at)
            stop = min(span.end, end)
            opening = self._calendar.next_open(at + span.offset)
            if opening is None or opening - span.offset >= stop:
                at = stop
                continue
            closing = self._calendar.next_closed(opening, stop + span.offset)
            found += self._inner.count_between(opening - span.offset, closing - span.offset)
            at = closing - span.offset
        return found

    def exclusions(self, low: int, high: int) -> Iterator[Exclusion]:
        """What the calendar takes out of `low` <= instant < `high`, stretch by stretch; neighbouring stretches of one
        entry are one."""
        last: Exclusion | None = None
        for each in self._stretches(low, high):
            if last is not None and last.entry == each.entry and not self._open_between(last.last, each.first):
                last = Exclusion(each.entry, last.first, each.last, last.due_times + each.due_times)
                continue
            if last is not None:
                yield last
            last = each
        if last is not None:
            yield last

    def excluded_in(self, exclusion: Exclusion) -> Iterator[int]:
        """The due times of an exclusion, one by one."""
        return walk(self._inner, exclusion.first, exclusion.last + 1)

    def _open_between(self, low: int, high: int) -> bool:
        found = self.next_after(low)
        return found is not None and found < high

    def _stretches(self, low: int, high: int) -> Iterator[Exclusion]:
        """Closed stretches within one local day and one span."""
        found = self._inner.next_after(max(low, FIRST_INSTANT) - 1)
        while found is not None and found < high:
            span = self._zone.span_at(found)
            wall = found + span.offset
            entry = self._calendar.closed(wall)
            if entry is None:
                stop = min(self._calendar.next_closed(wall, min(span.end, high) + span.offset) - span.offset, high)
            else:
                midnight = (wall // 86_400 + 1) * 86_400
                opening = self._calendar.next_open(wall)
                stop = (
                    min(midnight if opening is None else min(opening, midnight), span.end + span.offset) - span.offset
                )
                stop = min(stop, high)
                last = self._inner.previous_before(stop)
                assert last is not None, "found itself lies before"
                yield Exclusion(entry, found, last, self._inner.count_between(found, stop))
            found = self._inner.next_after(stop - 1)
