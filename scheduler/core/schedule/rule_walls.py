"""The readings of a recurrence rule: days crossed with times where that is all there is to it, else one of two walks
with a step budget: positions within a period (BYSETPOS), or hours, minutes and seconds with an INTERVAL."""

from __future__ import annotations

from dueline.scheduler.core.schedule.day_times import DayTimes, TimesOfDay
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, LAST_WALL
from dueline.scheduler.core.schedule.nth import nth_from
from dueline.scheduler.core.schedule.rule import Frequency, Rule
from dueline.scheduler.core.schedule.rule_days import RuleDays
from dueline.scheduler.core.schedule.rule_positions import Positioned
from dueline.scheduler.core.schedule.rule_progression import Progression
from dueline.scheduler.core.schedule.timeline import WallSet

MOST_WALKED = 2_000
"""The highest COUNT of a rule whose occurrences have to be walked to be counted."""


def walls_of(rule: Rule, begin: int) -> WallSet:
    """The readings of a rule that starts at the reading `begin`, COUNT included; UNTIL is an instant and not here."""
    days = RuleDays(rule, begin)
    times = _times_of(rule, begin)
    walls: WallSet
    if rule.positions:
        walls = Positioned(rule, days, times)
    elif rule.frequency > Frequency.DAILY and rule.interval > 1:
        walls = Progression(rule, begin, days, times)
    else:
        walls = DayTimes(days, times)
    bounded = WallsFrom(walls, begin)
    if rule.occurrences is None:
        return bounded
    return WallsFrom(walls, begin, _last_of(bounded, walls, begin, rule.occurrences))


def _last_of(bounded: WallSet, walls: WallSet, begin: int, count: int) -> int:
    """The reading of the `count`-th occurrence."""
    if isinstance(walls, DayTimes) or (isinstance(walls, Progression) and walls.plain):
        found = nth_from(
            begin, count, count=bounded.count, ended=lambda wall: bounded.next(wall) is None, key="rrule: COUNT"
        )
        return LAST_WALL if found is None else found
    if count > MOST_WALKED:
        raise ScheduleError(
            f"rrule: COUNT is at most {MOST_WALKED} with BYSETPOS or INTERVAL; use UNTIL or the key end"
        )
    last, reading = LAST_WALL, bounded.next(begin)
    for _ in range(count):
        if reading is None:
            return LAST_WALL
        last, reading = reading, bounded.next(reading + 1)
    return last


def _times_of(rule: Rule, begin: int) -> TimesOfDay:
    """The times of day: what is not given is that of the start, or everything where the rule steps finer."""
    time = begin % DAY_S

    def mask(given: tuple[int, ...], own: int, size: int, finest: Frequency) -> int:
        if given:
            return sum(1 << value for value in given)
        return (1 << size) - 1 if rule.frequency >= finest else 1 << own

    return TimesOfDay(
        hours=mask(rule.hours, time // 3_600, 24, Frequency.HOURLY),
        minutes=mask(rule.minutes, time // 60 % 60, 60, Frequency.MINUTELY),
        seconds=mask(rule.seconds, time % 60, 60, Frequency.SECONDLY),
    )


class WallsFrom:
    """The readings of `inner` from `first` to `last`."""

    __slots__ = ("_first", "_inner", "_last")

    def __init__(self, inner: WallSet, first: int, last: int = LAST_WALL) -> None:
        self._inner = inner
        self._first = first
        self._last = last

    def next(self, wall: int) -> int | None:
        """The first reading that is `wall` or later."""
        found = self._inner.next(max(wall, self._first))
        return found if found is not None and found <= self._last else None

    def last(self, wall: int) -> int | None:
        """The last reading that is `wall` or earlier."""
        if wall < self._first:
            return None
        found = self._inner.last(min(wall, self._last))
        return found if found is not None and found >= self._first else None

    def count(self, low: int, high: int) -> int:
        """How many readings lie in `low` <= reading < `high`."""
        low, high = max(low, self._first), min(high, self._last + 1)
        return self._inner.count(low, high) if low < high else 0
