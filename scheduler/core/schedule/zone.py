"""A time zone as a row of spans: stretches of time in which local clocks keep one offset from UTC."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, FIRST_WALL, date_of
from dueline.scheduler.core.schedule.zone_file import ZoneFile, read_zone_file, zone_names
from dueline.scheduler.core.schedule.zone_rule import Footer, parse_footer

FOREVER = 1 << 60
"""Beyond every instant, in seconds; its negative is before every instant."""

_KEPT_YEARS = 64  # years of computed changes kept per zone; a walk through time needs three at once


class Span(NamedTuple):
    """Instants `start` <= u < `end` whose local reading is u + `offset`; everything in seconds.

    Local readings below `shown_to` were shown by an earlier span too (the second pass of a fold starts the span),
    readings from `shown_again` on will be shown once more by the next. Readings from `gap_from` up to
    `start + offset` are never shown (empty unless clocks sprang forward at `start`).
    """

    start: int
    end: int
    offset: int
    shown_to: int
    shown_again: int
    gap_from: int


class Zone:
    """Finds the span of an instant. Immutable but for a cache of spans."""

    __slots__ = ("_footer", "_instants", "_latest", "_offsets", "_years", "name")

    def __init__(self, name: str, file: ZoneFile) -> None:
        self.name = name
        footer = parse_footer(file.footer) if file.footer else None
        self._footer = footer if footer is not None and footer.begin is not None else None
        self._instants, self._offsets = _merged(file, footer)
        self._years: dict[int, tuple[tuple[int, int], ...]] = {}
        self._latest = self._span_at(0)

    def span_at(self, instant: int) -> Span:
        """The span that holds an instant (seconds)."""
        span = self._latest
        if span.start <= instant < span.end:
            return span
        span = self._span_at(instant)
        self._latest = span
        return span

    def offset_at(self, instant: int) -> int:
        """Seconds east of Greenwich at an instant."""
        return self.span_at(instant).offset

    def first_instant(self, wall: int) -> int:
        """The first instant at which local clocks show `wall` or later (the end of the gap, the first of two passes)."""
        instant = wall - DAY_S - DAY_S
        while True:
            span = self.span_at(instant)
            shown = max(span.start, wall - span.offset)
            if shown < span.end:
                return shown
            instant = span.end

    def _span_at(self, instant: int) -> Span:
        instants, footer = self._instants, self._footer
        if footer is None or instant < instants[-2]:
            return self._explicit(bisect_right(instants, instant))
        changes = self._changes_around(footer, date_of(instant // DAY_S).year)
        index = bisect_right(changes, (instant, FOREVER))
        return _span(changes[index - 1], changes[index], changes[index - 2][1])

    def _explicit(self, index: int) -> Span:
        instants, offsets = self._instants, self._offsets
        start = instants[index - 1] if index else -FOREVER
        end = instants[index] if index < len(instants) else FOREVER
        after = offsets[index + 1] if index < len(instants) else offsets[index]
        return _span((start, offsets[index]), (end, after), offsets[index - 1] if index else offsets[index])

    def _changes_around(self, footer: Footer, year: int) -> tuple[tuple[int, int], ...]:
        """The rule's changes from two years before `year` to two years after it, in order."""
        known = self._years.get(year)
        if known is None:
            known = tuple(change for each in range(year - 2, year + 3) for change in footer.changes(each))
            if len(self._years) >= _KEPT_YEARS:
                self._years.clear()
            self._years[year] = known
        return known


def _span(begin: tuple[int, int], end: tuple[int, int], before: int) -> Span:
    start, offset = begin
    stop, after = end
    return Span(
        start=start,
        end=stop,
        offset=offset,
        shown_to=start + max(before, offset),
        shown_again=stop + min(offset, after),
        gap_from=start + min(before, offset),
    )


def _merged(file: ZoneFile, footer: Footer | None) -> tuple[list[int], list[int]]:
    """Changes of the offset alone (a new abbreviation for the same offset is none), with some years of the rule, so
    that what lies beyond the last but one is ruled by the footer and nothing else."""
    instants: list[int] = []
    offsets = [file.offsets[0]]
    for instant, offset in zip(file.instants, file.offsets[1:], strict=True):
        if offset != offsets[-1]:
            instants.append(instant)
            offsets.append(offset)
    if footer is not None and footer.begin is not None:
        last = file.instants[-1] if file.instants else FIRST_WALL
        year = date_of(last // DAY_S).year
        for instant, offset in (change for each in range(year, year + 3) for change in footer.changes(each)):
            if instant > last and offset != offsets[-1]:
                instants.append(instant)
                offsets.append(offset)
    return instants, offsets


@lru_cache(maxsize=1_024)  # there are under 600 zones: everything that was ever asked for stays
def _load(name: str) -> Zone:
    return Zone(name, read_zone_file(name))


def load_zone(name: str) -> Zone:
    """The zone of a name. Refuses, with ScheduleError, everything that is not exactly a name of the pinned zone data."""
    if name in zone_names():
        return _load(name)
    raise ScheduleError(_reason(name), text=name[:80], position=0 if name else None, suggestion=_nearest(name))


def _reason(name: str) -> str:
    if not name:
        return "tz: the time zone is empty; write a name such as Europe/Berlin, or leave tz out for UTC"
    if name.upper().startswith(("TZ=", "CRON_TZ=")):
        return "tz: write the zone's name alone, without TZ="
    if name.startswith(("posix/", "right/")):
        return "tz: names under posix/ and right/ depend on the host and are refused; leave the prefix out"
    return (
        f"tz: {name[:80]!r} is not a zone of the tz database; write a name such as Europe/Berlin or UTC, "
        "in exactly that spelling"
    )


def _nearest(name: str) -> str | None:
    bare = name.strip()[:64]
    for prefix in ("CRON_TZ=", "TZ=", "posix/", "right/", ":"):
        bare = bare.removeprefix(prefix)
    if bare in zone_names():
        return bare
    folded = {known.lower(): known for known in zone_names()}
    exact = folded.get(bare.lower().replace(" ", "_"))
    if exact is not None:
        return exact
    close = difflib.get_close_matches(bare.lower(), list(folded), n=1, cutoff=0.75)
    return folded[close[0]] if close else None
