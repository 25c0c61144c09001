"""The demo's week: a day is some real seconds, and every day the menu is due at 06:00."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum


class Day(IntEnum):
    """The mornings of the story."""

    SUNDAY = 0
    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4

    @property
    def title(self) -> str:
        """`Sunday`."""
        return self.name.capitalize()


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """When each morning's 06:00 is in real time. Milliseconds since the epoch; a day in whole seconds."""

    sunday_ms: int
    day_s: int

    def due_ms(self, day: Day) -> int:
        """06:00 of the day."""
        return self.sunday_ms + day * self.day_s * 1000

    def day_of(self, due_ms: int) -> Day:
        """The day whose 06:00 this is. Raises ValueError for another instant."""
        return Day((due_ms - self.sunday_ms) // (self.day_s * 1000))

    def instant(self, day: Day) -> str:
        """06:00 of the day as job files have it: `2026-11-30T05:58:00Z`."""
        return datetime.fromtimestamp(self.due_ms(day) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def days(self) -> list[Day]:
        """All mornings, in order."""
        return list(Day)
