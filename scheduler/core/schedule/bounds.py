"""Start, end and a maximum number of runs put around a timeline."""

from __future__ import annotations

from dueline.scheduler.core.schedule.nth import nth_from
from dueline.scheduler.core.schedule.timeline import FIRST_INSTANT, LAST_INSTANT, Timeline


class Bounded:
    """The instants of `inner` from `first` to `last`, both included."""

    __slots__ = ("_first", "_inner", "_last")

    def __init__(self, inner: Timeline, *, first: int = FIRST_INSTANT, last: int = LAST_INSTANT) -> None:
        self._inner = inner
        self._first = first
        self._last = last

    def next_after(self, instant: int) -> int | None:
        """The first instant later than `instant`."""
        found = self._inner.next_after(max(instant, self._first - 1))
        return found if found is not None and found <= self._last else None

    def previous_before(self, instant: int) -> int | None:
        """The last instant earlier than `instant`."""
        found = self._inner.previous_before(min(instant, self._last + 1))
        return found if found is not None and found >= self._first else None

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`."""
        low, high = max(low, self._first), min(high, self._last + 1)
        return self._inner.count_between(low, high) if low < high else 0


def last_of(inner: Timeline, *, first: int, runs: int) -> int:
    """The instant of the `runs`-th due time from `first` on; LAST_INSTANT if there are fewer."""
    found = nth_from(
        first,
        runs,
        count=inner.count_between,
        ended=lambda instant: inner.next_after(instant - 1) is None,
        key="max_runs",
    )
    return LAST_INSTANT if found is None else found
