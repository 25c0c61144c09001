"""No input takes more than 50 ms of processor time or 10 MB, accepted or refused, and no question about it does."""

from __future__ import annotations

import contextlib
import time
import tracemalloc

import pytest

from dueline.scheduler.core.schedule import ScheduleError, compile_schedule
from dueline.scheduler.core.schedule.compile import forget_compiled

MOST_MS, MOST_BYTES = 50.0, 10_000_000
START = "2026-01-01T00:00"
MANY_DAYS = [f"20{number // 28 + 10}-01-{number % 28 + 1:02}" for number in range(1_000)]
HEAVY: dict[str, object] = {
    "a megabyte of minutes": "0-59," * 200_000 + "0 * * * *",
    "a megabyte of digits": "*/" + "1" * 1_000_000 + " * * * *",
    "the longest list allowed": ",".join(["0-59"] * 49) + " * * * *",
    "a megabyte of JSON": {"cron": "x" * 1_000_000},
    "deep JSON": "[" * 60_000,
    "many schedules": ["* * * * *"] * 33,
    "as many schedules as allowed": ["* * * * *"] * 32,
    "29 February that is a Monday": "0 0 * 2 MON#5",
    "30 February as a rule": {"rrule": "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "start": START},
    "30 February every second": {"rrule": "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "start": START},
    "a step past every hour named": {"rrule": "FREQ=HOURLY;INTERVAL=7;BYHOUR=4;BYDAY=FR;BYMONTH=1", "start": START},
    "a position that never comes": {"rrule": "FREQ=YEARLY;BYMINUTE=53;BYSETPOS=2", "start": START},
    "a million of a yearly rule": {"rrule": "FREQ=YEARLY;COUNT=1000000", "start": START},
    "a million of a daily rule": {"rrule": "FREQ=DAILY;BYDAY=MO;COUNT=20000", "start": START},
    "every second named": {"rrule": "FREQ=DAILY;BYSECOND=" + ",".join(map(str, range(60))), "start": START},
    "a million runs": {"cron": "* * * * *", "tz": "America/New_York", "start": START, "max_runs": 1_000_000},
    "runs of a rare job": {"cron": "0 0 29 2 *", "tz": "America/New_York", "start": START, "max_runs": 90},
    "a calendar that closes": {"cron": "0 0 * * SAT", "calendar": {"business_days": "MON-FRI"}},
    "a calendar of one day": {"cron": "* * * * *", "calendar": {"include": "2090-01-01"}},
    "a thousand days out": {"cron": "0 9 * * *", "calendar": {"exclude": MANY_DAYS}},
    "runs between closed days": {"cron": "0 9 * * *", "start": START, "max_runs": 1000, "calendar": {"business_days": "MON"}},
    "a shift of a daily job": {"cron": "0 9 * * *", "tz": "Europe/Berlin", "calendar": {"shift": "following"}},
    "the far past": {"every": "1s", "anchor": "0001-01-01T00:00Z"},
    "a zone that is almost right": {"cron": "0 0 * * *", "tz": "Amerika/Nju_York" * 4},
    "a huge number": {"cron": "* * * * *", "start": START, "max_runs": 10**400},
}  # fmt: skip
INSTANTS = (-(10**18), -62_135_596_800_001, 0, 1_767_225_600_000, 253_402_300_799_000, 10**18)


def use(given: object) -> None:
    schedule = compile_schedule(given, job_id="heavy")  # type: ignore[arg-type]
    schedule.next_after(1_767_225_600_000)
    schedule.previous_before(1_767_225_600_000)


@pytest.mark.parametrize("name", HEAVY)
def test_no_input_is_heavy(name: str) -> None:
    fastest = float("inf")
    for _ in range(5):
        forget_compiled()
        began = time.thread_time()
        with contextlib.suppress(ScheduleError):
            use(HEAVY[name])
        fastest = min(fastest, (time.thread_time() - began) * 1_000)
    assert fastest < MOST_MS
    forget_compiled()
    tracemalloc.start()
    try:
        with contextlib.suppress(ScheduleError):
            use(HEAVY[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES


@pytest.mark.parametrize("at", INSTANTS)
@pytest.mark.parametrize(
    "spec",
    [
        {"cron": "0 0 29 2 *", "tz": "America/New_York"},
        {"cron": "30 2 * * *", "tz": "Pacific/Apia", "fold": "second"},
        {"at": "2026-12-24T18:00", "tz": "Europe/Berlin"},
        {"every": "7s"},
        {"rrule": "FREQ=MINUTELY;INTERVAL=7;BYHOUR=4;BYMONTH=1", "start": START},
        {"cron": "0 9 * * *", "calendar": {"business_days": "MON-FRI", "shift": "modified_following"}},
        {"cron": "*/5 * * * *", "tz": "Europe/Berlin", "calendar": {"business_hours": "MON-FRI 09:00-17:00"}},
    ],
)
def test_no_instant_is_heavy_and_none_is_out_of_range(spec: dict[str, object], at: int) -> None:
    schedule, fastest = compile_schedule(spec, job_id="heavy"), float("inf")
    for _ in range(5):
        began = time.thread_time()
        schedule.next_after(at)
        schedule.previous_before(at)
        fastest = min(fastest, (time.thread_time() - began) * 1_000)
    due, before = schedule.next_after(at), schedule.previous_before(at)
    assert due is None or due > at
    assert before is None or before < at
    assert fastest < MOST_MS
