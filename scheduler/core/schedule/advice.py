"""Warnings: what is accepted, yet probably not what its writer had in mind."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dueline.scheduler.core.schedule.cron_days import CronDays
from dueline.scheduler.core.schedule.cron_field import Field
from dueline.scheduler.core.schedule.cron_parser import CronFields, fields_of
from dueline.scheduler.core.schedule.day_times import bits
from dueline.scheduler.core.schedule.dialect import Dialect
from dueline.scheduler.core.schedule.months import ERA_MONTHS, first_day

_ALL_HOURS = (1 << 24) - 1
_ALL_MINUTES = (1 << 60) - 1
_BARE = ("*", "?")
_YEARS = 400


def cron_advice(fields: CronFields, dialect: Dialect) -> Iterator[str]:
    """Warnings about a cron expression, in the order of its fields."""
    words = fields_of(fields.text, dialect)
    for field, word in zip(dialect.fields, words, strict=False):
        yield from _oversized_steps(field, word.upper())
    hour = words[dialect.fields.index(_named(dialect, "hour"))]
    if fields.hours == _ALL_HOURS and not hour.startswith("*"):
        yield (
            f"hour: {hour} names every hour, yet does not start with *, so this is a job at fixed times: the hour that "
            "the clocks leave out or repeat is run once; write * to follow elapsed time"
        )
    elif fields.minutes == _ALL_MINUTES and not fields.elapsed:
        yield (
            "minute: every minute is named, yet neither minute nor hour starts with *, so the second pass of a repeated "
            "hour stays silent; write * to follow elapsed time"
        )
    yield from _two_day_fields(fields, words[-3], words[-1])
    yield from _rarely(fields)


def _named(dialect: Dialect, name: str) -> Field:
    return next(field for field in dialect.fields if field.name == name)


def _oversized_steps(field: Field, word: str) -> Iterator[str]:
    for item in word.split(","):
        base, slash, step = item.partition("/")
        if not slash or base.startswith("H") or "-" in base or int(step) <= field.high - field.low:
            continue
        start = str(field.low) if base == "*" else base
        yield f"{field.name}: {item} matches {start} only, since the step is larger than the field; it is no interval"


def _two_day_fields(fields: CronFields, day: str, weekday: str) -> Iterator[str]:
    if day in _BARE or weekday in _BARE:
        return
    if fields.days.either:
        yield (
            f"day-of-month {day} and day-of-week {weekday} are both restricted: it is due when either matches, "
            "not only when both do"
        )
    else:
        yield (
            f"day-of-month {day} and day-of-week {weekday}: one of them starts with *, so it is due only when both match"
        )


def _rarely(fields: CronFields) -> Iterator[str]:
    """Counts the days of 400 years, after which the calendar repeats."""
    days = CronDays(fields.months, fields.days)
    if days.daily:
        return
    count = days.count_of(0, ERA_MONTHS)
    if count >= _YEARS:
        return
    dates = [first_day(month) + offset for month in range(2 * ERA_MONTHS) for offset in bits(days.mask_of(month))]
    longest = max(later - earlier for earlier, later in itertools.pairwise(dates))
    yield f"this is due on {count} days in 400 years; the longest wait is {round(longest / 365.2425)} years"
