"""The days that a recurrence rule names, month by month.

Which dates a rule's BY parts name depends only on the year's kind: its length, the length of the year before (for
weeks that straddle New Year) and the weekday of 1 January. There are 21 kinds that occur; each is worked out once.
INTERVAL then takes whole years, months, weeks or days away.
"""

from __future__ import annotations

from typing import NamedTuple

from dueline.scheduler.core.schedule.day_times import bits
from dueline.scheduler.core.schedule.months import (
    DAY_S,
    date_of,
    first_day,
    is_leap,
    length_of,
    month_number,
    month_of,
    weekday_of,
)
from dueline.scheduler.core.schedule.rule import Frequency, Rule


class _YearKind(NamedTuple):
    leap: bool
    leap_before: bool
    first_weekday: int


class RuleDays:
    """The days of a rule that starts at the reading `begin`; earlier days are as if the rule had always run."""

    __slots__ = ("_begin_day", "_begin_month", "_begin_week", "_begin_year", "_known", "_rule", "daily")

    def __init__(self, rule: Rule, begin: int) -> None:
        day = begin // DAY_S
        date = date_of(day)
        self._rule = _with_defaults(rule, day)
        self._known: dict[_YearKind, tuple[int, ...]] = {}
        self._begin_day = day
        self._begin_month = month_of(day)[0]
        self._begin_year = date.year
        self._begin_week = _week_of(day, rule.week_start)
        takes_days_away = rule.months or rule.week_numbers or rule.year_days or rule.month_days or rule.weekdays
        steps_days = rule.frequency <= Frequency.DAILY and rule.interval > 1
        self.daily = rule.frequency >= Frequency.DAILY and not takes_days_away and not steps_days

    def mask_of(self, month: int) -> int:
        """The dates of a month; bit 0 is the 1st."""
        rule = self._rule
        interval = rule.interval
        if interval == 1 or rule.frequency > Frequency.DAILY:
            return self._named(month)
        if rule.frequency is Frequency.YEARLY:
            return 0 if (2000 + month // 12 - self._begin_year) % interval else self._named(month)
        if rule.frequency is Frequency.MONTHLY:
            return 0 if (month - self._begin_month) % interval else self._named(month)
        named = self._named(month)
        if not named:
            return 0
        return named & (self._weeks(month) if rule.frequency is Frequency.WEEKLY else self._every_nth_day(month))

    def count_of(self, low: int, high: int) -> int:
        """How many days the months `low` <= month < `high` hold."""
        if self._rule.interval > 1 and self._rule.frequency is Frequency.MONTHLY:
            low += (self._begin_month - low) % self._rule.interval
            return sum([self.mask_of(month).bit_count() for month in range(low, high, self._rule.interval)])
        return sum([self.mask_of(month).bit_count() for month in range(low, high)])

    def _named(self, month: int) -> int:
        """What the BY parts name in a month."""
        year = 2000 + month // 12
        kind = _YearKind(is_leap(year), is_leap(year - 1), weekday_of(first_day(month_number(year, 1))))
        masks = self._known.get(kind)
        if masks is None:
            masks = self._known[kind] = _year_masks(self._rule, year)
        return masks[month % 12]

    def _weeks(self, month: int) -> int:
        """The dates of the weeks that INTERVAL keeps."""
        day, length, mask = first_day(month), length_of(month), 0
        week_start = self._rule.week_start
        start = day - (weekday_of(day) - week_start) % 7
        for first in range(start, day + length, 7):
            if (_week_of(first, week_start) - self._begin_week) % self._rule.interval == 0:
                mask |= 0x7F << first - day if first >= day else 0x7F >> day - first
        return mask & (1 << length) - 1

    def _every_nth_day(self, month: int) -> int:
        day, mask = first_day(month), 0
        for offset in range((self._begin_day - day) % self._rule.interval, length_of(month), self._rule.interval):
            mask |= 1 << offset
        return mask


def _with_defaults(rule: Rule, day: int) -> Rule:
    """Without any part that names days, the rule keeps the day of its start."""
    if rule.week_numbers or rule.year_days or rule.month_days or rule.weekdays:
        return rule
    date = date_of(day)
    if rule.frequency is Frequency.YEARLY:
        return rule._replace(months=rule.months or (date.month,), month_days=(date.day,))
    if rule.frequency is Frequency.MONTHLY:
        return rule._replace(month_days=(date.day,))
    if rule.frequency is Frequency.WEEKLY:
        return rule._replace(weekdays=((0, weekday_of(day)),))
    return rule


def _week_of(day: int, week_start: int) -> int:
    """The number of the week that holds a day; weeks start on `week_start`."""
    return (day + 4 - week_start) // 7


def _year_masks(rule: Rule, year: int) -> tuple[int, ...]:
    """What the BY parts name in each month of a year."""
    begin, months = first_day(month_number(year, 1)), []
    in_year = _year_filter(rule, year, begin)
    for number in range(1, 13):
        month = month_number(year, number)
        first, length = first_day(month), length_of(month)
        if rule.months and number not in rule.months:
            months.append(0)
            continue
        mask = in_year >> (first - begin) & (1 << length) - 1
        if rule.month_days:
            mask &= _positions(rule.month_days, length)
        if rule.weekdays and (rule.frequency is not Frequency.YEARLY or rule.months):
            mask &= _weekday_mask(rule, first, length)
        months.append(mask)
    return tuple(months)


def _year_filter(rule: Rule, year: int, begin: int) -> int:
    """The days of a year, bit 0 being 1 January, that the parts which look at the whole year allow."""
    length = 365 + is_leap(year)
    mask = (1 << length) - 1
    if rule.year_days:
        mask &= _positions(rule.year_days, length)
    if rule.week_numbers:
        mask &= _week_mask(rule, year, begin, length)
    if rule.weekdays and rule.frequency is Frequency.YEARLY and not rule.months:
        mask &= _weekday_mask(rule, begin, length)
    return mask


def _positions(numbers: tuple[int, ...], length: int) -> int:
    """Numbers that count from 1, or from the end if negative, as bits."""
    mask = 0
    for number in numbers:
        offset = number - 1 if number > 0 else length + number
        if 0 <= offset < length:
            mask |= 1 << offset
    return mask


def _weekday_mask(rule: Rule, first: int, length: int) -> int:
    """BYDAY within a stretch of days: every such weekday, or its n-th."""
    mask = 0
    for number, weekday in rule.weekdays:
        offset = (weekday - weekday_of(first)) % 7
        days = range(offset, length, 7)
        if number == 0:
            for each in days:
                mask |= 1 << each
        elif abs(number) <= len(days):
            mask |= 1 << days[number - 1 if number > 0 else number]
    return mask


def _week_mask(rule: Rule, year: int, begin: int, length: int) -> int:
    """BYWEEKNO: the days of the year that lie in the numbered weeks, of this year or its neighbours."""
    mask = 0
    for each in (year - 1, year, year + 1):
        first, weeks = _first_week(each, rule.week_start)
        for index in bits(_positions(rule.week_numbers, weeks)):
            shift = first + index * 7 - begin
            mask |= 0x7F << shift if shift >= 0 else 0x7F >> -shift
    return mask & (1 << length) - 1


def _first_week(year: int, week_start: int) -> tuple[int, int]:
    """The first day of week 1 (the first with four days in the year), and how many weeks the year has."""
    start = _week_one(year, week_start)
    return start, (_week_one(year + 1, week_start) - start) // 7


def _week_one(year: int, week_start: int) -> int:
    fourth = first_day(month_number(year, 1)) + 3
    return fourth - (weekday_of(fourth) - week_start) % 7
