"""Wildcard jobs follow elapsed time across every change of the clocks of every zone, 2020 to 2037."""

from __future__ import annotations

import importlib.resources
import itertools
from datetime import UTC, datetime

import pytest

from dueline.scheduler.core.schedule import compile_schedule
from dueline.scheduler.core.schedule.zone import Span, load_zone
from dueline.scheduler.core.schedule.zone_file import zone_names

FIRST = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
LAST = int(datetime(2038, 1, 1, tzinfo=UTC).timestamp())


def changes(zone: str) -> list[Span]:
    """The spans that start in the years looked at."""
    span, found = load_zone(zone).span_at(FIRST), list[Span]()
    while span.end < LAST:
        span = load_zone(zone).span_at(span.end)
        found.append(span)
    return found


def distinct_zones() -> list[str]:
    """One name for each distinct zone file that has a change in these years: links hold the same bytes."""
    seen: dict[bytes, str] = {}
    for name in sorted(zone_names()):
        data = importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        seen.setdefault(data, name)
    return [name for name in sorted(seen.values()) if changes(name)]


def test_there_is_much_to_look_at() -> None:
    zones = distinct_zones()
    assert len(zones) > 100
    assert sum(len(changes(zone)) for zone in zones) > 3_000


@pytest.mark.parametrize(("text", "step_s"), [("* * * * *", 60), ("*/5 * * * *", 300), ("*/15 * * * *", 900)])
def test_wildcard_jobs_follow_elapsed_time(text: str, step_s: int) -> None:
    for zone in distinct_zones():
        schedule = compile_schedule({"cron": text, "tz": zone}, job_id="elapsed")
        for span in changes(zone):
            low, high = (span.start - 7_200) * 1_000, (span.start + 7_200) * 1_000
            dues = list(schedule.between(low, high))
            assert {later - earlier for earlier, later in itertools.pairwise(dues)} == {step_s * 1_000}, zone
            assert schedule.count_between(low, high) == len(dues) == 14_400 // step_s


def test_a_wildcard_job_is_never_off_its_grid() -> None:
    for zone in distinct_zones():
        schedule = compile_schedule({"cron": "*/20 1-3 * * *", "tz": zone}, job_id="elapsed")
        for span in changes(zone):
            for due in schedule.between((span.start - 14_400) * 1_000, (span.start + 14_400) * 1_000):
                wall = due // 1_000 + load_zone(zone).offset_at(due // 1_000)
                assert wall % 1_200 == 0, zone
                assert 1 <= wall // 3_600 % 24 <= 3, zone
