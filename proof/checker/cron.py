"""Cron expressions, read and evaluated here: five fields, or six with the seconds first. Nothing of the scheduler's engine.

Understood: values, names, lists, ranges, steps, `*` and `?`. What depends on the month or on the job (`L`, `W`, `#`, `H`) is not,
and says so. Both day fields restricted: either matches; if one starts with a star, both must.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from proof.checker.zone import after_gap, instants

DAY_S: Final = 86_400
MACROS: Final = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A compiled expression. Days of the week from Sunday = 0. `times`: seconds of a matching day."""

    times: tuple[int, ...]
    month_days: frozenset[int]
    months: frozenset[int]
    week_days: frozenset[int]
    both_days: bool  # a date must match both day fields
    wildcard: bool  # follows elapsed time through changes of the clocks

    def between(self, low: int, high: int, where: ZoneInfo | None, *, gap: str, fold: str) -> Iterator[int]:
        """Instants in [low, high), seconds since the epoch, in order, each once."""
        spare = 0 if where is None else DAY_S  # no zone is further from UTC than a day
        first, last = (low - spare) // DAY_S, (high + spare) // DAY_S
        found: set[int] = set()
        for day in range(first, last + 1):
            if not self._matches(day):
                continue
            for time in self.times:
                reading = day * DAY_S + time
                if where is None:
                    if low <= reading < high:
                        yield reading
                else:
                    found.update(at for at in self._instants(reading, where, gap, fold) if low <= at < high)
        yield from sorted(found)

    def _matches(self, day: int) -> bool:
        date = datetime.fromtimestamp(day * DAY_S, UTC)
        if date.month not in self.months:
            return False
        of_month, of_week = date.day in self.month_days, date.isoweekday() % 7 in self.week_days
        return (of_month and of_week) if self.both_days else (of_month or of_week)

    def _instants(self, reading: int, where: ZoneInfo, gap: str, fold: str) -> tuple[int, ...]:
        found = instants(reading, where)
        if self.wildcard:
            return found
        if not found:
            late = after_gap(reading, where) if gap == "run_after" else None
            return () if late is None else (late,)
        return {"first": found[:1], "second": found[-1:], "both": found}[fold]


def parse(text: str, *, seconds: bool) -> Cron:
    """The expression. `seconds`: six fields are allowed, seconds first. Raises ValueError."""
    fields = MACROS.get(text.strip(), text).split()
    if len(fields) == 5:
        fields = ["0", *fields]
    elif len(fields) != 6 or not seconds:
        raise ValueError(f"{len(fields)} fields in {text!r}")
    second, minute, hour = (_values(part, 0, top) for part, top in zip(fields, (59, 59, 23), strict=False))
    week = {day % 7 for day in _values(fields[5], 0, 7, WEEKDAYS)}
    starred = [part[0] in "*?" for part in (fields[3], fields[5])]
    return Cron(
        times=tuple(sorted(h * 3600 + m * 60 + s for h in hour for m in minute for s in second)),
        month_days=frozenset(_values(fields[3], 1, 31)),
        months=frozenset(_values(fields[4], 1, 12, MONTHS, first=1)),
        week_days=frozenset(week),
        both_days=any(starred),
        wildcard=fields[1][0] == "*" or fields[2][0] == "*",
    )


def _values(text: str, low: int, high: int, names: tuple[str, ...] = (), first: int = 0) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        base, slash, step_text = item.partition("/")
        step = int(step_text) if slash else 1
        start, dash, end = base.partition("-")
        if base in ("*", "?"):
            begin, stop = low, min(high, 6) if names == WEEKDAYS else high
        else:
            begin = _value(start, names, first)
            top = 6 if names == WEEKDAYS else high
            stop = _value(end, names, first) if dash else top if slash else begin
            if dash and names == WEEKDAYS and stop == 0 and begin > 0 and not end.isdigit():
                stop = 7  # sat-sun
        if not low <= begin <= stop <= high or step < 1:
            raise ValueError(f"{item!r} is not within {low}-{high}")
        found.update(range(begin, stop + 1, step))
    return found


def _value(text: str, names: tuple[str, ...], first: int) -> int:
    if text.upper() in names:
        return names.index(text.upper()) + first
    if not text.isdigit():
        raise ValueError(f"{text!r} is not understood by this checker")
    return int(text)
