"""Whatever text or data comes in, only ScheduleError comes out, and quickly."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.scheduler.core.schedule import Schedule, ScheduleError, canonical_json, compile_schedule
from dueline.scheduler.core.schedule.compile import parse_spec
from dueline.scheduler.core.schedule.spec import EntrySpec
from tests.property.schedule.amount import examples

pytestmark = pytest.mark.timeout(600)  # 10,000 examples in CI, on a machine that others use too

WORDS = "* ? / - , # L W LW H R H( ) 0 7 31 59 999 MON jan @daily TZ= FREQ= DAILY ; COUNT= BYDAY= = PT 1h .. T :"
PIECES = st.sampled_from([*WORDS.split(" "), " ", " ", " ", "\t", "\n", "\0", "\u0663"])
SOUP = st.lists(PIECES, max_size=24).map("".join) | st.text(max_size=40)
VALUES = SOUP | st.integers() | st.floats() | st.none() | st.booleans() | st.lists(SOUP, max_size=3)
CALENDARS = st.dictionaries(
    st.sampled_from(["include", "exclude", "business_hours", "business_days", "holidays", "shift", "x"]), VALUES, max_size=3
)
RULE_PARTS = st.sampled_from(["FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTH", "BYHOUR", "BYSETPOS"])
KEYS = st.sampled_from(list(EntrySpec.model_fields)) | st.text(max_size=4)
MAPPINGS = st.dictionaries(KEYS, VALUES | CALENDARS, max_size=5)
SLOWEST_S = 1.0  # two shared cores; test_limits measures the 50 ms


def accepted(given_schedule: object, job_id: str) -> Schedule | None:
    began = time.thread_time()
    schedule, refusal = None, None
    try:
        schedule = compile_schedule(given_schedule, job_id=job_id)  # type: ignore[arg-type]
    except ScheduleError as error:
        refusal = error
    assert time.thread_time() - began < SLOWEST_S
    if refusal is not None:
        assert refusal.message
        assert all(line.isprintable() for line in str(refusal).split("\n"))
        assert refusal.position is None or 0 <= refusal.position <= len(refusal.text)
    return schedule


@examples(share=0.5)
@given(text=SOUP)
def test_text(text: str) -> None:
    schedule = accepted(text, "fuzz")
    if schedule is not None:
        assert schedule.describe()
        assert isinstance(schedule.warnings, tuple)
        schedule.next_after(0)
        schedule.previous_before(0)


@examples(share=0.1)
@given(mapping=MAPPINGS | st.lists(MAPPINGS, max_size=2))
def test_mappings(mapping: object) -> None:
    schedule = accepted(mapping, "fuzz")
    if schedule is not None:
        assert schedule.describe()
        schedule.next_after(0)
        text = canonical_json(parse_spec(json.dumps(mapping)))
        again = accepted(text, "fuzz")
        assert again is not None
        assert again.next_after(0) == schedule.next_after(0)
        assert canonical_json(parse_spec(text)) == text


@examples(share=0.1)
@given(parts=st.lists(st.tuples(RULE_PARTS, SOUP)))
def test_rules(parts: list[tuple[str, str]]) -> None:
    rule = ";".join(f"{name}={value}" for name, value in parts)
    schedule = accepted({"rrule": rule, "start": "2026-01-05T09:00"}, "fuzz")
    if schedule is not None:
        schedule.next_after(0)
