"""Local readings to instants: the only place that knows what a change of the clocks does to a schedule.

A job at a fixed time (`30 2 * * *`) is due once for each local reading it names:

- gap, the reading is never shown: at the first instant after the gap, or not at all. Several such readings give one
  instant. A gap of more than three hours (a day left out, Samoa 2011) is always skipped.
- fold, the reading is shown twice: at the first showing, the second, or both.

A wildcard job (`*/15 * * * *`) follows elapsed time: it is due whenever the local clocks show a reading it names, in
both passes of a fold, and never at a reading it does not name.

Both are one walk over the zone's spans. In each span the readings that count are those from `low` up to `high`, and
the span's first instant counts as well if a gap before it swallowed a reading.
"""

from __future__ import annotations

from dueline.scheduler.core.schedule.choices import Fold, Gap
from dueline.scheduler.core.schedule.months import DAY_S
from dueline.scheduler.core.schedule.timeline import FIRST_INSTANT, LAST_INSTANT, WallSet
from dueline.scheduler.core.schedule.zone import Span, Zone

LONGEST_GAP_S = 10_800
"""A gap beyond this is not a summer-time change but a day struck from the calendar: nothing runs for it."""

_MARGIN_S = 2 * DAY_S  # no change of clocks in the tz database moves them by more than a day


class Zoned:
    """The instants of a set of local readings in a zone."""

    __slots__ = ("_first_only", "_gap", "_second_only", "_walls", "_zone")

    def __init__(self, walls: WallSet, zone: Zone, *, elapsed: bool, gap: Gap, fold: Fold) -> None:
        self._walls = walls
        self._zone = zone
        self._gap = gap is Gap.RUN_AFTER and not elapsed
        self._first_only = fold is Fold.FIRST and not elapsed
        self._second_only = fold is Fold.SECOND and not elapsed

    def next_after(self, instant: int) -> int | None:
        """The first instant later than `instant`."""
        at = instant + 1 if instant >= FIRST_INSTANT else FIRST_INSTANT
        exhausted = False
        while at <= LAST_INSTANT:
            span = self._zone.span_at(at)
            start, end, offset, shown_to, shown_again, _ = span
            if at == start and self._gap and self._swallowed(span):
                return at
            low = at + offset
            if self._first_only and low < shown_to:
                low = shown_to
            wall = self._walls.next(low)
            if wall is None:  # a fold may still show an earlier reading again
                if exhausted:
                    return None
                exhausted, at = True, end
                continue
            if wall - offset < end and (wall < shown_again or not self._second_only):
                return wall - offset if wall - offset <= LAST_INSTANT else None
            at = end
            if wall - _MARGIN_S > end and end - low + offset > _MARGIN_S:
                at = wall - _MARGIN_S
        return None

    def previous_before(self, instant: int) -> int | None:
        """The last instant earlier than `instant`."""
        at = instant - 1 if instant <= LAST_INSTANT else LAST_INSTANT
        exhausted = False
        while at >= FIRST_INSTANT:
            span = self._zone.span_at(at)
            start, _, offset, shown_to, shown_again, _ = span
            high = at + offset
            if self._second_only and high >= shown_again:
                high = shown_again - 1
            wall = self._walls.last(high)
            if wall is not None and wall - offset >= start and (wall >= shown_to or not self._first_only):
                return wall - offset if wall - offset >= FIRST_INSTANT else None
            if self._gap and self._swallowed(span):
                return start
            at = start - 1
            if wall is None:
                if exhausted:
                    return None
                exhausted = True
            elif wall + _MARGIN_S < at and high - offset - start > _MARGIN_S:
                at = wall + _MARGIN_S
        return None

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`."""
        at, end, found = max(low, FIRST_INSTANT), min(high, LAST_INSTANT + 1), 0
        while at < end:
            span = self._zone.span_at(at)
            first, last = at + span.offset, min(end, span.end) + span.offset
            if self._first_only:
                first = max(first, span.shown_to)
            if self._second_only:
                last = min(last, span.shown_again)
            found += self._walls.count(first, last)
            if at == span.start and self._gap and self._swallowed(span) and self._walls.count(first, first + 1) == 0:
                found += 1
            at = span.end
        return found

    def _swallowed(self, span: Span) -> bool:
        """Whether the gap before the span, if there is one, holds a reading that the job names."""
        shown = span.start + span.offset
        if shown == span.gap_from or shown - span.gap_from > LONGEST_GAP_S:
            return False
        wall = self._walls.next(span.gap_from)
        return wall is not None and wall < shown
