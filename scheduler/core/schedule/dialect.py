"""The declared forms of a cron expression. Without a declaration five fields, and nothing is ever guessed.

| dialect | fields | days of the week | year |
| --- | --- | --- | --- |
| unix (default) | minute hour day-of-month month day-of-week | 0-7, 0 and 7 are Sunday | none |
| seconds | second first, then as unix | as unix | none |
| quartz | second first | 1-7, 1 is Sunday | optional, only * |
| eventbridge | minute first | 1-7, 1 is Sunday | required, only * |

Quartz and EventBridge want exactly one of the day fields to be `?`. Their fields are read with their own numbers; the
rules on changes of the clocks are ours.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dueline.scheduler.core.schedule.cron_field import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    DAY_OF_WEEK_FROM_1,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    Field,
)
from dueline.scheduler.core.schedule.errors import ScheduleError


class Dialect(NamedTuple):
    """A form: its fields without the year, whether a year may and must follow, whether one day field must be `?`."""

    name: str
    fields: tuple[Field, ...]
    may_have_year: bool
    must_have_year: bool
    one_question_mark: bool

    @property
    def form(self) -> str:
        """The fields by name, for error messages."""
        year = " year" if self.must_have_year else " [year]" if self.may_have_year else ""
        return " ".join(field.name for field in self.fields) + year


_FROM_1 = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK_FROM_1)
UNIX = Dialect("unix", (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK), False, False, False)
DIALECTS = {
    dialect.name: dialect
    for dialect in (
        UNIX,
        Dialect("seconds", (SECOND, *UNIX.fields), False, False, False),
        Dialect("quartz", (SECOND, *_FROM_1), True, False, True),
        Dialect("eventbridge", _FROM_1, True, True, True),
    )
}

_WRAPPED = re.compile(r"[ \t]*(cron|rate|at)\((.*)\)[ \t]*")


def dialect_of(name: str | None) -> Dialect:
    """The dialect of a name; None is unix. Raises ScheduleError."""
    if name is None:
        return UNIX
    found = DIALECTS.get(name)
    if found is None:
        raise ScheduleError(
            f"dialect: {name[:40]!r} is not known; there are {', '.join(DIALECTS)}", text=name[:40], position=0
        )
    return found


def fields_start(text: str) -> int:
    """Where the fields start: after the bracket of a wrapper, else 0."""
    found = _WRAPPED.fullmatch(text)
    return found.start(2) if found is not None else 0


def unwrapped(text: str, dialect: Dialect) -> str:
    """The fields inside EventBridge's `cron(...)`; the whole text where nothing is wrapped."""
    found = _WRAPPED.fullmatch(text)
    if found is None:
        return text
    kind, inner = found.groups()
    if kind == "rate":
        raise ScheduleError(
            "cron: a rate is an interval; use the key every", text=text, position=0, suggestion=f"every: {inner}"
        )
    if kind == "at":
        raise ScheduleError(
            "cron: a single moment has its own key, at", text=text, position=0, suggestion=f"at: {inner}"
        )
    if dialect.name != "eventbridge":
        raise ScheduleError(
            "cron: cron(...) is EventBridge's form; write the fields alone, or declare dialect: eventbridge",
            text=text,
            position=0,
        )
    return inner


def without_year(words: list[str], starts: list[int], text: str, dialect: Dialect) -> list[str]:
    """The fields without the year, which must be `*`; also checks the rule of the single `?`."""
    if len(words) > len(dialect.fields):
        if words[-1] != "*":
            raise ScheduleError(
                f"cron: the year {words[-1][:20]} is refused; bound the schedule with the keys start and end",
                text=text,
                position=starts[-1],
                suggestion=text[: starts[-1]] + "*" + text[starts[-1] + len(words[-1]) :],
            )
        words = words[:-1]
    if dialect.one_question_mark and (words[-3] == "?") == (words[-1] == "?"):
        raise ScheduleError(
            f"cron: {dialect.name} wants exactly one of day-of-month and day-of-week to be ?",
            text=text,
            position=starts[len(words) - 3],
        )
    return words
