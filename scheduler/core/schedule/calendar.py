"""A calendar: which local days and hours count, and the entry that says why one does not.

Everything is matched by the local day and time of the due time, so `exclude: 2026-12-31` is that whole day in the
schedule's zone.
"""

from __future__ import annotations

from dueline.scheduler.core.schedule.business_hours import EVERY_DAY, Window, parse_weekdays, parse_windows
from dueline.scheduler.core.schedule.day_set import DaySet
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, weekday_of
from dueline.scheduler.core.schedule.public_holidays import check_place, holiday_on
from dueline.scheduler.core.schedule.spec import CalendarSpec

_WORKWEEK = "MON-FRI"
_MOST_CLOSED_DAYS = (
    1_000  # closed days in a row, each for a reason of its own, before a calendar counts as closed for good
)


class Calendar:
    """Days and hours that count."""

    __slots__ = ("_days", "_days_text", "_exclude", "_holidays", "_hours_text", "_include", "_taken", "_windows")

    def __init__(self, spec: CalendarSpec, *, taken: tuple[str, ...] = ()) -> None:
        self._include = DaySet(spec.include, key="calendar.include")
        self._exclude = DaySet(spec.exclude, key="calendar.exclude")
        self._taken = DaySet(taken, key="exdate")
        self._windows = _by_weekday(parse_windows(spec.business_hours, key="calendar.business_hours"))
        self._hours_text = ", ".join(spec.business_hours)
        self._holidays = spec.holidays
        for place in spec.holidays:
            check_place(place)
        self._days_text = spec.business_days
        if spec.business_days is None and spec.shift is not None and not spec.business_hours:
            self._days_text = _WORKWEEK
        self._days = EVERY_DAY
        if self._days_text is not None:
            self._days = parse_weekdays(self._days_text, key="calendar.business_days")
        if not self._days:
            raise ScheduleError("calendar.business_days: no weekday is named")

    def closed_day(self, day: int) -> str | None:
        """The entry that takes a whole day (counted from 1970) out, or None."""
        taken = self._taken.find(day) if self._taken else None
        if taken is not None:
            return f"exdate {taken}"
        excluded = self._exclude.find(day) if self._exclude else None
        if excluded is not None:
            return f"exclude {excluded}"
        if self._include and self._include.find(day) is None:
            return "not in include"
        for place in self._holidays:
            name = holiday_on(place, day)
            if name is not None:
                return f"holiday {place}: {name}"
        weekday = weekday_of(day)
        if not self._days >> weekday & 1:
            return f"business_days {self._days_text}"
        if self._windows is not None and not self._windows[weekday]:
            return f"business_hours {self._hours_text}"
        return None

    def closed(self, wall: int) -> str | None:
        """The entry that takes a reading out, or None."""
        day, time = divmod(wall, DAY_S)
        entry = self.closed_day(day)
        if entry is not None or any(start <= time < end for start, end in self._hours_of(day)):
            return entry
        return f"business_hours {self._hours_text}"

    def next_open(self, wall: int) -> int | None:
        """The first reading from `wall` on that counts; None: none within reach."""
        day, time = divmod(wall, DAY_S)
        for _ in range(_MOST_CLOSED_DAYS):
            if self.closed_day(day) is None:
                for start, end in self._hours_of(day):
                    if time < end:
                        return day * DAY_S + max(start, time)
                day, time = day + 1, 0
                continue
            following = self._after_closed(day)
            if following is None:
                return None
            day, time = following, 0
        return None

    def last_open(self, wall: int) -> int | None:
        """The last reading up to `wall` that counts; None: none within reach."""
        day, time = divmod(wall, DAY_S)
        for _ in range(_MOST_CLOSED_DAYS):
            if self.closed_day(day) is None:
                for start, end in reversed(self._hours_of(day)):
                    if time >= start:
                        return day * DAY_S + min(end - 1, time)
                day, time = day - 1, DAY_S - 1
                continue
            preceding = self._before_closed(day)
            if preceding is None:
                return None
            day, time = preceding, DAY_S - 1
        return None

    def next_closed(self, wall: int, limit: int) -> int:
        """The first reading from `wall`, which counts, that does not; `limit` if that is earlier."""
        while wall < limit:
            day, time = divmod(wall, DAY_S)
            if self.closed_day(day) is not None:
                return wall
            if self._windows is not None:
                inside = [end for start, end in self._windows[weekday_of(day)] if start <= time < end]
                if not inside:
                    return wall
                wall = day * DAY_S + max(inside)
            else:
                wall = (day + 1) * DAY_S
        return limit

    def _hours_of(self, day: int) -> list[tuple[int, int]]:
        return [(0, DAY_S)] if self._windows is None else self._windows[weekday_of(day)]

    def _after_closed(self, day: int) -> int | None:
        """The next day worth a look after a closed one: long ranges are jumped over."""
        after = self._exclude.end_of(day) + 1 if self._exclude else day + 1
        return self._include.next_from(after) if self._include else after

    def _before_closed(self, day: int) -> int | None:
        before = self._exclude.start_of(day) - 1 if self._exclude else day - 1
        return self._include.last_to(before) if self._include else before


def _by_weekday(windows: tuple[Window, ...]) -> list[list[tuple[int, int]]] | None:
    """The windows of each weekday, in order, overlapping ones made one; None without any."""
    if not windows:
        return None
    return [_merged([window for window in windows if window.weekdays >> weekday & 1]) for weekday in range(7)]


def _merged(windows: list[Window]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((window.start, window.end) for window in windows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
