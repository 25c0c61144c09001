"""The POSIX rule in a zone file's footer, for the years after its last explicit change: `EST5EDT,M3.2.0,M11.1.0`."""

from __future__ import annotations

import re
from typing import NamedTuple

from dueline.scheduler.core.schedule.months import DAY_S, first_day, length_of, month_number, weekday_of

_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_TIME = r"[+-]?\d{1,3}(?::\d{2}){0,2}"
_RULE = re.compile(
    rf"{_NAME}(?P<standard>{_TIME})"
    rf"(?:{_NAME}(?P<summer>{_TIME})?,(?P<begin>[^,/]+)(?:/(?P<begin_at>{_TIME}))?"
    rf",(?P<end>[^,/]+)(?:/(?P<end_at>{_TIME}))?)?"
)


class Turn(NamedTuple):
    """A yearly change: on the n-th `weekday` of `month` (5 = last), at `at_s` seconds of the old local time."""

    month: int
    week: int
    weekday: int
    at_s: int

    def wall(self, year: int) -> int:
        """The local reading of the change in that year, in seconds from 1970."""
        number = month_number(year, self.month)
        first = first_day(number)
        day = (self.weekday - weekday_of(first)) % 7 + (self.week - 1) * 7
        if day >= length_of(number):
            day -= 7
        return (first + day) * DAY_S + self.at_s


class Footer(NamedTuple):
    """Standard and summer offset in seconds east of Greenwich, and the two turns (None: no summer time)."""

    standard: int
    summer: int
    begin: Turn | None
    end: Turn | None

    def changes(self, year: int) -> list[tuple[int, int]]:
        """(instant, offset from then on) of the year's changes, in order."""
        if self.begin is None or self.end is None:
            return []
        return sorted(
            [
                (self.begin.wall(year) - self.standard, self.summer),
                (self.end.wall(year) - self.summer, self.standard),
            ]
        )


def parse_footer(text: str) -> Footer:
    """Reads the rule. Day forms other than `Mm.w.d` do not occur in tzdata and are refused."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"tzdata holds a zone rule of an unknown form: {text!r}; reinstall the pinned tzdata package")
    standard = -_seconds(found["standard"])
    if found["begin"] is None:
        return Footer(standard, standard, None, None)
    summer = -_seconds(found["summer"]) if found["summer"] else standard + 3_600
    return Footer(standard, summer, _turn(found["begin"], found["begin_at"]), _turn(found["end"], found["end_at"]))


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    return sign * sum(part * unit for part, unit in zip(parts, (3_600, 60, 1), strict=False))


def _turn(day: str, at: str | None) -> Turn:
    if not day.startswith("M"):
        raise ValueError(f"tzdata holds a zone rule with the day form {day!r}, which this reader does not know")
    month, week, weekday = (int(part) for part in day[1:].split("."))
    return Turn(month, week, weekday, _seconds(at) if at else 7_200)
