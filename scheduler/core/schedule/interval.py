"""A fixed interval: anchor + k x period, k = 0, 1, 2 ..., in elapsed time. No zone, no clock change, no drift."""

from __future__ import annotations

from dueline.scheduler.core.schedule.timeline import LAST_INSTANT


class Interval:
    """Every `period` seconds from `anchor` (an instant in seconds) on; the anchor is the first due time."""

    __slots__ = ("_anchor", "_period")

    def __init__(self, *, anchor: int, period: int) -> None:
        self._anchor = anchor
        self._period = period

    def next_after(self, instant: int) -> int | None:
        """The first instant later than `instant`."""
        found = self._anchor + max(0, (instant - self._anchor) // self._period + 1) * self._period
        return found if found <= LAST_INSTANT else None

    def previous_before(self, instant: int) -> int | None:
        """The last instant earlier than `instant`."""
        steps = (min(instant, LAST_INSTANT + 1) - self._anchor - 1) // self._period
        return self._anchor + steps * self._period if steps >= 0 else None

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`."""
        return max(0, self._below(min(high, LAST_INSTANT + 1)) - self._below(low))

    def _below(self, instant: int) -> int:
        return max(0, -((self._anchor - instant) // self._period))
