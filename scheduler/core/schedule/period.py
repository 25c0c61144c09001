"""Lengths of time as people write them: `90s`, `15m`, `2h30m`, `1 day`, `PT15M`, `3 months`, `1 year`."""

from __future__ import annotations

import re
from typing import NamedTuple

from dueline.scheduler.core.schedule.errors import ScheduleError

LONGEST_S = 400 * 366 * 86_400
"""400 years: the calendar's own period; a longer interval is a mistake."""

_LONGEST_TEXT = 64
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (0, 1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), (0, 60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (0, 3_600)),
    **dict.fromkeys(("d", "day", "days"), (0, 86_400)),
    **dict.fromkeys(("w", "week", "weeks"), (0, 604_800)),
    **dict.fromkeys(("mo", "month", "months"), (1, 0)),
    **dict.fromkeys(("y", "year", "years"), (12, 0)),
}
_PART = re.compile(r"(\d+) ?([A-Za-z]+) ?")
_ISO = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_ISO_UNITS = ((12, 0), (1, 0), (0, 604_800), (0, 86_400), (0, 3_600), (0, 60), (0, 1))


class Period(NamedTuple):
    """A length: whole months, or seconds; never both."""

    months: int
    seconds: int


def parse_period(text: str, *, key: str) -> Period:
    """Reads a positive length of whole seconds or whole months. `key` names the setting in errors (ScheduleError)."""
    shown = text[:_LONGEST_TEXT]
    if len(text) > _LONGEST_TEXT or not text.isascii():
        raise ScheduleError(f"{key}: a length of time is short ASCII text such as 15m or PT15M", text=shown, position=0)
    parts = _parts(text.strip(" \t"))
    if not parts:
        raise ScheduleError(f"{key}: {_why(text)}; write it as 90s, 15m, 2h30m, 1d or PT15M", text=shown, position=0)
    months = sum(count * unit[0] for count, unit in parts)
    seconds = sum(count * unit[1] for count, unit in parts)
    if months and seconds:
        raise ScheduleError(
            f"{key}: months and shorter units do not add up to one length; use either", text=shown, position=0
        )
    if not months and not seconds:
        raise ScheduleError(f"{key}: a length of zero never moves on", text=shown, position=0)
    if seconds > LONGEST_S or months > 4_800:
        raise ScheduleError(f"{key}: more than 400 years is out of range", text=shown, position=0)
    return Period(months, seconds)


def parse_seconds(text: str, *, key: str) -> int:
    """Reads a positive length of whole seconds; months and years are refused."""
    period = parse_period(text, key=key)
    if period.months:
        raise ScheduleError(f"{key}: months have no fixed length; use days or less", text=text, position=0)
    return period.seconds


def _parts(text: str) -> list[tuple[int, tuple[int, int]]]:
    iso = _ISO.fullmatch(text) if text[:1] == "P" else None
    if iso is not None:
        return [(int(count), unit) for count, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if count is not None]
    parts, at = list[tuple[int, tuple[int, int]]](), 0
    while at < len(text):
        found = _PART.match(text, at)
        unit = _UNITS.get(found[2] if len(found[2]) == 1 else found[2].lower()) if found is not None else None
        if found is None or unit is None:
            return []
        parts.append((int(found[1]), unit))
        at = found.end()
    return parts


def _why(text: str) -> str:
    bare = text.strip()
    if not bare:
        return "the length is empty"
    if bare[0] == "-" or "-" in bare:
        return "a length of time cannot be negative"
    if "." in bare or "," in bare:
        return "fractions of a second are not kept, so they are refused"
    if bare.isdigit():
        return "the unit is missing"
    return f"{bare[:20]!r} is not a length of time"
