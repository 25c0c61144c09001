"""A cron expression: text to masks. Strict where systems disagree; every refusal names the place and the way out."""

from __future__ import annotations

import re
from typing import NamedTuple

from dueline.scheduler.core.schedule.cron_days import DayFields, masks_of
from dueline.scheduler.core.schedule.cron_field import Draw, Field, Values, parse_field
from dueline.scheduler.core.schedule.cron_trouble import FieldTrouble
from dueline.scheduler.core.schedule.dialect import UNIX, Dialect, fields_start, unwrapped, without_year
from dueline.scheduler.core.schedule.errors import ScheduleError

LONGEST_EXPRESSION = 256
"""Characters; the longest list of distinct values of all fields is shorter."""

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_REFUSED = re.compile(r"[^\t\x20-\x7e]")
_WORD = re.compile(r"[^ \t]+")


class CronFields(NamedTuple):
    """A parsed expression. Masks hold a bit for each value; `elapsed` marks a wildcard job, whose minute or hour field
    starts with `*`: it follows elapsed time over a change of the clocks."""

    text: str
    seconds: int
    minutes: int
    hours: int
    months: int
    days: DayFields
    elapsed: bool



def parse_cron(text: str, *, draw: Draw | None = None, dialect: Dialect = UNIX) -> CronFields:
    """Reads the fields of a dialect, or a macro. Raises ScheduleError."""
    check_text(text)
    fields_text = text.strip(" \t")
    if fields_text.startswith("@"):
        fields_text, dialect = _macro(text, fields_text), UNIX
    elif fields_text.endswith(")"):
        fields_text = unwrapped(text, dialect)
    words = fields_text.split()
    if len(words) != len(dialect.fields) or dialect.may_have_year:
        words = _counted(words, text, dialect)
    values = [_parse(field, words, index, text, draw) for index, field in enumerate(dialect.fields)]
    second = values.pop(0).mask if len(values) > len(UNIX.fields) else 1
    return _assembled(text, second, values)


def _counted(words: list[str], text: str, dialect: Dialect) -> list[str]:
    """The fields of the dialect alone, if there are as many as it wants."""
    wanted = len(dialect.fields)
    most, least = wanted + dialect.may_have_year, wanted + dialect.must_have_year
    if not least <= len(words) <= most:
        raise _field_count(text, words, dialect)
    return without_year(words, _starts(text), text, dialect)


def _starts(text: str) -> list[int]:
    """Where each field of the text starts."""
    return [found.start() for found in _WORD.finditer(text, fields_start(text))]


def fields_of(text: str, dialect: Dialect) -> list[str]:
    """The fields of an accepted text, one word each, without a year; a macro's are those of its expansion."""
    bare = text.strip(" \t")
    if bare.startswith("@"):
        return MACROS[bare.lower()].split()
    return unwrapped(text, dialect).split()[: len(dialect.fields)]


def _assembled(text: str, second: int, values: list[Values]) -> CronFields:
    minute, hour, day, month, weekday = values
    days = DayFields(day.mask, day.marks, weekday.mask, weekday.marks, not (day.star or weekday.star))
    fields = CronFields(text, second, minute.mask, hour.mask, month.mask, days, minute.star or hour.star)
    if day.mask & 0xE0000000 or day.marks or weekday.marks:
        _refuse_impossible(fields)
    return fields


def check_text(text: str) -> None:
    """Refuses text that is too long, or holds anything but printable ASCII, blanks and tabs."""
    if len(text) > LONGEST_EXPRESSION:
        raise ScheduleError(
            f"cron: the expression has {len(text)} characters; {LONGEST_EXPRESSION} is the limit",
            text=text[:LONGEST_EXPRESSION],
            position=LONGEST_EXPRESSION - 1,
        )
    if text.isascii() and text.isprintable():
        return
    found = _REFUSED.search(text)
    if found is not None:
        raise ScheduleError(
            f"cron: the character U+{ord(found[0]):04X} is not allowed; fields are ASCII, separated by blanks or tabs",
            text=text,
            position=found.start(),
            suggestion=_REFUSED.sub(" ", text).strip() if found[0].isspace() else None,
        )


