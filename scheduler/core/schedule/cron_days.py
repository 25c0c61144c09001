"""Which dates of a month match, for each of the 28 shapes a month can have.

Everything that a day field can say depends on the length of the month and the weekday of its first day alone, so an
expression's days are 28 masks (bit 0 is the 1st), made once and shared by all expressions with the same day fields.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dueline.scheduler.core.schedule.months import ERA_MONTHS, SHAPE_OF, SHAPES

_WEEK = 0b1_0000001_0000001_0000001_0000001  # every seventh date, from the 1st on
_SATURDAY = 6
_ALL_MONTHS = (1 << 12) - 1
_ALL_DAYS = (1 << 32) - 2
_ALL_WEEKDAYS = 0x7F
_UNKNOWN = -1


class Mark(NamedTuple):
    """A date that depends on the month. `kind` is one of last (n days before the last), last-workday,
    nearest-workday (to the n-th), nth-weekday, last-weekday."""

    kind: str
    weekday: int
    n: int


LAST_DAY = Mark("last", 0, 0)
LAST_WORKDAY = Mark("last-workday", 0, 0)


def nearest_workday_mark(day: int) -> Mark:
    """15W: Monday to Friday nearest to that day, within the month; nothing in months that lack the day."""
    return Mark("nearest-workday", 0, day)


def nth_weekday_mark(weekday: int, n: int) -> Mark:
    """MON#2."""
    return Mark("nth-weekday", weekday, n)


def last_weekday_mark(weekday: int) -> Mark:
    """5L."""
    return Mark("last-weekday", weekday, 0)


class DayFields(NamedTuple):
    """The two day fields. `either`: a date needs to match one of them only (both are restricted)."""

    days: int
    day_marks: tuple[Mark, ...]
    weekdays: int
    weekday_marks: tuple[Mark, ...]
    either: bool


class DayMasks:
    """The matching dates for each shape of month; bit 0 is the 1st. Worked out when first asked for."""

    __slots__ = ("_fields", "_known")

    def __init__(self, fields: DayFields) -> None:
        self._fields = fields
        self._known = [_UNKNOWN] * SHAPES

    def __getitem__(self, shape: int) -> int:
        mask = self._known[shape]
        if mask == _UNKNOWN:
            mask = self._known[shape] = _mask(self._fields, 28 + shape // 7, shape % 7)
        return mask


@lru_cache(maxsize=4_096)
def masks_of(fields: DayFields) -> DayMasks:
    """The masks of the two day fields, shared by all expressions that have the same."""
    return DayMasks(fields)


def _mask(fields: DayFields, length: int, first: int) -> int:
    by_day = fields.days >> 1
    by_weekday = (fields.weekdays >> first | fields.weekdays << 7 - first & 0x7F) * _WEEK
    if fields.day_marks or fields.weekday_marks:
        for mark in fields.day_marks:
            by_day |= _marked(mark, length, first)
        for mark in fields.weekday_marks:
            by_weekday |= _marked(mark, length, first)
    return (by_day | by_weekday if fields.either else by_day & by_weekday) & (1 << length) - 1


class CronDays:
    """The days of a cron expression: the months named, and in each the dates that its shape gives."""

    __slots__ = ("_masks", "_months", "daily")

    def __init__(self, months: int, fields: DayFields) -> None:
        self._months = months >> 1
        self._masks = masks_of(fields)
        full = (fields.days == _ALL_DAYS, fields.weekdays == _ALL_WEEKDAYS)
        self.daily = self._months == _ALL_MONTHS and (any(full) if fields.either else all(full))

    def mask_of(self, month: int) -> int:
        """The dates of a month; bit 0 is the 1st."""
        if self._months >> month % 12 & 1:
            return self._masks[SHAPE_OF[month % ERA_MONTHS]]
        return 0

    def count_of(self, low: int, high: int) -> int:
        """How many days the months `low` <= month < `high` hold; whole rounds of 400 years are multiplied."""
        eras, rest = divmod(high - low, ERA_MONTHS)
        found = sum([self.mask_of(month).bit_count() for month in range(low, low + rest)])
        return found + eras * sum([self.mask_of(month).bit_count() for month in range(ERA_MONTHS)]) if eras else found


def _marked(mark: Mark, length: int, first: int) -> int:
    offset = _offset(mark, length, first)
    return 1 << offset if 0 <= offset < length else 0


def _offset(mark: Mark, length: int, first: int) -> int:
    """The date that a mark names, counted from 0; outside the month where there is none."""
    if mark.kind == "last":
        return length - 1 - mark.n
    if mark.kind == "last-workday":
        return _workday_near(length - 1, length, first)
    if mark.kind == "nearest-workday":
        return _workday_near(mark.n - 1, length, first) if mark.n <= length else -1
    to_weekday = (mark.weekday - first) % 7
    if mark.kind == "nth-weekday":
        return to_weekday + (mark.n - 1) * 7
    return to_weekday + (length - 1 - to_weekday) // 7 * 7


def _workday_near(offset: int, length: int, first: int) -> int:
    """The Monday to Friday nearest to an existing date, in the same month."""
    weekday = (first + offset) % 7
    if weekday == _SATURDAY:
        return offset - 1 if offset else 2
    if weekday == 0:
        return offset + 1 if offset + 1 < length else offset - 2
    return offset
