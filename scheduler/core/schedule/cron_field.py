"""One field of a cron expression: text to the set of values it names.

A set of values is a bit mask (bit v stands for value v). What cannot be a mask because it depends on the month
(`L`, `15W`, `MON#2`) is kept as a *mark*, see `cron_days`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dueline.scheduler.core.schedule.cron_days import (
    LAST_DAY,
    LAST_WORKDAY,
    Mark,
    last_weekday_mark,
    nearest_workday_mark,
    nth_weekday_mark,
)
from dueline.scheduler.core.schedule.cron_trouble import FieldTrouble

DIGITS = frozenset("0123456789")
_LONGEST_NUMBER = 3

Draw = Callable[[str, int], int]
"""Draws a value below the given size for a field's name: always the same one for the same job."""


class Field(NamedTuple):
    """A field: its name, its values, their names, the highest value that H may draw; for a day of the week the number
    of Sunday (0, where 7 is Sunday too, or 1)."""

    name: str
    low: int
    high: int
    names: tuple[str, ...]
    drawn_high: int
    sunday: int | None = None

    @property
    def full(self) -> int:
        """The mask of every value."""
        return (1 << self.high + 1) - (1 << self.low)


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

SECOND = Field("second", 0, 59, (), 59)
MINUTE = Field("minute", 0, 59, (), 59)
HOUR = Field("hour", 0, 23, (), 23)
DAY_OF_MONTH = Field("day-of-month", 1, 31, (), 28)
MONTH = Field("month", 1, 12, _MONTHS, 12)
DAY_OF_WEEK = Field("day-of-week", 0, 6, WEEKDAYS, 6, 0)
DAY_OF_WEEK_FROM_1 = Field("day-of-week", 1, 7, WEEKDAYS, 7, 1)
_FIELDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK, DAY_OF_WEEK_FROM_1)


class Values(NamedTuple):
    """What a field names: the mask (days of the week counted from Sunday = 0), the marks, and whether its text starts
    with a star (or is `?`)."""

    mask: int
    marks: tuple[Mark, ...]
    star: bool


_STARRED = {field: Values(field.full >> (field.sunday or 0), (), True) for field in _FIELDS}
_SINGLE = {
    (field, form.format(value)): Values(1 << value - (field.sunday or 0), (), False)
    for field in _FIELDS
    for value in range(field.low, field.high + 1)
    for form in ("{}", "{:02}")
}


def parse_field(field: Field, text: str, draw: Draw | None) -> Values:
    """The values of a field's text. `draw` answers H; without it H is refused. Raises FieldTrouble."""
    if text == "*":
        return _STARRED[field]
    single = _SINGLE.get((field, text))
    if single is not None:
        return single
    if text == "?":
        if field is DAY_OF_MONTH or field.sunday is not None:
            return _STARRED[field]
        raise FieldTrouble(f"{field.name}: ? stands only for a whole day field", 0, "*")
    return _parse_list(field, text.upper(), draw)


def _parse_list(field: Field, text: str, draw: Draw | None) -> Values:
    mask, marks, at = 0, list[Mark](), 0
    for item in text.split(","):
        found = _parse_item(field, item, at, draw)
        if isinstance(found, int):
            mask |= found
        else:
            marks.append(found)
        at += len(item) + 1
    return Values(mask >> (field.sunday or 0), tuple(dict.fromkeys(marks)), text[0] == "*")


def _parse_item(field: Field, item: str, at: int, draw: Draw | None) -> int | Mark:
    if not item:
        raise FieldTrouble(f"{field.name}: an item of the list is empty; remove the comma", at)
    mark = _parse_mark(field, item, at)
    if mark is not None:
        return mark
    base, slash, step_text = item.partition("/")
    if base == "R":
        raise FieldTrouble(
            f"{field.name}: R is random and differs on every node; use H, which the job id decides", at, "H"
        )
    step = _parse_step(field, base, step_text, at + len(base) + 1) if slash else 1
    if base == "*":
        return _stepped(field.low, field.high, step)
    if base[:1] == "H":
        return _parse_drawn(field, base, step if slash else 0, at, draw)
    if "-" in base:
        low, high = _parse_range(field, base, step, at)
        return _wrap_sunday(field, _stepped(low, high, step))
    if base == "L" and field.sunday == 1 and not slash:  # where the week has a declared last day, L is that day
        return 1 << field.high
    value = _parse_value(field, base, at)
    if not slash:
        return _wrap_sunday(field, 1 << value)
    if value > field.high:  # only 7, the other Sunday
        raise FieldTrouble("day-of-week: 7 with a step is ambiguous; write Sunday as 0", at, f"0/{step}")
    return _stepped(value, field.high, step)


