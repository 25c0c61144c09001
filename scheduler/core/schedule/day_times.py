"""Days crossed with times of day: the shape that cron expressions and most recurrence rules share.

`DayTimes` works on walls (see `months`); a zone comes later, in `zoned`. Nothing here walks: bits are looked up.
"""

from __future__ import annotations

from typing import Protocol

from dueline.scheduler.core.schedule.months import (
    DAY_S,
    ERA_MONTHS,
    FIRST_WALL,
    LAST_WALL,
    first_day,
    month_of,
)

LAST_MONTH = (10_000 - 2000) * 12 - 1
FIRST_MONTH = (1 - 2000) * 12


class Days(Protocol):
    """A set of days, month by month. `daily`: every day is in it."""

    daily: bool

    def mask_of(self, month: int) -> int:
        """The dates of a month (counted from January 2000) that are in the set; bit 0 is the 1st."""

    def count_of(self, low: int, high: int) -> int:
        """How many days the months `low` <= month < `high` hold."""


class TimesOfDay:
    """Hours crossed with minutes crossed with seconds, each a mask with at least one bit."""

    __slots__ = ("first", "hours", "last", "minutes", "per_day", "per_minute", "seconds")

    def __init__(self, *, hours: int, minutes: int, seconds: int) -> None:
        self.hours = hours
        self.minutes = minutes
        self.seconds = seconds
        self.first = lowest(hours) * 3_600 + lowest(minutes) * 60 + lowest(seconds)
        self.last = highest(hours) * 3_600 + highest(minutes) * 60 + highest(seconds)
        self.per_minute = seconds.bit_count()
        self.per_day = hours.bit_count() * minutes.bit_count() * self.per_minute

    def at_or_after(self, time: int) -> int:
        """The first time of day from `time` on, which must not be past the last one."""
        hour, rest = divmod(time, 3_600)
        if self.hours >> hour & 1:
            minute, second = divmod(rest, 60)
            if self.minutes >> minute & 1:
                left = self.seconds >> second
                if left:
                    return time + lowest(left)
            left = self.minutes >> minute + 1
            if left:
                return hour * 3_600 + (minute + 1 + lowest(left)) * 60 + lowest(self.seconds)
        return (hour + 1 + lowest(self.hours >> hour + 1)) * 3_600 + self.first % 3_600

    def at_or_before(self, time: int) -> int:
        """The last time of day up to `time`, which must not be before the first one."""
        hour, rest = divmod(time, 3_600)
        if self.hours >> hour & 1:
            minute, second = divmod(rest, 60)
            if self.minutes >> minute & 1:
                left = self.seconds & (2 << second) - 1
                if left:
                    return time - second + highest(left)
            left = self.minutes & (1 << minute) - 1
            if left:
                return hour * 3_600 + highest(left) * 60 + highest(self.seconds)
        return highest(self.hours & (1 << hour) - 1) * 3_600 + self.last % 3_600

    def below(self, time: int) -> int:
        """How many are earlier than `time`."""
        hour, rest = divmod(time, 3_600)
        minute, second = divmod(rest, 60)
        found = (self.hours & (1 << hour) - 1).bit_count() * self.minutes.bit_count() * self.per_minute
        if self.hours >> hour & 1:
            found += (self.minutes & (1 << minute) - 1).bit_count() * self.per_minute
            if self.minutes >> minute & 1:
                found += (self.seconds & (1 << second) - 1).bit_count()
        return found

    def nth(self, index: int) -> int:
        """The time of day with `index` others before it."""
        index, second = divmod(index, self.per_minute)
        hour, minute = divmod(index, self.minutes.bit_count())
        return nth_bit(self.hours, hour) * 3_600 + nth_bit(self.minutes, minute) * 60 + nth_bit(self.seconds, second)


class DayTimes:
    """Every one of the days at every one of the times."""

    __slots__ = ("_daily", "_days", "_times")

    def __init__(self, days: Days, times: TimesOfDay) -> None:
        self._days = days
        self._daily = days.daily
        self._times = times

    def next(self, wall: int) -> int | None:
        """The first reading that is `wall` or later; None past the year 9999."""
        day, time = divmod(wall, DAY_S)
        if time <= self._times.last and (self._daily or has_day(self._days, day)):
            found = day * DAY_S + self._times.at_or_after(time)
        else:
            following = day + 1 if self._daily else next_day(self._days, day + 1)
            if following is None:
                return None
            found = following * DAY_S + self._times.first
        return found if found <= LAST_WALL else None

    def last(self, wall: int) -> int | None:
        """The last reading that is `wall` or earlier; None before the year 1."""
        day, time = divmod(wall, DAY_S)
        if time >= self._times.first and (self._daily or has_day(self._days, day)):
            found = day * DAY_S + self._times.at_or_before(time)
        else:
            preceding = day - 1 if self._daily else last_day(self._days, day - 1)
            if preceding is None:
                return None
            found = preceding * DAY_S + self._times.last
        return found if found >= FIRST_WALL else None

    def count(self, low: int, high: int) -> int:
        """How many readings lie in `low` <= reading < `high`."""
        if high <= low:
            return 0
        (first, start), (last, stop) = divmod(low, DAY_S), divmod(high, DAY_S)
        found = self._times.per_day * count_days(self._days, first, last)
        if start and has_day(self._days, first):
            found -= self._times.below(start)
        if stop and has_day(self._days, last):
            found += self._times.below(stop)
        return found


def has_day(days: Days, day: int) -> bool:
    """Whether a day counted from 1970 is in the set."""
    month, offset = month_of(day)
    return bool(days.mask_of(month) >> offset & 1)


def next_day(days: Days, day: int) -> int | None:
    """The first day of the set that is `day` or later. What does not come within 400 years never comes."""
    month, offset = month_of(day)
    rest = days.mask_of(month) >> offset
    if rest:
        return day + lowest(rest)
    end = min(month + ERA_MONTHS, LAST_MONTH)
    while month < end:
        month += 1
        rest = days.mask_of(month)
        if rest:
            return first_day(month) + lowest(rest)
    return None


def last_day(days: Days, day: int) -> int | None:
    """The last day of the set that is `day` or earlier."""
    month, offset = month_of(day)
    rest = days.mask_of(month) & (2 << offset) - 1
    end = max(month - ERA_MONTHS, FIRST_MONTH)
    while not rest:
        if month <= end:
            return None
        month -= 1
        rest = days.mask_of(month)
    return first_day(month) + highest(rest)


def count_days(days: Days, low: int, high: int) -> int:
    """How many days of the set lie in `low` <= day < `high`."""
    if days.daily:
        return high - low
    first, before = month_of(low)
    last, after = month_of(high)
    found = days.count_of(first, last)
    found -= (days.mask_of(first) & (1 << before) - 1).bit_count()
    return found + (days.mask_of(last) & (1 << after) - 1).bit_count()


def lowest(mask: int) -> int:
    """The number of the lowest bit set."""
    return (mask & -mask).bit_length() - 1


def highest(mask: int) -> int:
    """The number of the highest bit set."""
    return mask.bit_length() - 1


def nth_bit(mask: int, index: int) -> int:
    """The number of the bit set that has `index` others below it."""
    for _ in range(index):
        mask &= mask - 1
    return lowest(mask)


def bits(mask: int) -> list[int]:
    """The numbers of all bits set, lowest first."""
    found = []
    while mask:
        found.append(lowest(mask))
        mask &= mask - 1
    return found
