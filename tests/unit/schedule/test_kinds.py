"""Dialects, intervals, months, one-shots, rules, bounds, several schedules: each by examples."""

from __future__ import annotations

from itertools import islice

import pytest

from dueline.scheduler.core.schedule import ScheduleError, ScheduleSpec, canonical_json, compile_schedule
from tests.unit.schedule.instants import iso, ms

Spec = dict[str, object]
LATER = "2026-01-20T10:00"
ICALENDAR = """
DTSTART;TZID=Europe/Paris:20260101T090000
RRULE:FREQ=YEARLY;UNTIL=20270101
EXDATE;TZID=Europe/Paris:20260101T090000
"""


def dues(spec: object, start: str, count: int = 3) -> list[str]:
    schedule = compile_schedule(spec, job_id="menu")  # type: ignore[arg-type]
    return [iso(due) for due in islice(schedule.between(ms(start), ms("9999-01-01T00:00:00Z")), count)]


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("seconds", "*/20 0 12 * * *", ["2026-01-01T12:00:00Z", "2026-01-01T12:00:20Z", "2026-01-01T12:00:40Z"]),
        ("quartz", "0 0 12 * * ?", ["2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z", "2026-01-03T12:00:00Z"]),
        ("quartz", "0 15 10 ? * 6L *", ["2026-01-30T10:15:00Z", "2026-02-27T10:15:00Z", "2026-03-27T10:15:00Z"]),
        ("quartz", "0 0 9 ? * 2#1", ["2026-01-05T09:00:00Z", "2026-02-02T09:00:00Z", "2026-03-02T09:00:00Z"]),
        ("eventbridge", "cron(0 12 ? * 1 *)", ["2026-01-04T12:00:00Z", "2026-01-11T12:00:00Z", "2026-01-18T12:00:00Z"]),
        ("eventbridge", "0 9 L * ? *", ["2026-01-31T09:00:00Z", "2026-02-28T09:00:00Z", "2026-03-31T09:00:00Z"]),
    ],
)
def test_a_declared_dialect_is_translated(dialect: str, text: str, expected: list[str]) -> None:
    assert dues({"cron": text, "dialect": dialect}, "2026-01-01T00:00:00Z") == expected