def _stepped(low: int, high: int, step: int) -> int:
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << value
    return mask


def _wrap_sunday(field: Field, mask: int) -> int:
    return (mask | 1) & 0x7F if field.sunday == 0 and mask & 0x80 else mask


def _parse_step(field: Field, base: str, text: str, at: int) -> int:
    if not base:
        raise FieldTrouble(f"{field.name}: a step needs a start; */{text} is every {text}", at - 1, f"*/{text}")
    if "/" in text:
        raise FieldTrouble(f"{field.name}: an item takes one step only", at + text.index("/"))
    if text.startswith("-") and DIGITS.issuperset(text[1:]):
        raise FieldTrouble(f"{field.name}: a step cannot be negative", at, f"{base}/{text[1:]}")
    step = _number(field, text, at, "step")
    if step == 0:
        raise FieldTrouble(f"{field.name}: a step of 0 never moves on; the smallest step is 1", at, f"{base}/1")
    return step


def _parse_range(field: Field, base: str, step: int, at: int) -> tuple[int, int]:
    first, _, second = base.partition("-")
    after = at + len(first) + 1
    if not first or not second:
        raise FieldTrouble(f"{field.name}: a range needs two ends, such as {field.low}-{field.high}", at)
    if first == "*" or second == "*":
        ends = (str(field.low) if first == "*" else first, str(field.high) if second == "*" else second)
        raise FieldTrouble(
            f"{field.name}: * is the whole field and cannot be an end of a range",
            at if first == "*" else after,
            "*" if first == second else "-".join(ends),
        )
    if "-" in second:
        raise FieldTrouble(f"{field.name}: a range has two ends only", after + second.index("-"))
    low, high = _parse_value(field, first, at), _parse_value(field, second, after)
    if field.sunday == 0 and second == "SUN" and low > 0:
        high = 7
    if high < low:
        raise FieldTrouble(
            f"{field.name}: the range {base} runs backwards; write it as a list", at, _as_list(field, base, step)
        )
    return low, high


def _as_list(field: Field, base: str, step: int) -> str:
    """The forward form of a reversed range: `22-5` as `22-23,0-5`, `FRI-MON` as `FRI-SUN,MON`."""
    first, _, second = base.partition("-")
    low, high = _parse_value(field, first, 0), _parse_value(field, second, 0)
    size = field.high - field.low + 1
    if step > 1:
        return ",".join(str((value - field.low) % size + field.low) for value in range(low, high + size + 1, step))
    if field.sunday == 0 and low == 7:
        return second if high == 0 else f"0-{second}"
    if field.sunday == 0 and high == 0:
        return f"{first}-7"
    named = bool(field.names) and not first.isdigit()
    week = named and field.sunday == 0  # in names a week may end with Sunday, which reads better
    top, bottom = field.high + week, field.low + week
    head = _span(first, _label(field, top, named), low == top)
    return f"{head},{_span(_label(field, bottom, named), second, high == bottom)}"


def _span(first: str, last: str, single: bool) -> str:
    return last if single else f"{first}-{last}"


def _label(field: Field, value: int, named: bool) -> str:
    return field.names[(value - field.low) % len(field.names)] if named else str(value)


def _parse_value(field: Field, text: str, at: int) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not DIGITS.issuperset(text) or not text:
        raise FieldTrouble(*_unknown_value(field, text, at))
    value = _number(field, text, at, "value")
    if not field.low <= value <= field.high + (field.sunday == 0):
        raise FieldTrouble(f"{field.name}: {value} is outside {field.low}-{field.high}", at)
    return value


