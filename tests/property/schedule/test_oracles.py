"""In UTC the engine agrees with cronsim and, outside its known faults, with croniter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import given

from dueline.scheduler.core.schedule import compile_schedule
from tests.property.schedule.amount import examples
from tests.property.schedule.strategies import INSTANTS, CronCase, FieldCase, cron_cases

pytestmark = pytest.mark.timeout(600)  # 10,000 examples in CI, on a machine that others use too

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SOME = 4


def ours(case: CronCase, at: int) -> list[int]:
    return list(islice(compile_schedule(case.text, job_id="oracle").between(at + 1, at + 10**12), SOME))


def moment(at: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at)


def as_ms(found: datetime) -> int:
    return (found - EPOCH) // timedelta(milliseconds=1)


@examples()
@given(case=cron_cases(), at=INSTANTS)
def test_equal_to_cronsim_in_utc(case: CronCase, at: int) -> None:
    if "/" in case.weekday.text or any(map(cronsim_errs, case.fields)):  # it lets N/step run to 7 and so adds Sunday
        return
    theirs = CronSim(case.text, moment(at))
    assert ours(case, at) == [as_ms(next(theirs)) for _ in range(SOME)]


@examples()
@given(case=cron_cases(), at=INSTANTS)
def test_equal_to_croniter_in_utc(case: CronCase, at: int) -> None:
    if any(map(croniter_errs, case.fields)):
        return
    theirs = croniter(case.text, moment(at), implement_cron_bug=True)
    assert ours(case, at) == [as_ms(theirs.get_next(datetime)) for _ in range(SOME)]


def cronsim_errs(field: FieldCase) -> bool:
    """It takes an equal range with a step, `1-1/3`, for `1/3`."""
    return any("/" in item and equal_range(item) for item in field.text.split(","))


def equal_range(item: str) -> bool:
    first, dash, last = item.partition("/")[0].partition("-")
    return bool(dash) and first == last


def croniter_errs(field: FieldCase) -> bool:
    """Known faults of croniter 7: equal ranges are the whole field, a step over the field is refused, and a star or all
    values later in a list change which day field counts as restricted."""
    items = field.text.split(",")
    steps = [int(item.partition("/")[2]) for item in items if "/" in item]
    return any(map(equal_range, items)) or (len(items) > 1 and "*" in field.text) or any(step > 6 for step in steps)