@pytest.mark.parametrize(
    ("dialect", "text", "message"),
    [
        ("quartz", "0 0 12 * * *", "exactly one"),
        ("quartz", "0 0 12 ? * ?", "exactly one"),
        ("quartz", "0 0 12 * * ? 2027", "year"),
        ("quartz", "0 0 12 ? * 0", "outside 1-7"),
        ("eventbridge", "0 12 * * ?", "5 fields"),
        ("eventbridge", "rate(5 minutes)", "every"),
        ("seconds", "0 12 * * *", "5 fields"),
    ],
)
def test_what_a_dialect_cannot_mean_is_refused(dialect: str, text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        compile_schedule({"cron": text, "dialect": dialect}, job_id="menu")


@pytest.mark.parametrize(
    ("spec", "start", "expected"),
    [
        ({"every": "PT15M"}, "2026-01-01T00:01:00Z", ["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"]),
        (
            {"every": "2h30m", "anchor": "2026-01-01T01:00Z"},
            "2025-01-01T00:00:00Z",
            ["2026-01-01T01:00:00Z", "2026-01-01T03:30:00Z"],
        ),
        (
            {"monthly": 1, "anchor": "2026-01-31T09:00", "tz": "Europe/Berlin"},
            "2026-01-01T00:00:00Z",
            ["2026-01-31T08:00:00Z", "2026-02-28T08:00:00Z", "2026-03-31T07:00:00Z"],
        ),
        (
            {"every": "1 year", "anchor": "2024-02-29T00:00Z"},
            "2027-01-01T00:00:00Z",
            ["2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"],
        ),
        ({"at": "2026-12-24T18:00", "tz": "Europe/Berlin"}, "2026-01-01T00:00:00Z", ["2026-12-24T17:00:00Z"]),
        ({"at": "2026-03-08T02:30", "tz": "America/New_York"}, "2026-01-01T00:00:00Z", ["2026-03-08T07:00:00Z"]),
        (
            {"cron": "0 9 * * *", "tz": "Europe/Berlin", "start": "2026-06-01", "end": "2026-06-02"},
            "2026-01-01T00:00:00Z",
            ["2026-06-01T07:00:00Z", "2026-06-02T07:00:00Z"],
        ),
        (
            {"cron": "0 9 * * *", "start": "2026-06-01T09:00Z", "max_runs": 2},
            "2026-01-01T00:00:00Z",
            ["2026-06-01T09:00:00Z", "2026-06-02T09:00:00Z"],
        ),
        (
            ["0 9 * * *", {"cron": "0 */9 * * *"}],
            "2026-01-01T00:00:00Z",
            ["2026-01-01T00:00:00Z", "2026-01-01T09:00:00Z", "2026-01-01T18:00:00Z", "2026-01-02T00:00:00Z"],
        ),
        (
            {"rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "start": "2026-01-01T17:00", "tz": "America/New_York"},
            "2026-01-01T00:00:00Z",
            ["2026-01-30T22:00:00Z", "2026-02-27T22:00:00Z", "2026-03-31T21:00:00Z"],
        ),
        (
            {"rrule": "FREQ=WEEKLY;INTERVAL=2;COUNT=4", "start": "2026-01-05T09:00", "exdate": "2026-01-19", "rdate": LATER},
            "2026-01-01T00:00:00Z",
            ["2026-01-05T09:00:00Z", "2026-01-20T10:00:00Z", "2026-02-02T09:00:00Z", "2026-02-16T09:00:00Z"],
        ),
        (
            {"rrule": ICALENDAR},
            "2025-01-01T00:00:00Z",
            ["2027-01-01T08:00:00Z"],
        ),
        (
            {"rrule": "FREQ=HOURLY;INTERVAL=6", "start": "2026-03-28T00:00", "tz": "Europe/Berlin"},
            "2026-03-28T16:00:00Z",
            ["2026-03-28T17:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T04:00:00Z"],
        ),
    ],
)
def test_examples(spec: object, start: str, expected: list[str]) -> None:
    found = dues(spec, start, len(expected))
    assert found == expected
    schedule = compile_schedule(spec, job_id="menu")  # type: ignore[arg-type]
    last = ms(expected[-1])
    assert schedule.count_between(ms(start), last + 1) == len(expected)
    assert iso(schedule.previous_before(last + 1)) == expected[-1]
    if len(expected) > 1:
        assert iso(schedule.previous_before(last)) == expected[-2]


@pytest.mark.parametrize("spec", [{"at": "2026-12-24T18:00Z"}, {"every": "1d", "anchor": "2026-12-24T18:00Z", "max_runs": 1}])
def test_a_schedule_ends(spec: Spec) -> None:
    schedule = compile_schedule(spec, job_id="menu")
    due = ms("2026-12-24T18:00:00Z")
    assert schedule.next_after(due) is None
    assert schedule.previous_before(due) is None
    assert schedule.next_after(due - 1) == schedule.previous_before(due + 1) == due
    assert schedule.count_between(-(10**18), 10**18) == 1


@pytest.mark.parametrize(
    "spec",
    [
        "@daily",
        {"cron": "0 9 * * *", "tz": "Europe/Berlin", "gap": "skip", "fold": "both", "jitter": "30s"},
        {"cron": "0 9 * * *", "calendar": {"holidays": ["DE"], "exclude": "12-31", "shift": "following"}},
        ["@hourly", {"every": "15m", "anchor": "2026-01-01T00:00Z", "end": "2030-01-01", "start": "2026-01-01", "max_runs": 9}],
        {"rrule": "FREQ=DAILY", "start": "2026-01-01T09:00", "exdate": ["2026-01-02"], "rdate": ["2026-01-03T10:00"]},
    ],
)
def test_a_spec_has_one_text_that_reads_back(spec: object) -> None:
    model = ScheduleSpec.model_validate(spec)
    text = canonical_json(model)
    assert ScheduleSpec.model_validate_json(text) == model
    assert canonical_json(ScheduleSpec.model_validate_json(text)) == text
    assert list(islice(compile_schedule(text, job_id="menu").between(0, 10**13), 5)) == list(
        islice(compile_schedule(spec, job_id="menu").between(0, 10**13), 5)  # type: ignore[arg-type]
    )


def test_equal_arguments_are_compiled_once() -> None:
    assert compile_schedule("0 4 * * *", job_id="menu") is compile_schedule("0 4 * * *", job_id="menu")
    menu, mail = (compile_schedule("H 4 * * *", job_id=job).next_after(0) for job in ("menu", "mail"))
    assert menu != mail
