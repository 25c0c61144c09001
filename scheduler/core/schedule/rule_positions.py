"""BYSETPOS: of each year, month, week or day of a rule, the readings at given positions."""

from __future__ import annotations

from dueline.scheduler.core.schedule.day_times import TimesOfDay, bits, last_day, next_day
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, FIRST_WALL, LAST_WALL, date_of, first_day, month_number, month_of
from dueline.scheduler.core.schedule.rule import Frequency, Rule
from dueline.scheduler.core.schedule.rule_days import RuleDays

_MOST_PERIODS = 200  # periods in a row that name days, yet hold no such position, before that counts as never
_LONGEST_PERIOD = {Frequency.YEARLY: 366, Frequency.MONTHLY: 31, Frequency.WEEKLY: 7, Frequency.DAILY: 1}


class Positioned:
    """Of each period's readings, in order, those at the given positions."""

    __slots__ = ("_days", "_positions", "_rule", "_times")

    def __init__(self, rule: Rule, days: RuleDays, times: TimesOfDay) -> None:
        self._rule = rule
        self._days = days
        self._times = times
        self._positions = rule.positions
        most = times.per_day * _LONGEST_PERIOD[rule.frequency]
        if all(abs(position) > most for position in rule.positions):
            raise ScheduleError(f"rrule: this never fires: a period holds {most} times at most; BYSETPOS is beyond")

    def next(self, wall: int) -> int | None:
        """The first reading that is `wall` or later."""
        day = wall // DAY_S
        for _ in range(_MOST_PERIODS):
            found = next_day(self._days, day)
            if found is None:
                return None
            period = self._period_of(found)
            for reading in self._readings(period):
                if reading >= wall:
                    return reading if reading <= LAST_WALL else None
            day = self._first_day(period + 1)
        return None

    def last(self, wall: int) -> int | None:
        """The last reading that is `wall` or earlier."""
        day = wall // DAY_S
        for _ in range(_MOST_PERIODS):
            found = last_day(self._days, day)
            if found is None:
                return None
            period = self._period_of(found)
            for reading in reversed(self._readings(period)):
                if reading <= wall:
                    return reading if reading >= FIRST_WALL else None
            day = self._first_day(period) - 1
        return None

    def count(self, low: int, high: int) -> int:
        """How many readings lie in `low` <= reading < `high`."""
        found, reading = 0, self.next(low)
        while reading is not None and reading < high:
            found += 1
            reading = self.next(reading + 1)
        return found

    def _readings(self, period: int) -> list[int]:
        begin, end = self._first_day(period), self._first_day(period + 1)
        days = self._days_in(begin, end)
        size = len(days) * self._times.per_day
        chosen = {position - 1 if position > 0 else size + position for position in self._positions}
        readings = []
        for index in sorted(index for index in chosen if 0 <= index < size):
            day, time = divmod(index, self._times.per_day)
            readings.append(days[day] * DAY_S + self._times.nth(time))
        return readings

    def _days_in(self, begin: int, end: int) -> list[int]:
        month, days = month_of(begin)[0], list[int]()
        while (first := first_day(month)) < end:
            days.extend(day for offset in bits(self._days.mask_of(month)) if begin <= (day := first + offset) < end)
            month += 1
        return days

    def _period_of(self, day: int) -> int:
        """The number of the year, month, week or day that holds a day."""
        match self._rule.frequency:
            case Frequency.YEARLY:
                return date_of(day).year
            case Frequency.MONTHLY:
                return month_of(day)[0]
            case Frequency.WEEKLY:
                return (day + 4 - self._rule.week_start) // 7
            case _:
                return day

    def _first_day(self, period: int) -> int:
        match self._rule.frequency:
            case Frequency.YEARLY:
                return first_day(month_number(period, 1))
            case Frequency.MONTHLY:
                return first_day(period)
            case Frequency.WEEKLY:
                return period * 7 - 4 + self._rule.week_start
            case _:
                return period
