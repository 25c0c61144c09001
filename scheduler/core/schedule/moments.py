"""A handful of given moments: a one-shot `at`, the extra dates of a rule. As instants or as local readings."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class Moments:
    """A sorted set of given numbers; as a Timeline they are instants, as a WallSet local readings."""

    __slots__ = ("_sorted",)

    def __init__(self, given: Iterable[int]) -> None:
        self._sorted = tuple(sorted(set(given)))

    def next_after(self, instant: int) -> int | None:
        """The first one later than `instant`."""
        index = bisect_right(self._sorted, instant)
        return self._sorted[index] if index < len(self._sorted) else None

    def previous_before(self, instant: int) -> int | None:
        """The last one earlier than `instant`."""
        index = bisect_left(self._sorted, instant)
        return self._sorted[index - 1] if index else None

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`."""
        return max(0, bisect_left(self._sorted, high) - bisect_left(self._sorted, low))

    def next(self, wall: int) -> int | None:
        """The first one that is `wall` or later."""
        return self.next_after(wall - 1)

    def last(self, wall: int) -> int | None:
        """The last one that is `wall` or earlier."""
        return self.previous_before(wall + 1)

    def count(self, low: int, high: int) -> int:
        """How many lie in `low` <= wall < `high`."""
        return self.count_between(low, high)
