"""Against a reference that knows no arithmetic: every minute around a change of the clocks is looked at, one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.scheduler.core.schedule import compile_schedule
from dueline.scheduler.core.schedule.zone import load_zone
from tests.property.schedule.amount import examples
from tests.property.schedule.strategies import FIRST, INSTANTS, ZONES, CronCase, cron_cases, zone_info

pytestmark = pytest.mark.timeout(600)  # 10,000 examples in CI, on a machine that others use too

MINUTE_MS = 60_000
LONGEST_GAP = timedelta(hours=3)
HOURS_AROUND = 8


def reference(case: CronCase, zone: str, gap: str, fold: str, low: int, high: int) -> list[int]:
    """The due times in `low` <= t < `high` (whole minutes) by looking at every minute."""
    info, found = zone_info(zone), list[int]()
    before = datetime.fromtimestamp(low / 1_000 - 60, info).utcoffset()
    for at in range(low, high, MINUTE_MS):
        local = datetime.fromtimestamp(at / 1_000, info)
        offset, shown = local.utcoffset(), local.replace(tzinfo=None, fold=0)
        assert offset is not None
        assert before is not None
        due = case.matches(shown) and (case.elapsed or in_pass(local, fold))
        jump = offset - before
        if not case.elapsed and gap == "run_after" and timedelta(0) < jump <= LONGEST_GAP:
            missing = (shown - timedelta(minutes=back) for back in range(1, jump // timedelta(minutes=1) + 1))
            due = due or any(case.matches(each) for each in missing)
        if due:
            found.append(at)
        before = offset
    return found


def in_pass(local: datetime, fold: str) -> bool:
    """Whether a fixed-time job with this fold rule counts this showing of the reading."""
    if fold == "both":
        return True
    first, second = (local.replace(fold=number).astimezone(UTC) for number in (0, 1))
    twice = first.astimezone(local.tzinfo).replace(tzinfo=None) == second.astimezone(local.tzinfo).replace(tzinfo=None)
    return not (twice and first != second) or local.fold == (0 if fold == "first" else 1)


@examples(share=0.1)
@given(
    case=cron_cases(),
    zone=ZONES,
    near=INSTANTS,
    gap=st.sampled_from(("run_after", "skip")),
    fold=st.sampled_from(("first", "second", "both")),
)
def test_every_minute_around_a_change_of_the_clocks(case: CronCase, zone: str, near: int, gap: str, fold: str) -> None:
    span = load_zone(zone).span_at(near // 1_000)
    change = span.start if span.start * 1_000 > FIRST else near // 1_000
    low = (change // 60 - HOURS_AROUND * 60) * MINUTE_MS
    high = low + 2 * HOURS_AROUND * 60 * MINUTE_MS
    spec = {"cron": case.text, "tz": zone} if case.elapsed else {"cron": case.text, "tz": zone, "gap": gap, "fold": fold}
    schedule = compile_schedule(spec, job_id="reference")
    expected = reference(case, zone, gap, fold, low, high)
    assert list(schedule.between(low, high)) == expected
    assert schedule.count_between(low, high) == len(expected)
