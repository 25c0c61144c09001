"""The n-th number of an ordered set that can only be counted: found by doubling, then halving."""

from __future__ import annotations

from collections.abc import Callable

from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, ERA_DAYS

HORIZON_S = ERA_DAYS * DAY_S
"""400 years; farther ahead nobody counts, and counting stays under the limit on work."""


def nth_from(
    first: int, wanted: int, *, count: Callable[[int, int], int], ended: Callable[[int], bool], key: str
) -> int | None:
    """The `wanted`-th number from `first` on; None where there are fewer. `count(low, high)` counts low <= n < high,
    `ended(low)` says whether none is left from low on. Raises ScheduleError, which names `key`, beyond 400 years."""
    low, step, found = first, DAY_S, 0
    while True:
        high = min(low + step, first + HORIZON_S)
        more = count(low, high)
        if found + more >= wanted:
            break
        if ended(high):
            return None
        if high == first + HORIZON_S:
            raise ScheduleError(f"{key}: as many do not come within 400 years; leave it out")
        found, low, step = found + more, high, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        more = count(low, middle)
        if found + more >= wanted:
            high = middle
        else:
            found, low = found + more, middle
    return low
