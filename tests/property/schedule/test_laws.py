"""Laws that hold for every schedule, zone and instant."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given

from dueline.scheduler.core.schedule import Schedule, compile_schedule
from dueline.scheduler.core.schedule.zone import load_zone
from tests.property.schedule.amount import examples
from tests.property.schedule.strategies import INSTANTS, ZONES, CronCase, cron_cases, zone_info

pytestmark = pytest.mark.timeout(600)  # 10,000 examples in CI, on a machine that others use too

LONGEST_GAP_S = 3 * 3_600


@examples()
@given(case=cron_cases(), zone=ZONES, at=INSTANTS)
def test_next_and_previous_are_strict_agree_and_match(case: CronCase, zone: str, at: int) -> None:
    schedule = compile_schedule({"cron": case.text, "tz": zone}, job_id="law")
    due = schedule.next_after(at)
    before = schedule.previous_before(at)
    assert due is not None
    assert before is not None
    assert before < at < due
    assert before % 1_000 == due % 1_000 == 0
    assert schedule.next_after(before) == (at if is_due(schedule, at) else due)
    assert schedule.previous_before(due) == (at if is_due(schedule, at) else before)
    later = schedule.next_after(due)
    assert later is not None
    assert later > due
    assert list(islice(schedule.between(at, later), 3)) == [*([at] if is_due(schedule, at) else []), due]
    assert schedule.count_between(before, later + 1) == 3 + is_due(schedule, at)
    assert explained(case, zone, due)
    assert explained(case, zone, before)


def is_due(schedule: Schedule, at: int) -> bool:
    return schedule.next_after(at - 1) == at


def explained(case: CronCase, zone: str, due: int) -> bool:
    """The fields name the local reading, or the gap rule makes it the instant after a gap that holds such a reading."""
    local = datetime.fromtimestamp(due / 1_000, zone_info(zone))
    if case.matches(local) and (case.elapsed or not local.fold):
        return local.second == 0
    span = load_zone(zone).span_at(due // 1_000)
    missing = span.start + span.offset - span.gap_from
    assert not case.elapsed, "a wildcard job is never due at a reading it does not name"
    assert due == span.start * 1_000, "off the grid only right after a gap"
    assert 0 < missing <= LONGEST_GAP_S
    shown = local.replace(tzinfo=None)
    return any(case.matches(shown - timedelta(minutes=back)) for back in range(1, missing // 60 + 1))


@examples(share=0.3)
@given(case=cron_cases(), zone=ZONES, at=INSTANTS)
def test_counting_is_walking(case: CronCase, zone: str, at: int) -> None:
    schedule = compile_schedule({"cron": case.text, "tz": zone}, job_id="law")
    walked = list(islice(schedule.between(at, at + 400 * 86_400_000), 60))
    end = walked[-1] + 1 if walked else at + 400 * 86_400_000
    assert schedule.count_between(at, end) == len(walked)
    back, found = list[int](), schedule.previous_before(end)
    while found is not None and found >= at:
        back.append(found)
        found = schedule.previous_before(found)
    assert back[::-1] == walked
    assert walked == sorted(set(walked))
