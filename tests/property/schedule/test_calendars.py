"""Calendars and shifts against filters and moves that look at every due time, one by one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.scheduler.core.schedule import Schedule, ScheduleError, compile_schedule
from dueline.scheduler.core.schedule.business_hours import parse_windows
from dueline.scheduler.core.schedule.months import DAY_S, date_of, weekday_of
from dueline.scheduler.core.schedule.zone import load_zone
from tests.property.schedule.amount import examples

pytestmark = pytest.mark.timeout(600)  # 10,000 examples in CI, on a machine that others use too

DAY_MS = DAY_S * 1_000
WEEKDAYS = {"MON-FRI": range(1, 6), "TUE,THU,SAT": (2, 4, 6), "SUN-THU": range(5), None: range(7)}
EXCLUDES = {
    "2026-03-08": lambda day: date_of(day) == (2026, 3, 8),
    "2026-03-05..2026-03-12": lambda day: (2026, 3, 5) <= date_of(day) <= (2026, 3, 12),
    "12-24..01-02": lambda day: date_of(day)[1:] >= (12, 24) or date_of(day)[1:] <= (1, 2),
    "11-01": lambda day: date_of(day)[1:] == (11, 1),
    "2026-10-25": lambda day: date_of(day) == (2026, 10, 25),
}
HOURS = ("MON-FRI 09:00-17:30", "SAT,SUN 22:00-03:00", "01:00-02:30", "TUE 00:00-24:00", "MON-FRI 00:30-12:00")
CRONS = ("*/20 * * * *", "0 9 * * *", "30 1 * * *", "0 2,14 * * *", "0 0 1,15 * *", "30 2 * * 0", "0 */3 * * 6,0", "15 23 L * *")
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut")
PERIODS = ((20_500, 20_570), (20_740, 20_800))  # days from 1970: around both changes of 2026, and New Year


class Reference:
    """A calendar that knows each of its rules as a predicate."""

    def __init__(self, chance: Random) -> None:
        self.exclude = chance.sample(sorted(EXCLUDES), chance.randint(0, 2))
        self.days = chance.choice((None, None, "MON-FRI", "TUE,THU,SAT", "SUN-THU"))
        self.hours = chance.sample(HOURS, chance.choice((0, 0, 1, 2)))

    def spec(self) -> dict[str, object]:
        spec: dict[str, object] = {"exclude": self.exclude, "business_hours": self.hours}
        return spec if self.days is None else {**spec, "business_days": self.days}

    def day_counts(self, day: int) -> bool:
        excluded = any(EXCLUDES[text](day) for text in self.exclude)
        return not excluded and weekday_of(day) in WEEKDAYS[self.days]

    def counts(self, wall: int) -> bool:
        day, time = divmod(wall, DAY_S)
        windows = parse_windows(self.hours, key="hours")
        inside = not windows or any(
            each.start <= time < each.end and each.weekdays >> weekday_of(day) & 1 for each in windows
        )
        return inside and self.day_counts(day)


@examples(share=0.03)
@given(seed=st.integers(0, 1 << 48))
def test_a_calendar_takes_out_what_its_rules_say(seed: int) -> None:
    chance = Random(seed)
    calendar, zone = Reference(chance), chance.choice(ZONES)
    base: dict[str, object] = {"cron": chance.choice(CRONS), "tz": zone}
    low, high = (day * DAY_MS for day in chance.choice(PERIODS))
    schedule = compiled({**base, "calendar": calendar.spec()})
    if schedule is None:
        return
    dues = list(compile_schedule(base, job_id="calendar").between(low, high))
    kept = [due for due in dues if calendar.counts(due // 1_000 + load_zone(zone).offset_at(due // 1_000))]
    assert list(schedule.between(low, high)) == kept
    assert schedule.count_between(low, high) == len(kept)
    assert backward(schedule, low, high) == kept
    out = [due for due in dues if due not in set(kept)]
    assert [due for due, _ in schedule.excluded_between(low, high)] == out
    stretches = list(schedule.exclusions_between(low, high))
    assert sum(each.due_times for each in stretches) == len(out)
    assert [due for each in stretches for due in out if each.first <= due <= each.last] == out


def compiled(spec: dict[str, object]) -> Schedule | None:
    """None where the calendar never lets the job run, which is refused."""
    refusal = None
    try:
        return compile_schedule(spec, job_id="calendar")
    except ScheduleError as error:
        refusal = error
    assert "never fires" in refusal.message
    return None


def backward(schedule: Schedule, low: int, high: int) -> list[int]:
    found, due = list[int](), schedule.previous_before(high)
    while due is not None and due >= low:
        found.append(due)
        due = schedule.previous_before(due)
    return found[::-1]


@examples(share=0.03)
@given(seed=st.integers(0, 1 << 48))
def test_a_shift_moves_due_days_and_merges_those_that_meet(seed: int) -> None:
    chance = Random(seed)
    calendar, mode = Reference(chance), chance.choice(("following", "preceding", "modified_following"))
    calendar.hours, calendar.days = [], calendar.days or "MON-FRI"
    cron = chance.choice([text for text in CRONS if "*/" not in text])
    low, high = chance.choice(PERIODS)
    shifted = compile_schedule({"cron": cron, "calendar": {**calendar.spec(), "shift": mode}}, job_id="shift")
    base = compile_schedule(cron, job_id="shift")
    moved = set[int]()
    for due in base.between((low - 40) * DAY_MS, (high + 40) * DAY_MS):
        target = target_of(calendar, mode, due // DAY_MS)
        if target is not None:
            moved.add(target * DAY_MS + due % DAY_MS)
    expected = sorted(due for due in moved if low * DAY_MS <= due < high * DAY_MS)
    assert list(shifted.between(low * DAY_MS, high * DAY_MS)) == expected
    assert backward(shifted, low * DAY_MS, high * DAY_MS) == expected
    assert shifted.count_between(low * DAY_MS, high * DAY_MS) == len(expected)


def target_of(calendar: Reference, mode: str, day: int) -> int | None:
    if calendar.day_counts(day):
        return day
    after = next((day + far for far in range(1, 32) if calendar.day_counts(day + far)), None)
    before = next((day - far for far in range(1, 32) if calendar.day_counts(day - far)), None)
    if mode == "preceding":
        return before
    if mode == "modified_following" and (after is None or date_of(after).month != date_of(day).month):
        return before
    return after
