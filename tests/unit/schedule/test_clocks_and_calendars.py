"""Choices about changes of the clocks, calendars, jitter, H, warnings and sentences, by examples."""

from __future__ import annotations

import os
import zoneinfo
from collections import Counter
from itertools import islice

import pytest

from dueline.scheduler.core.schedule import compile_schedule, preview, tzdata_version
from dueline.scheduler.core.schedule.zone import load_zone
from tests.unit.schedule.instants import iso, ms

DAY_MS = 86_400_000


def dues(spec: object, start: str, count: int) -> list[str]:
    schedule = compile_schedule(spec, job_id="menu")  # type: ignore[arg-type]
    return [iso(due) for due in islice(schedule.between(ms(start), ms("9999-01-01T00:00:00Z")), count)]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]),
        ({"gap": "skip"}, ["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z"]),
    ],
)
def test_gap(choice: dict[str, str], expected: list[str]) -> None:
    assert dues({"cron": "30 2 * * *", "tz": "America/New_York", **choice}, "2026-03-07T05:00:00Z", 3) == expected


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        ("first", ["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        ("second", ["2026-10-31T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"]),
        ("both", ["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]),
    ],
)
def test_fold(fold: str, expected: list[str]) -> None:
    spec = {"cron": "30 1 * * *", "tz": "America/New_York", "fold": fold}
    assert dues(spec, "2026-10-31T00:00:00Z", 3) == expected


def test_a_day_struck_from_the_calendar_is_skipped_whatever_gap_says() -> None:
    for gap in ("run_after", "skip"):
        spec = {"cron": "30 2 * * *", "tz": "Pacific/Apia", "gap": gap}
        assert dues(spec, "2011-12-29T00:00:00Z", 3) == [f"2011-12-{day}T12:30:00Z" for day in (29, 30, 31)]


def test_the_preview_says_what_the_clocks_do() -> None:
    schedule = compile_schedule({"cron": "30 2 * * *", "tz": "America/New_York"}, job_id="menu")
    rows = preview(schedule, start=ms("2026-03-07T05:00:00Z"), count=3, zone=load_zone("America/New_York"))
    assert [(row.utc, row.local) for row in rows] == [
        ("2026-03-07T07:30:00Z", "Sat 2026-03-07 02:30 -05:00"),
        ("2026-03-08T07:00:00Z", "Sun 2026-03-08 03:00 -04:00"),
        ("2026-03-09T06:30:00Z", "Mon 2026-03-09 02:30 -04:00"),
    ]
    assert [bool(row.remark) for row in rows] == [False, True, False]
    assert "02:30 does not exist (clocks go from 02:00 to 03:00)" in rows[1].remark
    apia = compile_schedule({"cron": "30 2 * * *", "tz": "Pacific/Apia"}, job_id="menu")
    rows = preview(apia, start=ms("2011-12-29T10:00:00Z"), count=2, zone=load_zone("Pacific/Apia"))
    assert [row.due is None for row in rows] == [False, True, False]
    assert "2011-12-30 02:30 does not exist" in rows[1].remark


def test_warnings_of_the_coming_year() -> None:
    schedule = compile_schedule({"cron": "30 2 * * *", "tz": "America/New_York"}, job_id="menu")
    assert not schedule.warnings
    assert len(schedule.warnings_at(ms("2026-01-01T00:00:00Z"))) == 1
    assert not compile_schedule({"cron": "*/5 * * * *", "tz": "America/New_York"}, job_id="menu").warnings_at(0)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("30 4 1,15 * 5", "either matches"),
        ("0 16 */2 * SAT", "both match"),
        ("*/90 * * * *", "matches 0 only"),
        ("0 0-23 * * *", "every hour"),
        ("0-59 3 * * *", "every minute"),
        ("0 0 29 2 *", "97 days in 400 years; the longest wait is 8 years"),
        ("0 0 * 2 MON#5", "longest wait is 40 years"),
    ],
)
def test_warnings(text: str, warning: str) -> None:
    assert any(warning in each for each in compile_schedule(text, job_id="menu").warnings)


