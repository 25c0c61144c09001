"""A recurrence rule (RFC 5545 RRULE) as a record, and its text read.

`dateutil` reads the text too and must agree that it is a rule; how the rule is then stepped through is ours (see
`rule_days` and `rule_walls`), since libraries walk for seconds through a rule such as 30 February.
"""

from __future__ import annotations

import datetime as dt
import re
from enum import IntEnum
from typing import NamedTuple

from dateutil import rrule as dateutil_rrule

from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.moment import Moment, parse_moment

LONGEST_RULE = 1_024
_LARGEST = 1_000_000


class Frequency(IntEnum):
    """The period of a rule, longest first."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


class Rule(NamedTuple):
    """A rule's parts; an empty tuple is a part that is not given. `weekdays` holds (n or 0, weekday), `week_start` and
    the weekdays count from Sunday = 0."""

    frequency: Frequency
    interval: int
    occurrences: int | None
    until: Moment | None
    week_start: int
    months: tuple[int, ...]
    week_numbers: tuple[int, ...]
    year_days: tuple[int, ...]
    month_days: tuple[int, ...]
    weekdays: tuple[tuple[int, int], ...]
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    positions: tuple[int, ...]


_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_RANGES = {  # part: lowest, highest, whether negative numbers count from the end
    "BYMONTH": (1, 12, False),
    "BYWEEKNO": (1, 53, True),
    "BYYEARDAY": (1, 366, True),
    "BYMONTHDAY": (1, 31, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_RANGES)
_DAY = re.compile(r"([+-]?\d{1,2})?(SU|MO|TU|WE|TH|FR|SA)")
_NUMBER = re.compile(r"[+-]?\d{1,7}")
_ONLY_YEARLY = {"BYWEEKNO": (Frequency.YEARLY,), "BYYEARDAY": (Frequency.YEARLY, *list(Frequency)[4:])}


class _Trouble(Exception):
    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


def parse_rule(text: str) -> Rule:
    """Reads `FREQ=...;...`, with or without `RRULE:` in front. Raises ScheduleError."""
    if len(text) > LONGEST_RULE:
        raise ScheduleError(f"rrule: {len(text)} characters; {LONGEST_RULE} is the limit", text=text[:80], position=0)
    bare = text.strip().upper().removeprefix("RRULE:")
    try:
        rule = _parsed(bare)
    except _Trouble as trouble:
        raise ScheduleError(
            f"rrule: {trouble}", text=text, position=max(0, text.upper().find(trouble.word.upper()))
        ) from None
    _agree(bare, text)
    return rule


def _parsed(text: str) -> Rule:
    parts: dict[str, str] = {}
    for piece in text.removesuffix(";").split(";"):
        name, equals, value = piece.partition("=")
        if not equals or not value:
            raise _Trouble(f"{piece[:20] or 'an empty part'} is not NAME=VALUE", piece)
        if name not in _PARTS:
            raise _Trouble(f"there is no part {name[:20]}; there are {', '.join(_PARTS)}", name)
        if name in parts:
            raise _Trouble(f"{name} is given twice", piece)
        parts[name] = value
    frequency = _frequency(parts)
    _check_together(parts, frequency)
    numbers = {name: _numbers(name, parts[name]) if name in parts else () for name in _RANGES}
    return Rule(
        frequency=frequency,
        interval=_positive("INTERVAL", parts.get("INTERVAL", "1")),
        occurrences=_positive("COUNT", parts["COUNT"]) if "COUNT" in parts else None,
        until=parse_moment(parts["UNTIL"], key="rrule: UNTIL") if "UNTIL" in parts else None,
        week_start=_weekday("WKST", parts.get("WKST", "MO")),
        months=numbers["BYMONTH"],
        week_numbers=numbers["BYWEEKNO"],
        year_days=numbers["BYYEARDAY"],
        month_days=numbers["BYMONTHDAY"],
        weekdays=_weekdays(parts["BYDAY"], frequency, "BYWEEKNO" in parts) if "BYDAY" in parts else (),
        hours=numbers["BYHOUR"],
        minutes=numbers["BYMINUTE"],
        seconds=numbers["BYSECOND"],
        positions=numbers["BYSETPOS"],
    )


def _frequency(parts: dict[str, str]) -> Frequency:
    if "FREQ" not in parts:
        raise _Trouble("FREQ is missing; a rule starts with FREQ=DAILY or another period", "")
    if parts["FREQ"] not in Frequency.__members__:
        raise _Trouble(f"FREQ is one of {', '.join(Frequency.__members__)}", parts["FREQ"])
    return Frequency[parts["FREQ"]]


def _check_together(parts: dict[str, str], frequency: Frequency) -> None:
    if "COUNT" in parts and "UNTIL" in parts:
        raise _Trouble("COUNT and UNTIL exclude each other", "UNTIL")
    for name, allowed in _ONLY_YEARLY.items():
        if name in parts and frequency not in allowed:
            raise _Trouble(f"{name} does not go with FREQ={frequency.name}", name)
    if "BYMONTHDAY" in parts and frequency is Frequency.WEEKLY:
        raise _Trouble("BYMONTHDAY does not go with FREQ=WEEKLY; use FREQ=DAILY or MONTHLY", "BYMONTHDAY")
    if "BYSETPOS" in parts and frequency > Frequency.DAILY:
        raise _Trouble("BYSETPOS goes with FREQ=DAILY and longer periods here", "BYSETPOS")
    if "BYSETPOS" in parts and not any(name.startswith("BY") for name in parts if name != "BYSETPOS"):
        raise _Trouble("BYSETPOS chooses among what another BY part names; there is none", "BYSETPOS")


def _positive(name: str, text: str) -> int:
    if not text.isdigit() or len(text) > 7 or not 1 <= int(text) <= _LARGEST:
        raise _Trouble(f"{name} is a whole number from 1 to {_LARGEST}", f"{name}={text}")
    return int(text)


def _numbers(name: str, text: str) -> tuple[int, ...]:
    low, high, signed = _RANGES[name]
    found = set()
    for item in text.split(","):
        number = int(item) if _NUMBER.fullmatch(item) else None
        inside = number is not None and (low <= number <= high or (signed and low <= -number <= high))
        if number is None or not inside:
            form = f"{low} to {high}" + (f" or -{low} to -{high}" if signed else "")
            raise _Trouble(f"{name}: {item[:20] or 'an empty item'} is outside {form}", f"{name}={text}")
        found.add(number)
    return tuple(sorted(found))


def _weekday(name: str, text: str) -> int:
    if text not in _WEEKDAYS:
        raise _Trouble(f"{name} is one of {', '.join(_WEEKDAYS)}", f"{name}={text}")
    return _WEEKDAYS.index(text)


def _weekdays(text: str, frequency: Frequency, by_week: bool) -> tuple[tuple[int, int], ...]:
    found = set()
    for item in text.split(","):
        match = _DAY.fullmatch(item)
        if match is None:
            raise _Trouble(
                f"BYDAY: {item[:20] or 'an empty item'} is no weekday such as MO, 2TU or -1FR", f"BYDAY={text}"
            )
        number = int(match[1]) if match[1] else 0
        if match[1] and (number == 0 or abs(number) > 53):
            raise _Trouble(f"BYDAY: the number in {item} is 1 to 53, or -1 to -53", f"BYDAY={text}")
        if number and (frequency > Frequency.MONTHLY or by_week):
            raise _Trouble("BYDAY: a number goes with FREQ=MONTHLY or YEARLY without BYWEEKNO", f"BYDAY={text}")
        found.add((number, _WEEKDAYS.index(match[2])))
    return tuple(sorted(found))


def _agree(bare: str, text: str) -> None:
    """Asks dateutil whether it reads the same text as a rule, without stepping through it. UNTIL and INTERVAL are left
    out: it judges them by a first moment, which is not known here."""
    pieces = bare.removesuffix(";").split(";")
    judged = ";".join(piece for piece in pieces if not piece.startswith(("UNTIL=", "INTERVAL=")))
    try:
        dateutil_rrule.rrulestr(judged, dtstart=dt.datetime(2000, 1, 1, tzinfo=dt.UTC))
    except (ValueError, KeyError) as error:
        raise ScheduleError(f"rrule: {error}", text=text, position=0) from None
