"""The checker's own due times, held against two others: the product's engine and croniter."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from croniter import croniter

from dueline.scheduler.core.schedule import compile_schedule
from proof.checker.jitter import offset_ms
from proof.checker.schedule import schedule

DAY_MS = 86_400_000
SPRING = round(datetime(2026, 3, 27, tzinfo=UTC).timestamp() * 1000)
AUTUMN = round(datetime(2026, 10, 23, tzinfo=UTC).timestamp() * 1000)

KNOWN: list[object] = [
    "*/5 * * * *", "0 6 * * *", "30 2 * * 1-5", "0 0 1 * *", "15,45 8-18/2 * jan,mar,oct *", "0 0 13 * fri", "0 0 */2 * sat",
    "5/15 3 * * 7", "@hourly", "@weekly",
    {"cron": "*/20 * * * * *", "dialect": "seconds"}, {"cron": "10 0 */6 * * *", "dialect": "seconds"},
    {"every": "90s"}, {"every": "7m", "anchor": "2026-03-28T00:00:30Z"},
    {"every": "1h", "start": "2026-03-28", "end": "2026-03-29"},
    {"at": "2026-03-28T09:00:00+02:00"}, {"at": "2026-03-29T02:30", "tz": "Europe/Berlin"},
    {"cron": "30 2 * * *", "tz": "Europe/Berlin"}, {"cron": "30 2 * * *", "tz": "Europe/Berlin", "gap": "skip", "fold": "both"},
    {"cron": "30 2 * * *", "tz": "Europe/Berlin", "fold": "second"}, {"cron": "*/15 * * * *", "tz": "Europe/Berlin"},
    {"cron": "*/30 2 * * *", "tz": "Europe/Berlin"}, {"cron": "0,30 2 * * *", "tz": "Australia/Lord_Howe"},
    [{"every": "6h"}, {"cron": "0 3 * * *"}],
]  # fmt: skip


@pytest.mark.parametrize("value", KNOWN, ids=json.dumps)
@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_agrees_with_the_engine(value: object, start: int) -> None:
    end = start + 4 * DAY_MS
    text = json.dumps(value)
    assert schedule(text).between(start, end) == list(compile_schedule(text, job_id="a").between(start, end))


@pytest.mark.parametrize("text", [value for value in KNOWN if isinstance(value, str) and value[0] != "@"])
def test_agrees_with_croniter(text: str) -> None:
    if text == "0 0 */2 * sat":
        assert schedule(json.dumps(text)).between(SPRING, SPRING + 60 * DAY_MS)  # croniter takes either day, cronie both
        return
    ticks = croniter(text, datetime.fromtimestamp(SPRING / 1000 - 1, UTC), ret_type=float)
    wanted = [round(ticks.get_next() * 1000) for _ in range(50)]
    assert schedule(json.dumps(text)).between(SPRING, wanted[-1] + 1) == wanted


SPREAD: list[object] = [
    {"every": "90s", "jitter": "10s"}, {"every": "5s", "jitter": "1h"},
    {"cron": "30 2 * * *", "jitter": "2h", "tz": "Europe/Berlin"}, [{"every": "6h", "jitter": "30m"}, {"cron": "0 3 * * *"}],
    [{"every": "6h", "jitter": "30m"}, {"every": "4h", "jitter": "9m"}],
    {"at": "2026-03-28T09:00:00+02:00", "jitter": "1m"}, {"every": "6h"},
]  # fmt: skip


@pytest.mark.parametrize("value", SPREAD, ids=json.dumps)
def test_starts_are_put_off_as_the_engine_does(value: object) -> None:
    text = json.dumps(value)
    dues, engine = schedule(text), compile_schedule(text, job_id="a-ä")
    found = [offset_ms("a-ä", dues, due) for due in dues.between(SPRING, SPRING + DAY_MS * 2)]
    assert found == [engine.start_offset(due) for due in dues.between(SPRING, SPRING + DAY_MS * 2)]
    assert any(found) == ("jitter" in text)


def test_an_instant_that_is_named_is_found_alone() -> None:
    every = schedule('{"every": "90s"}')
    assert every.between(180_000, 180_001) == [180_000]
    assert every.between(180_001, 270_000) == []


@pytest.mark.parametrize(
    "value",
    ["0 0 L * *", "0 0 * * MON#2", "H * * * *", "0 0 0 * * *", "61 * * * *", {"rrule": "FREQ=DAILY"}, {"every": "3 months"},
     {"cron": "0 0 * * *", "calendar": {}}, {"every": "1m", "max_runs": 3}, {"cron": "0 0 * * *", "tz": "Nowhere/At_all"}, 7],
    ids=json.dumps,
)  # fmt: skip
def test_what_it_does_not_understand_it_refuses(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        schedule(json.dumps(value))
