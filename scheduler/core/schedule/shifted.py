"""Business-day shift: a due day that does not count moves to one that does, at the same time of day."""

from __future__ import annotations

from dueline.scheduler.core.schedule.calendar import Calendar
from dueline.scheduler.core.schedule.choices import Shift
from dueline.scheduler.core.schedule.months import DAY_S, FIRST_WALL, LAST_WALL, month_of
from dueline.scheduler.core.schedule.timeline import WallSet

_FARTHEST = 31
"""Days: a due day moves no farther. Where none within reach counts, it is dropped."""

_MOST_STEPS = 1_000  # due days in a row that are dropped, before it counts as never


class Shifted:
    """The readings of `inner`, moved. Two that meet are one."""

    __slots__ = ("_calendar", "_inner", "_shift")

    def __init__(self, inner: WallSet, calendar: Calendar, shift: Shift) -> None:
        self._inner = inner
        self._calendar = calendar
        self._shift = shift

    def next(self, wall: int) -> int | None:
        """The first reading that is `wall` or later."""
        day = wall // DAY_S
        source = self._inner.next(self._closed_run(day, -1) * DAY_S)
        best, end = LAST_WALL + 1, LAST_WALL // DAY_S
        for _ in range(_MOST_STEPS):
            if source is None or source // DAY_S > end:
                break
            own = source // DAY_S
            target = self.target(own)
            if target is not None and target >= day:
                reading = self._inner.next(max(source, own * DAY_S + wall % DAY_S)) if target == day else source
                if reading is not None and reading // DAY_S == own and target * DAY_S + reading % DAY_S < best:
                    best = target * DAY_S + reading % DAY_S
                    end = self._closed_run(target, 1)
            source = self._inner.next((own + 1) * DAY_S)
        return best if best <= LAST_WALL else None

    def last(self, wall: int) -> int | None:
        """The last reading that is `wall` or earlier."""
        day = wall // DAY_S
        source = self._inner.last((self._closed_run(day, 1) + 1) * DAY_S - 1)
        best, end = FIRST_WALL - 1, FIRST_WALL // DAY_S
        for _ in range(_MOST_STEPS):
            if source is None or source // DAY_S < end:
                break
            own = source // DAY_S
            target = self.target(own)
            if target is not None and target <= day:
                reading = self._inner.last(min(source, own * DAY_S + wall % DAY_S)) if target == day else source
                if reading is not None and reading // DAY_S == own and target * DAY_S + reading % DAY_S > best:
                    best = target * DAY_S + reading % DAY_S
                    end = self._closed_run(target, -1)
            source = self._inner.last(own * DAY_S - 1)
        return best if best >= FIRST_WALL else None

    def _closed_run(self, day: int, step: int) -> int:
        """The farthest day beyond `day`, no farther than a due day moves, with closed days only up to it."""
        for distance in range(1, _FARTHEST + 1):
            if self._calendar.closed_day(day + step * distance) is None:
                return day + step * (distance - 1)
        return day + step * _FARTHEST

    def count(self, low: int, high: int) -> int:
        """How many readings lie in `low` <= reading < `high`; due day by due day."""
        found, wall = 0, self.next(low)
        while wall is not None and wall < high:
            found += 1
            wall = self.next(wall + 1)
        return found

    def target(self, day: int) -> int | None:
        """The day to which a due day moves; itself where it counts; None where none in reach does."""
        if self._calendar.closed_day(day) is None:
            return day
        step = -1 if self._shift is Shift.PRECEDING else 1
        found = self._search(day, step)
        if self._shift is Shift.MODIFIED_FOLLOWING and (found is None or month_of(found)[0] != month_of(day)[0]):
            found = self._search(day, -1)
        return found

    def _search(self, day: int, step: int) -> int | None:
        for distance in range(1, _FARTHEST + 1):
            if self._calendar.closed_day(day + step * distance) is None:
                return day + step * distance
        return None
