"""The Gregorian calendar as integer arithmetic.

A *day* counts from 1970-01-01, a *month* from January 2000, a *wall* is a local clock reading in seconds from
1970-01-01T00:00 without any zone. The calendar repeats after 400 years = 4,800 months = 146,097 days, so one
table of 4,800 months serves every year.

The *shape* of a month is all that decides which of its dates match a rule: its length (28-31) and the weekday of
its first day. There are 28 shapes, numbered `(length - 28) * 7 + weekday of the 1st`, Sunday being 0.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

DAY_S = 86_400
ERA_MONTHS = 4_800
ERA_DAYS = 146_097
SHAPES = 28

_ORIGIN = 10_957  # 2000-01-01, which is a Saturday
_SATURDAY = 6
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """True where `year` has a 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _era_table() -> tuple[array[int], bytes]:
    starts, shapes, day = array("i"), bytearray(), 0
    for year in range(2000, 2400):
        for number, length in enumerate(_LENGTHS):
            long = length + (number == 1 and is_leap(year))
            starts.append(day)
            shapes.append((long - 28) * 7 + (day + _SATURDAY) % 7)
            day += long
    starts.append(day)
    return starts, bytes(shapes)


STARTS, SHAPE_OF = _era_table()
"""For each month of the era: its first day counted from the start of the era (one entry more than months), its shape."""


class Date(NamedTuple):
    """A date: year, month 1-12, day of the month 1-31."""

    year: int
    month: int
    day: int


def month_of(day: int) -> tuple[int, int]:
    """(month counted from January 2000, day of that month from 0) of a day counted from 1970."""
    era, rest = divmod(day - _ORIGIN, ERA_DAYS)
    index = rest * ERA_MONTHS // ERA_DAYS
    if STARTS[index] > rest:
        index -= 1
    elif STARTS[index + 1] <= rest:
        index += 1
    return era * ERA_MONTHS + index, rest - STARTS[index]


def first_day(month: int) -> int:
    """The day, counted from 1970, on which a month counted from January 2000 starts."""
    era, index = divmod(month, ERA_MONTHS)
    return _ORIGIN + era * ERA_DAYS + STARTS[index]


def month_number(year: int, month: int) -> int:
    """The month counted from January 2000 of a year and a month 1-12."""
    return (year - 2000) * 12 + month - 1


def length_of(month: int) -> int:
    """Days in a month counted from January 2000."""
    return 28 + SHAPE_OF[month % ERA_MONTHS] // 7


def day_number(year: int, month: int, day: int) -> int:
    """The day counted from 1970 of a date; `day` may run past the month's end."""
    return first_day(month_number(year, month)) + day - 1


def date_of(day: int) -> Date:
    """The date of a day counted from 1970."""
    month, offset = month_of(day)
    return Date(2000 + month // 12, month % 12 + 1, offset + 1)


def weekday_of(day: int) -> int:
    """0 (Sunday) to 6 (Saturday)."""
    return (day + 4) % 7


FIRST_WALL = day_number(1, 1, 1) * DAY_S
LAST_WALL = day_number(10_000, 1, 1) * DAY_S - 1
"""The calendar's ends: years 1 to 9999, in seconds; the same figures bound instants in UTC."""