def _macro(text: str, name: str) -> str:
    expansion = MACROS.get(name.lower())
    if expansion is not None:
        return expansion
    at = text.index("@")
    word = name.split()[0].lower()
    if word == "@every":
        period = name[6:].strip() or "15m"
        raise ScheduleError(
            "cron: @every is an interval, not a cron expression; use the key every",
            text=text,
            position=at,
            suggestion=f"every: {period}",
        )
    if word == "@reboot":
        raise ScheduleError(
            "cron: @reboot is refused: a cluster of schedulers has no single boot; trigger the job by command instead",
            text=text,
            position=at,
        )
    raise ScheduleError(f"cron: {word} is not a macro; there are {', '.join(MACROS)}", text=text, position=at)


def _parse(field: Field, words: list[str], index: int, text: str, draw: Draw | None) -> Values:
    try:
        return parse_field(field, words[index], draw)
    except FieldTrouble as trouble:
        start = _starts(text)[index]
        corrected = None
        if trouble.instead is not None:
            corrected = " ".join([*words[:index], _mended(words[index], trouble), *words[index + 1 :]])
        raise ScheduleError(
            f"cron: {trouble.message}", text=text, position=start + trouble.at, suggestion=corrected
        ) from None


def _mended(word: str, trouble: FieldTrouble) -> str:
    """The field with the item in which the trouble lies replaced."""
    before = word[: trouble.at].rfind(",") + 1
    after = word.find(",", trouble.at)
    return word[:before] + (trouble.instead or "") + (word[after:] if after >= 0 else "")


def _field_count(text: str, words: list[str], dialect: Dialect) -> ScheduleError:
    if not words:
        return ScheduleError("cron: the expression is empty; five fields or a macro are needed", text=text, position=0)
    if words[0].upper().startswith(("TZ=", "CRON_TZ=")):
        zone, rest = words[0].partition("=")[2], " ".join(words[1:])
        return ScheduleError(
            "cron: the zone has its own key, tz",
            text=text,
            position=text.index(words[0]),
            suggestion=f"cron: {rest!r} with tz: {zone}",
        )
    starts = _starts(text)
    wanted = len(dialect.fields) + dialect.may_have_year
    comment = next((start for start in starts if text[start] == "#"), None)
    if comment is not None and len(words) > wanted:
        return ScheduleError(
            "cron: a comment after the fields is not allowed",
            text=text,
            position=comment,
            suggestion=text[:comment].strip(),
        )
    hint = ""
    if dialect is UNIX and len(words) in (6, 7):
        hint = (
            "; six or seven fields mean different things to different systems: declare which with "
            "dialect: seconds, quartz or eventbridge"
        )
    return ScheduleError(
        f"cron: {len(words)} fields, but dialect {dialect.name} has {dialect.form}{hint}",
        text=text,
        position=starts[wanted] if len(words) > wanted else len(text.rstrip()),
    )


def _refuse_impossible(fields: CronFields) -> None:
    """A date such as 30 February never comes: no shape that one of the months can have holds a matching date."""
    masks = masks_of(fields.days)
    for month in range(12):
        if fields.months >> (month + 1) & 1 and any(masks[shape] for shape in shapes_of_month(month)):
            return
    text = fields.text
    raise ScheduleError(
        "cron: this never fires: none of the months named has such a day; for the last day of a month write L",
        text=text,
        position=_day_position(text),
    )


def _day_position(text: str) -> int:
    """Where the day-of-month field starts: the third from the end, or the fourth if a year follows."""
    starts = _starts(text)
    return starts[3] if len(starts) > len(UNIX.fields) else starts[2]


_LENGTHS = ((31,), (28, 29), (31,), (30,), (31,), (30,), (31,), (31,), (30,), (31,), (30,), (31,))


def shapes_of_month(month: int) -> list[int]:
    """The shapes that a month (0-11) takes over the years: each of its lengths with every weekday of its 1st."""
    return [(length - 28) * 7 + weekday for length in _LENGTHS[month] for weekday in range(7)]
