"""What every kind of schedule is underneath: an ordered set of instants that can be asked from both sides.

Instants are whole seconds since the epoch in UTC. Nothing is walked that arithmetic can jump over.
"""

from __future__ import annotations

from typing import Protocol

from dueline.scheduler.core.schedule.months import FIRST_WALL, LAST_WALL

FIRST_INSTANT = FIRST_WALL
LAST_INSTANT = LAST_WALL
"""The ends of the calendar, years 1 to 9999 in UTC; no due time lies outside."""


class Timeline(Protocol):
    """An ordered set of instants."""

    def next_after(self, instant: int) -> int | None:
        """The first one later than `instant`; None: none ever."""

    def previous_before(self, instant: int) -> int | None:
        """The last one earlier than `instant`; None: none ever."""

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`."""


class WallSet(Protocol):
    """An ordered set of local readings ("walls"), the same shape without a zone."""

    def next(self, wall: int) -> int | None:
        """The first one that is `wall` or later."""

    def last(self, wall: int) -> int | None:
        """The last one that is `wall` or earlier."""

    def count(self, low: int, high: int) -> int:
        """How many lie in `low` <= wall < `high`."""
