"""Every k months from an anchor, clamped to the month's end: 31 January, 28 February, 31 March.

Each occurrence is counted from the anchor, never from the last result, so the 31st returns.
"""

from __future__ import annotations

from dueline.scheduler.core.schedule.months import DAY_S, FIRST_WALL, LAST_WALL, first_day, length_of, month_of


class Monthly:
    """Readings k x `months` after the reading `anchor`, k = 0, 1, 2 ..."""

    __slots__ = ("_anchor", "_day", "_month", "_months", "_time")

    def __init__(self, *, anchor: int, months: int) -> None:
        self._anchor = anchor
        self._months = months
        day, self._time = divmod(anchor, DAY_S)
        self._month, self._day = month_of(day)

    def next(self, wall: int) -> int | None:
        """The first reading that is `wall` or later."""
        found = self._reading(self._steps_from(max(wall, self._anchor)))
        return found if found <= LAST_WALL else None

    def last(self, wall: int) -> int | None:
        """The last reading that is `wall` or earlier."""
        if wall < self._anchor:
            return None
        return self._reading(self._steps_from(min(wall, LAST_WALL) + 1) - 1)

    def count(self, low: int, high: int) -> int:
        """How many readings lie in `low` <= reading < `high`."""
        low, high = max(low, self._anchor), min(high, LAST_WALL + 1)
        return max(0, self._steps_from(high) - self._steps_from(low)) if high > low else 0

    def _steps_from(self, wall: int) -> int:
        """The number of the first occurrence that is `wall` or later (`wall` not before the anchor)."""
        month, _ = month_of(max(wall, FIRST_WALL) // DAY_S)
        steps = (month - self._month) // self._months
        return steps if self._reading(steps) >= wall else steps + 1

    def _reading(self, steps: int) -> int:
        month = self._month + steps * self._months
        return (first_day(month) + min(self._day, length_of(month) - 1)) * DAY_S + self._time