def _unknown_value(field: Field, text: str, at: int) -> tuple[str, int, str | None]:
    shown = text[:20] or "nothing"
    if text[:3] in field.names and len(text) > 3:
        return f"{field.name}: names have three letters, {shown} is not one", at, text[:3]
    if text in _MONTHS or text in WEEKDAYS:
        return f"{field.name}: {text} is no {field.name}; is the order of the fields right?", at, None
    if text == "?":
        return f"{field.name}: ? stands only for a whole day field", at, "*"
    if text.strip("*") == "" and text:
        return f"{field.name}: one * is the whole field", at, "*"
    if text[:1] == "*" and DIGITS.issuperset(text[1:]):
        return f"{field.name}: a step is written with a slash", at, f"*/{text[1:]}"
    if text == "L" and field.sunday == 0:
        return (
            (
                "day-of-week: L alone means Saturday to some systems and the last Friday to others; "
                "write SAT, or 5L for the last Friday"
            ),
            at,
            None,
        )
    allowed = f"{field.low}-{field.high}" + (f" or {field.names[0]}-{field.names[-1]}" if field.names else "")
    return f"{field.name}: {shown} is not a value; allowed are {allowed}, *, lists, ranges and steps", at, None


def _number(field: Field, text: str, at: int, what: str) -> int:
    if not text or not DIGITS.issuperset(text):
        raise FieldTrouble(f"{field.name}: the {what} must be a whole number in digits, not {text[:20] or 'empty'}", at)
    if len(text) > _LONGEST_NUMBER:
        raise FieldTrouble(f"{field.name}: the {what} has more than {_LONGEST_NUMBER} digits", at)
    return int(text)


def _parse_drawn(field: Field, base: str, step: int, at: int, draw: Draw | None) -> int:
    """H, H(low-high), with a step: the job id draws the value, or the first of the stepped values."""
    low, high = field.low, field.drawn_high
    if base != "H":
        if not (base.startswith("H(") and base.endswith(")") and "-" in base):
            raise FieldTrouble(f"{field.name}: H is written H, H/15 or H({low}-{high})", at, "H")
        low, high = _parse_range(field, base[2:-1], 1, at + 2)
        if high > field.drawn_high:
            raise FieldTrouble(f"{field.name}: H may draw {field.low}-{field.drawn_high} only", at + 2)
    if draw is None:
        raise FieldTrouble(f"{field.name}: H needs a job id to draw from, and there is none", at)
    size = high - low + 1
    first = low + draw(field.name, min(step, size) if step else size)
    return _stepped(first, high, step) if step else 1 << first


def _parse_mark(field: Field, item: str, at: int) -> Mark | None:
    if field is DAY_OF_MONTH and ("L" in item or "W" in item):
        return _day_mark(item, at)
    if field.sunday is not None and item != "L" and (item[0] == "L" or item[-1] == "L" or "#" in item):
        return _weekday_mark(field, field.sunday, item, at)
    if "#" in item:
        raise FieldTrouble(f"{field.name}: # belongs to day-of-week, as in MON#2", at + item.index("#"))
    return None


def _day_mark(item: str, at: int) -> Mark:
    if item == "L":
        return LAST_DAY
    if item == "LW":
        return LAST_WORKDAY
    if item == "WL":
        raise FieldTrouble("day-of-month: the last working day is written LW", at, "LW")
    if item.startswith("L-"):
        back = _number(DAY_OF_MONTH, item[2:], at + 2, "number of days before the last")
        if not 1 <= back <= 30:
            raise FieldTrouble("day-of-month: L-n takes n from 1 to 30", at + 2)
        return Mark("last", 0, back)
    if item.endswith("W") and DIGITS.issuperset(item[:-1]) and len(item) > 1:
        return nearest_workday_mark(_parse_value(DAY_OF_MONTH, item[:-1], at))
    raise FieldTrouble(f"day-of-month: {item[:20]} is not known; there are L, LW, L-3 and 15W", at)


def _weekday_mark(field: Field, sunday: int, item: str, at: int) -> Mark:
    name, hash_sign, nth = item.partition("#")
    if hash_sign:
        weekday = _parse_value(field, name, at)
        number = _number(field, nth, at + len(name) + 1, "number after #")
        if not 1 <= number <= 5:
            raise FieldTrouble("day-of-week: the number after # is 1 to 5", at + len(name) + 1)
        return nth_weekday_mark((weekday - sunday) % 7, number)
    before = item.endswith("L")
    name = item[:-1] if before else item[1:]
    return last_weekday_mark((_parse_value(field, name, at if before else at + 1) - sunday) % 7)
