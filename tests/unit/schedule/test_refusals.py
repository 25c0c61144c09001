"""What is refused: the message names the trouble, the position points at it, the suggestion is a form that is accepted."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.schedule import ScheduleError, compile_schedule

CRON = [
    ("61 * * * *", "outside 0-59", 0, None),
    ("0 24 * * *", "outside 0-23", 2, None),
    ("0 22-5 * * *", "runs backwards", 2, "0 22-23,0-5 * * *"),
    ("0 9,22-5 * * *", "runs backwards", 4, "0 9,22-23,0-5 * * *"),
    ("0 0 * * FRI-MON", "runs backwards", 8, "0 0 * * FRI-SUN,MON"),
    ("0 0 * * 6-2", "runs backwards", 8, "0 0 * * 6,0-2"),
    ("0 0 * * 5-0", "runs backwards", 8, "0 0 * * 5-7"),
    ("0 0 1 NOV-FEB *", "runs backwards", 6, "0 0 1 NOV-DEC,JAN-FEB *"),
    ("* 17-2/3 * * *", "runs backwards", 2, "* 17,20,23,2 * * *"),
    ("*/0 * * * *", "never moves on", 2, "*/1 * * * *"),
    ("*/-2 * * * *", "negative", 2, "*/2 * * * *"),
    ("*5 * * * *", "slash", 0, "*/5 * * * *"),
    ("*-5 * * * *", "whole field", 0, "0-5 * * * *"),
    ("/5 * * * *", "needs a start", 0, "*/5 * * * *"),
    ("0005 * * * *", "more than 3 digits", 0, None),
    ("+5 * * * *", "not a value", 0, None),
    ("0x5 * * * *", "not a value", 0, None),
    ("1_0 * * * *", "not a value", 0, None),
    ("0 0 1 JANUARY *", "three letters", 6, "0 0 1 JAN *"),
    ("0 0 * MON *", "order of the fields", 6, None),
    ("0 0 * * L", "last Friday to others", 8, None),
    ("0 0 * * MON#6", "1 to 5", 12, None),
    ("0 0 L-31 * *", "1 to 30", 6, None),
    ("0 0 30 2 *", "never fires", 4, None),
    ("0 0 31 2,4,6,9,11 *", "never fires", 4, None),
    ("R * * * *", "random", 0, "H * * * *"),
    ("? * * * *", "whole day field", 0, "* * * * *"),
    ("0 12 * * * # noon", "comment", 11, "0 12 * * *"),
    ("TZ=Europe/Berlin 0 12 * * *", "own key", 0, "cron: '0 12 * * *' with tz: Europe/Berlin"),
    ("0\u00a012 * * *", "U+00A0", 1, "0 12 * * *"),
    ("@every 5m", "interval", 0, "every: 5m"),
    ("@reboot", "no single boot", 0, None),
    ("0 12 * * ? *", "dialect", 11, None),
    ("", "empty", 0, None),
    ("0 0 * * 7/2", "ambiguous", 8, "0 0 * * 0/2"),
]
MAPPINGS: list[tuple[dict[str, object], str]] = [
    ({"cron": "* * * * *", "gap": "skip"}, "follows elapsed time"),
    ({"cron": "5 * * * *", "fold": "both"}, "follows elapsed time"),
    ({"every": "15m", "fold": "first"}, "elapsed time"),
    ({"cron": "0 1 * * *", "every": "5m"}, "exclude each other"),
    ({"tz": "UTC"}, "one of cron"),
    ({"every": "15m", "dialect": "quartz"}, "belongs to cron"),
    ({"cron": "0 1 * * *", "anchor": "2026-01-01"}, "belongs to every"),
    ({"cron": "0 1 * * *", "max_runs": 3}, "first moment"),
    ({"cron": "0 1 * * *", "max_runs": 0}, "greater than or equal"),
    ({"cron": "0 1 * * *", "start": "2026-02-01", "end": "2026-01-01"}, "before start"),
    ({"cron": "0 0 29 2 *", "start": "2026-01-01", "end": "2026-12-31"}, "never fires"),
    ({"every": "1.5s"}, "fractions"),
    ({"every": "500ms"}, "not a length"),
    ({"every": "0s"}, "zero"),
    ({"every": "1 month 3 days"}, "do not add up"),
    ({"every": "15"}, "unit is missing"),
    ({"every": "999999999999999999999h"}, "out of range"),
    ({"monthly": 1}, "anchor"),
    ({"at": "2026-12-24"}, "time of day is missing"),
    ({"at": "2026-02-30T09:00"}, "no date"),
    ({"at": "2026-06-30T23:59:60Z"}, "no such time"),
    ({"at": "2026-03-08T02:30", "tz": "America/New_York", "gap": "skip"}, "never fires"),
    ({"cron": "0 1 * * *", "jitter": "1 month"}, "no fixed length"),
    ({"cron": "0 1 * * *", "colour": "red"}, "no such key"),
    ({"cron": "0 1 * * *", "calendar": {"holiday": "DE"}}, "no such key"),
    ({"cron": "0 1 * * *", "dialect": "spring"}, "not known"),
    ({"cron": "H 1 * * *"}, "job id"),
    ({"rrule": "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "start": "2026-01-01T09:00"}, "never fires"),
    ({"rrule": "FREQ=DAILY"}, "give the key start"),
    ({"rrule": "FREQ=DAILY;BYHOUR=25", "start": "2026-01-01T09:00"}, "outside 0 to 23"),
    ({"rrule": "FREQ=DAILY;COUNT=2;UNTIL=20270101", "start": "2026-01-01T09:00"}, "exclude each other"),
    ({"rrule": "FREQ=FORTNIGHTLY", "start": "2026-01-01T09:00"}, "FREQ is one of"),
    ({"rrule": "DTSTART;TZID=Europe/Paris:20260101T090000\nRRULE:FREQ=DAILY", "tz": "Europe/Rome"}, "differ"),
    ({"cron": "0 1 * * SAT", "calendar": {"business_days": "MON-FRI"}}, "28 years"),
    ({"cron": "0 1 * * *", "calendar": {"holidays": "XX"}}, "not available"),
    ({"cron": "0 1 * * *", "calendar": {"exclude": "2026-12-31..2026-12-24"}}, "backwards"),
    ({"cron": "0 1 * * *", "calendar": {"exclude": "31 December"}}, "not a day"),
    ({"cron": "0 1 * * *", "calendar": {"business_hours": "9 to 5"}}, "not a window"),
    ({"cron": "*/5 * * * *", "calendar": {"shift": "following"}}, "fixed local times"),
]
NO_DATA: list[object] = [None, 7, b"* * * * *", [], {}, [[]], [1], {"cron": 5}, {"cron": {1, 2}}]
NO_JSON: list[object] = ["{", '{"cron": "\ud800"}', "[" * 5_000, '"x"']


@pytest.mark.parametrize(("text", "message", "position", "suggestion"), CRON)
def test_a_cron_text_is_refused_with_a_way_out(text: str, message: str, position: int, suggestion: str | None) -> None:
    with pytest.raises(ScheduleError) as refusal:
        compile_schedule(text, job_id="menu")
    assert message in refusal.value.message
    assert refusal.value.text == text
    assert refusal.value.position == position
    assert refusal.value.suggestion == suggestion
    if suggestion is not None and ":" not in suggestion:
        assert compile_schedule(suggestion, job_id="menu").next_after(0) is not None


@pytest.mark.parametrize(("spec", "message"), MAPPINGS)
def test_a_mapping_is_refused(spec: dict[str, object], message: str) -> None:
    with pytest.raises(ScheduleError, match=message.replace("(", r"\(")):
        compile_schedule(spec, job_id="")


@pytest.mark.parametrize("given", NO_DATA + NO_JSON)
def test_what_is_no_schedule_is_refused(given: object) -> None:
    with pytest.raises(ScheduleError):
        compile_schedule(given, job_id="menu")  # type: ignore[arg-type]


def test_the_error_shows_the_place_and_the_way_out() -> None:
    with pytest.raises(ScheduleError) as refusal:
        compile_schedule("0 22-5 * * *", job_id="menu")
    assert str(refusal.value).splitlines() == [
        "cron: hour: the range 22-5 runs backwards; write it as a list",
        "  0 22-5 * * *",
        "    ^",
        "  did you mean: 0 22-23,0-5 * * *",
    ]


def test_the_error_names_the_schedule_of_a_list() -> None:
    with pytest.raises(ScheduleError, match="schedule 2 of 2: cron: minute"):
        compile_schedule(["0 1 * * *", "61 1 * * *"], job_id="menu")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("Europe/Berln", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"), ("right/UTC", "UTC"), ("Europe", None), ("", None)],
)
def test_a_zone_is_named_exactly(name: str, suggestion: str | None) -> None:
    with pytest.raises(ScheduleError) as refusal:
        compile_schedule({"cron": "0 1 * * *", "tz": name}, job_id="menu")
    assert refusal.value.suggestion == suggestion
