"""A schedule as an English sentence.

`cron-descriptor` writes the times and months of a cron expression, from a normalised form of the fields, since it takes
some spellings at their word (`*/90` as every 90 minutes, `5-5` as a range, AND as OR). The days are written here.
"""

from __future__ import annotations

from cron_descriptor import ExpressionDescriptor, Options

from dueline.scheduler.core.schedule.cron_days import DayFields, Mark
from dueline.scheduler.core.schedule.cron_field import HOUR, MINUTE, MONTH, SECOND, Field
from dueline.scheduler.core.schedule.cron_parser import CronFields
from dueline.scheduler.core.schedule.day_times import bits

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NTH = ("", "first", "second", "third", "fourth", "fifth")
_ALL_DAYS = 0xFFFFFFFE
_ALL_WEEKDAYS = 0x7F
_FEW_TIMES = 8


def cron_sentence(fields: CronFields) -> str:
    """The sentence of a cron expression."""
    single_minute = fields.minutes.bit_count() == 1 and fields.seconds.bit_count() == 1
    hours = _listed(fields.hours) if single_minute and fields.hours.bit_count() <= _FEW_TIMES else ""
    if not hours or _step_of(HOUR, fields.hours):
        hours = _normal(HOUR, fields.hours)
    times = f"{_normal(SECOND, fields.seconds)} {_normal(MINUTE, fields.minutes)} {hours}"
    when = _written(f"{times} * * *")
    months = _written(f"{times} * {_normal(MONTH, fields.months)} *").removeprefix(when)
    return when + _day_clause(fields.days) + months


def _written(expression: str) -> str:
    options = Options(use_24hour_time_format=True, locale_code="en_US")
    return str(ExpressionDescriptor(expression, options).get_description())


def _normal(field: Field, mask: int) -> str:
    """One spelling for every mask: `*`, `*/n` if it goes evenly round, a range, or the list of values."""
    if mask == field.full:
        return "*"
    step = _step_of(field, mask)
    if step:
        return f"*/{step}"
    values = bits(mask)
    if len(values) > 1 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]}-{values[-1]}"
    return _listed(mask)


def _step_of(field: Field, mask: int) -> int:
    size = field.high - field.low + 1
    count = mask.bit_count()
    if count < 2 or size % count:
        return 0
    step = size // count
    return step if mask == sum(1 << value for value in range(field.low, field.high + 1, step)) else 0


def _listed(mask: int) -> str:
    return ",".join(str(value) for value in bits(mask))


def _day_clause(fields: DayFields) -> str:
    days = _days(fields) if fields.days != _ALL_DAYS or fields.day_marks else ""
    weekdays = _weekdays(fields) if fields.weekdays != _ALL_WEEKDAYS or fields.weekday_marks else ""
    if days and weekdays:
        return f", on {days}, or on {weekdays}" if fields.either else f", on {days} if that is also {weekdays}"
    return f", on {days or weekdays}" if days or weekdays else ""


def _days(fields: DayFields) -> str:
    parts = [f"the {_ordinal(day)}" for day in bits(fields.days)] + [_mark(mark) for mark in fields.day_marks]
    return f"{_joined(parts)} of the month"


def _weekdays(fields: DayFields) -> str:
    values = bits(fields.weekdays)
    parts = [_WEEKDAYS[value] for value in values]
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        parts = [f"{parts[0]} to {parts[-1]}"]
    marked = [_mark(mark) for mark in fields.weekday_marks]
    return _joined(parts + ([f"{_joined(marked)} of the month"] if marked else []))


def _mark(mark: Mark) -> str:
    match mark.kind:
        case "last":
            days = "day" if mark.n == 1 else "days"
            return f"{mark.n} {days} before the last day" if mark.n else "the last day"
        case "last-workday":
            return "the last working day"
        case "nearest-workday":
            return f"the working day nearest the {_ordinal(mark.n)}"
        case "nth-weekday":
            return f"the {_NTH[mark.n]} {_WEEKDAYS[mark.weekday]}"
        case _:
            return f"the last {_WEEKDAYS[mark.weekday]}"


def _ordinal(number: int) -> str:
    suffix = "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
