"""Recurrence rules against dateutil, on naive readings, outside two faults of dateutil.

It starts the first week of FREQ=WEEKLY;BYSETPOS at the first moment instead of at the week's start, and it miscounts the
last week of the year before (BYWEEKNO 52, 53 and from the end).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from random import Random

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from dueline.scheduler.core.schedule import ScheduleError
from dueline.scheduler.core.schedule.rule import parse_rule
from dueline.scheduler.core.schedule.rule_walls import walls_of
from dueline.scheduler.core.schedule.timeline import WallSet
from tests.property.schedule.amount import examples

pytestmark = pytest.mark.timeout(600)  # 10,000 examples in CI, on a machine that others use too

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - readings have no zone
WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
REACH = {
    "YEARLY": timedelta(days=40 * 365),
    "MONTHLY": timedelta(days=10 * 365),
    "WEEKLY": timedelta(days=3 * 365),
    "DAILY": timedelta(days=500),
    "HOURLY": timedelta(days=40),
    "MINUTELY": timedelta(days=2),
    "SECONDLY": timedelta(hours=2),
}
MOST = 60


def some(chance: Random, low: int, high: int, most: int, *, signed: bool = False) -> str:
    count = chance.randint(1, most)
    numbers = {chance.randint(low, high) * (-1 if signed and chance.random() < 0.3 else 1) for _ in range(count)}
    return ",".join(map(str, sorted(numbers)))


def rule_text(chance: Random) -> tuple[str, str]:
    """A rule and its frequency."""
    frequency = chance.choice(list(REACH))
    parts = [f"FREQ={frequency}"]
    likely = chance.random
    if likely() < 0.5:
        parts.append(f"INTERVAL={chance.choice((1, 2, 3, 4, 5, 7, 12, 13))}")
    if likely() < 0.3:
        parts.append("BYMONTH=" + some(chance, 1, 12, 4))
    by_week = frequency == "YEARLY" and likely() < 0.2
    if by_week:
        parts.append("BYWEEKNO=" + some(chance, 2, 51, 4))
    elif frequency not in ("MONTHLY", "WEEKLY", "DAILY") and likely() < 0.15:
        parts.append("BYYEARDAY=" + some(chance, 1, 366, 5, signed=True))
    if frequency != "WEEKLY" and likely() < 0.25:
        parts.append("BYMONTHDAY=" + some(chance, 1, 31, 5, signed=True))
    if likely() < 0.35:
        numbered = frequency in ("YEARLY", "MONTHLY") and not by_week and likely() < 0.5
        prefixes = ("1", "2", "-1", "+3", "5", "-5") if numbered else ("",)
        parts.append("BYDAY=" + ",".join(sorted({chance.choice(prefixes) + chance.choice(WEEKDAYS) for _ in range(3)})))
    for name, high in (("BYHOUR", 23), ("BYMINUTE", 59), ("BYSECOND", 59)):
        if likely() < 0.3:
            parts.append(f"{name}=" + some(chance, 0, high, 3))
    if frequency in ("YEARLY", "MONTHLY", "DAILY") and any(part.startswith("BY") for part in parts) and likely() < 0.25:
        parts.append("BYSETPOS=" + some(chance, 1, 6, 2, signed=True))
    if likely() < 0.3:
        parts.append("WKST=" + chance.choice(WEEKDAYS))
    if likely() < 0.3:
        parts.append(f"COUNT={chance.randint(1, 30)}")
    chance.shuffle(parts)
    return ";".join(parts), frequency


@examples(share=0.2)
@given(seed=st.integers(0, 1 << 48))
def test_rules_give_what_dateutil_gives(seed: int) -> None:
    chance = Random(seed)
    text, frequency = rule_text(chance)
    begin = datetime(1990, 1, 1) + timedelta(seconds=chance.randrange(50 * 365 * 86_400))  # noqa: DTZ001
    first = (begin - EPOCH) // timedelta(seconds=1)
    walls = read(text, first)
    if walls is None:
        return
    readings = forward(walls, first, begin + REACH[frequency])
    if not readings:  # dateutil would walk to the year 9999 to agree
        return
    theirs = list(islice(rrulestr(text, dtstart=begin), len(readings)))
    assert [EPOCH + timedelta(seconds=wall) for wall in readings] == theirs, text
    check_backward(walls, readings)


def read(text: str, first: int) -> WallSet | None:
    """None for a rule that never fires, which is refused."""
    refusal = None
    try:
        return walls_of(parse_rule(text), first)
    except ScheduleError as error:
        refusal = error
    assert "never fires" in refusal.message, text
    return None


def forward(walls: WallSet, first: int, until: datetime) -> list[int]:
    found, wall = list[int](), first
    while len(found) < MOST:
        following = walls.next(wall)
        if following is None or EPOCH + timedelta(seconds=following) > until:
            break
        found.append(following)
        wall = following + 1
    return found


def check_backward(walls: WallSet, readings: list[int]) -> None:
    back, wall = list[int](), readings[-1]
    while len(back) < len(readings):
        found = walls.last(wall)
        if found is None:
            break
        back.append(found)
        wall = found - 1
    assert back[::-1] == readings
    assert walls.last(readings[0] - 1) is None
    assert walls.count(readings[0], readings[-1] + 1) == len(readings)
