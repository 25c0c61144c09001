"""Moments as people write them: `2026-12-24`, `2026-12-24T18:00`, `2026-12-24T18:00:00Z`, `...+01:00`."""

from __future__ import annotations

import re
from typing import NamedTuple

from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, day_number, length_of, month_number

_FORM = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2}))?(?:\.0+)? ?(Z|[+-]\d{2}:?\d{2})?)?"
)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})(Z)?)?")
_LONGEST_TEXT = 40


class Moment(NamedTuple):
    """A moment: the reading `wall` in seconds; `offset` from UTC, None where the zone decides; `whole_day` for a bare
    date."""

    wall: int
    offset: int | None
    whole_day: bool


def parse_moment(text: str, *, key: str) -> Moment:
    """Reads a date or a date with time. `key` names the setting in errors (ScheduleError)."""
    bare = text.strip(" \t")
    shown = text[:_LONGEST_TEXT]
    found = None
    if len(bare) <= _LONGEST_TEXT and bare.isascii():
        found = _FORM.fullmatch(bare) or _COMPACT.fullmatch(bare)
    if found is None:
        why = "fractions of a second are not kept" if "." in shown else f"{shown!r} is not a moment"
        raise ScheduleError(
            f"{key}: {why}; write 2026-12-24T18:00 (in the schedule's zone), 2026-12-24T18:00:00Z or 2026-12-24",
            text=shown,
            position=0,
        )
    year, month, day, hour, minute, second = (int(part) if part else 0 for part in found.groups()[:6])
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= length_of(month_number(year, month))):
        raise ScheduleError(f"{key}: there is no date {bare[:10]}", text=shown, position=0)
    if not (hour < 24 and minute < 60 and second < 60):
        raise ScheduleError(f"{key}: there is no such time of day; the last is 23:59:59", text=shown, position=10)
    wall = day_number(year, month, day) * DAY_S + hour * 3_600 + minute * 60 + second
    return Moment(wall, _offset(found[7]), found[4] is None)


def _offset(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    return (-1 if text[0] == "-" else 1) * (int(digits[:2]) * 3_600 + int(digits[2:]) * 60)