@pytest.mark.parametrize("text", ["* * * * *", "0 9 * * MON-FRI", "0 0 1 * *", "H H * * *", "@weekly", "0 0 L * ?"])
def test_no_warning_where_there_is_nothing_to_say(text: str) -> None:
    assert not compile_schedule(text, job_id="menu").warnings


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("0 2 * * *", "At 02:00, UTC"),
        ("0 0 2 * 1", "At 00:00, on the 2nd of the month, or on Monday, UTC"),
        ("0 16 */16 * SAT", "At 16:00, on the 1st and the 17th of the month if that is also Saturday, UTC"),
        ("0 0 1,14,L * *", "At 00:00, on the 1st, the 14th and the last day of the month, UTC"),
        ("*/90 * * * *", "Every hour, UTC"),
        ("5-5 * * * *", "At 5 minutes past the hour, UTC"),
        ("0 9 * * 1#1,1#3", "At 09:00, on the first Monday and the third Monday of the month, UTC"),
        ({"every": "90m", "anchor": "2026-01-01T00:00Z"}, "Every 90 minutes of elapsed time, counted from 2026-01-01T00:00Z"),
    ],
)
def test_sentences(spec: object, sentence: str) -> None:
    assert compile_schedule(spec, job_id="menu").describe() == sentence  # type: ignore[arg-type]


def test_a_calendar_takes_out_local_days() -> None:
    spec = {"cron": "0 */6 * * *", "tz": "Asia/Tokyo", "calendar": {"exclude": "2026-12-31"}}
    schedule = compile_schedule(spec, job_id="menu")
    low, high = ms("2026-12-30T15:00:00Z"), ms("2026-12-31T15:00:00Z")
    assert list(schedule.between(low, high)) == []
    assert [entry for _, entry in schedule.excluded_between(low, high)] == ["exclude 2026-12-31"] * 4
    assert [each.due_times for each in schedule.exclusions_between(low, high)] == [4]
    assert schedule.next_after(low - 1) == high


def test_a_year_of_exclusions_is_a_few_records() -> None:
    calendar = {"business_hours": "MON-FRI 09:00-17:00", "holidays": "DE"}
    schedule = compile_schedule({"cron": "* * * * *", "tz": "Europe/Berlin", "calendar": calendar}, job_id="menu")
    low, high = ms("2026-01-01T00:00:00Z"), ms("2027-01-01T00:00:00Z")
    records = list(schedule.exclusions_between(low, high))
    assert len(records) < 800
    assert schedule.count_between(low, high) + sum(each.due_times for each in records) == 365 * 1_440
    assert "holiday DE: New Year's Day" in {each.entry for each in records}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("following", ["2026-01-31", "2026-03-02", "2026-03-31"]),
        ("preceding", ["2026-01-30", "2026-02-27", "2026-03-31"]),
        ("modified_following", ["2026-01-30", "2026-02-27", "2026-03-31"]),
    ],
)
def test_shift(mode: str, expected: list[str]) -> None:
    spec = {"cron": "0 9 L * *", "calendar": {"shift": mode}}
    expected = ["2026-02-02" if mode == "following" and day == "2026-01-31" else day for day in expected]
    assert [due[:10] for due in dues(spec, "2026-01-15T00:00:00Z", 3)] == expected


def test_jitter_is_fixed_spread_and_stays_before_the_next_due_time() -> None:
    schedule = compile_schedule({"cron": "* * * * *", "jitter": "10m"}, job_id="menu")
    other = compile_schedule({"cron": "* * * * *", "jitter": "10m"}, job_id="mail")
    due_times = [minute * 60_000 for minute in range(500)]
    offsets = [schedule.start_offset(due) for due in due_times]
    assert offsets == [schedule.start_offset(due) for due in due_times]
    assert offsets != [other.start_offset(due) for due in due_times]
    assert all(0 <= offset < 60_000 for offset in offsets)
    assert max(offsets) > 50_000
    assert compile_schedule("* * * * *", job_id="menu").start_offset(0) == 0


def test_h_spreads_jobs_over_all_values_and_days_that_every_month_has() -> None:
    minutes, days = Counter[int](), Counter[int]()
    for number in range(2_000):
        fields = compile_schedule("H 3 H * *", job_id=f"job-{number}").entries[0].core.cron
        assert fields is not None
        minutes[fields.minutes.bit_length() - 1] += 1
        days[fields.days.days.bit_length() - 1] += 1
    assert set(minutes) == set(range(60))
    assert max(minutes.values()) < 3 * 2_000 / 60
    assert set(days) == set(range(1, 29))


def test_zone_data_is_the_pinned_package_and_nothing_around_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    path, before = zoneinfo.TZPATH, dict(os.environ)
    monkeypatch.setenv("TZ", "Australia/Sydney")
    monkeypatch.setenv("PYTHONTZPATH", "/nowhere")
    spec = {"cron": "0 9 * * *", "tz": "America/Vancouver"}
    assert dues(spec, "2026-11-29T00:00:00Z", 1) == ["2026-11-29T16:00:00Z"]
    assert path == zoneinfo.TZPATH
    assert {key: value for key, value in os.environ.items() if key not in ("TZ", "PYTHONTZPATH")} == {
        key: value for key, value in before.items() if key not in ("TZ", "PYTHONTZPATH")
    }
    version = tzdata_version()
    assert version >= "2026f"
