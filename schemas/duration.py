"""Durations as people write them: `90s`, `5m`, `1h30m`, `PT1H30M`, and back from milliseconds."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

UNITS: Final[dict[str, int]] = {
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
"""Milliseconds of each unit, longest first. A day is 24 hours: durations are elapsed time, never calendar time."""

MAX_DURATION_MS: Final = 3_653 * UNITS["d"]
"""Ten years. Nothing in a job needs more; a longer one is a slip of the pen (or of the unit)."""

_NUMBER: Final = r"\d{1,15}(?:\.\d{1,9})?"
_FRIENDLY: Final = re.compile("".join(rf"(?:(?P<{unit}>{_NUMBER}){unit})?\s?" for unit in UNITS), re.ASCII)
_ISO: Final = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?(?:T(?=\d)(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?"
    rf"(?:(?P<s>{_NUMBER})S)?)?",
    re.ASCII | re.IGNORECASE,
)
_CALENDAR: Final = re.compile(rf"P{_NUMBER}[YM]", re.ASCII | re.IGNORECASE)
_HINT: Final = "write it as 90s, 5m, 1h30m or PT1H30M (units, longest first: w d h m s ms)"
_LONGEST: Final = 64  # characters; no duration needs more, and an error can show the whole


def parse_duration(value: object) -> int:
    """Milliseconds of a duration. Bare numbers are refused, since their unit would be a guess; 0 needs none.

    Raises ValueError that says what was expected, also for more than ten years.
    """
    if value == 0 and not isinstance(value, bool):
        return 0
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value} of which unit? {_HINT}")  # noqa: TRY004 - one kind of error for one cause
    if not isinstance(value, str):
        raise ValueError(f"a duration is text: {_HINT}")  # noqa: TRY004
    text = value.strip()
    if len(text) > _LONGEST:
        raise ValueError(f"a duration of {len(text)} characters: {_HINT}")
    total = _total(text)
    if total.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of milliseconds")
    if total > MAX_DURATION_MS:
        raise ValueError(f"{text!r} is more than ten years")
    return int(total)


def _total(text: str) -> Fraction:
    if text == "0":
        return Fraction(0)
    match = _FRIENDLY.fullmatch(text) or _ISO.fullmatch(text)
    parts = {unit: number for unit, number in match.groupdict().items() if number} if match else {}
    if parts:
        return sum((Fraction(number) * UNITS[unit] for unit, number in parts.items()), Fraction(0))
    if text.startswith("-"):
        raise ValueError(f"{text!r} is negative: a duration is 0 or more")
    if re.fullmatch(_NUMBER, text, re.ASCII):
        raise ValueError(f"{text} of which unit? {_HINT}")
    if _CALENDAR.match(text):
        raise ValueError(f"{text!r}: years and months differ in length: {_HINT}")
    raise ValueError(f"{text!r} is not a duration: {_HINT}")


def format_duration(duration_ms: int) -> str:
    """The shortest text that `parse_duration` reads back to the same number; weeks are shown as days."""
    if duration_ms == 0:
        return "0s"
    sign, rest = ("-", -duration_ms) if duration_ms < 0 else ("", duration_ms)
    text = ""
    for unit, length in UNITS.items():
        if unit == "w":
            continue
        count, rest = divmod(rest, length)
        text += f"{count}{unit}" if count else ""
    return sign + text
