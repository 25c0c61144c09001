"""Rules that step by hours, minutes or seconds with an INTERVAL: a walk with a step budget, each step a jump."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import gcd

from dueline.scheduler.core.schedule.day_times import TimesOfDay, bits, has_day, last_day, next_day
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S, FIRST_WALL, LAST_WALL
from dueline.scheduler.core.schedule.rule import Frequency, Rule
from dueline.scheduler.core.schedule.rule_days import RuleDays

MOST_STEPS = 2_000
"""Steps of a walk before a rule counts as never firing again: some 20 ms. Each jumps as far as the BY parts allow."""

_UNIT_S = {Frequency.HOURLY: 3_600, Frequency.MINUTELY: 60, Frequency.SECONDLY: 1}


class Progression:
    """FREQ=HOURLY, MINUTELY or SECONDLY with an INTERVAL: every n-th unit from the start, where the BY parts allow it."""

    __slots__ = ("_begin", "_days", "_step", "_times", "_unit", "_within", "plain")

    def __init__(self, rule: Rule, begin: int, days: RuleDays, times: TimesOfDay) -> None:
        self._unit = _UNIT_S[rule.frequency]
        self._step = rule.interval * self._unit
        self._begin = begin - begin % self._unit
        self._days = days
        self._times = times
        self._within = _within_unit(times, self._unit)
        self.plain = days.daily and times.per_day == DAY_S // self._unit * len(self._within)
        if not self._can_match():
            raise ScheduleError("rrule: this never fires: INTERVAL steps over every time that the BY parts name")

    def next(self, wall: int) -> int | None:
        """The first reading that is `wall` or later."""
        unit = self._unit_from(wall - wall % self._unit)
        for _ in range(MOST_STEPS):
            if unit > LAST_WALL:
                return None
            allowed = self._allowed_from(unit)
            if allowed == unit:
                index = bisect_left(self._within, wall - unit)
                if index < len(self._within):
                    return unit + self._within[index]
                unit += self._step
            elif allowed is None:
                return None
            else:
                unit = self._unit_from(allowed)
        return None

    def last(self, wall: int) -> int | None:
        """The last reading that is `wall` or earlier."""
        unit = self._unit_to(wall)
        for _ in range(MOST_STEPS):
            if unit < FIRST_WALL:
                return None
            allowed = self._allowed_to(unit)
            if allowed == unit:
                index = bisect_right(self._within, wall - unit)
                if index:
                    return unit + self._within[index - 1]
                unit -= self._step
            elif allowed is None:
                return None
            else:
                unit = self._unit_to(allowed)
        return None

    def count(self, low: int, high: int) -> int:
        """How many readings lie in `low` <= reading < `high`; arithmetic where no BY part takes units away."""
        if self.plain and len(self._within) == 1:
            offset = self._begin + self._within[0]
            return max(0, -((offset - high) // self._step) + (offset - low) // self._step)
        found, reading = 0, self.next(low)
        while reading is not None and reading < high:
            found += 1
            reading = self.next(reading + 1)
        return found

    def _unit_from(self, wall: int) -> int:
        return wall + (self._begin - wall) % self._step

    def _unit_to(self, wall: int) -> int:
        return wall - (wall - self._begin) % self._step

    def _allowed_from(self, unit: int) -> int | None:
        """`unit` if the BY parts allow it, else the first later start of a unit that they might allow."""
        day, time = divmod(unit, DAY_S)
        if not has_day(self._days, day):
            following = next_day(self._days, day + 1)
            return None if following is None else following * DAY_S
        if self._allows(time):
            return unit
        latest = self._times.last - self._times.last % self._unit
        if time > latest:
            return (day + 1) * DAY_S
        found = self._times.at_or_after(time)
        return day * DAY_S + max(found - found % self._unit, time + 1)

    def _allowed_to(self, unit: int) -> int | None:
        day, time = divmod(unit, DAY_S)
        if not has_day(self._days, day):
            preceding = last_day(self._days, day - 1)
            return None if preceding is None else (preceding + 1) * DAY_S - 1
        if self._allows(time):
            return unit
        if time < self._times.first:
            return day * DAY_S - 1
        return day * DAY_S + min(self._times.at_or_before(time), time - 1)

    def _allows(self, time: int) -> bool:
        """Whether the unit that starts at a time of day is one of those named."""
        if not self._times.hours >> time // 3_600 & 1:
            return False
        if self._unit < 3_600 and not self._times.minutes >> time // 60 % 60 & 1:
            return False
        return self._unit > 1 or bool(self._times.seconds >> time % 60 & 1)

    def _can_match(self) -> bool:
        stride = gcd(self._step, DAY_S)
        return stride == self._unit or any(self._allows(time) for time in range(self._begin % stride, DAY_S, stride))


def _within_unit(times: TimesOfDay, unit: int) -> list[int]:
    """Where in its hour, minute or second a reading lies."""
    if unit == 1:
        return [0]
    seconds = bits(times.seconds)
    if unit == 60:
        return seconds
    return [minute * 60 + second for minute in bits(times.minutes) for second in seconds]
