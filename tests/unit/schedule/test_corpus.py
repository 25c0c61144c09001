"""The hard cases of tests/corpus/schedule_cases.jsonl, each a test with its id. `pytest -k corpus` runs them all.

Where a case is definitional (systems disagree), the engine follows the recommended rule in all of them: OTHER_RULE lists
the ids that follow another documented rule, and it is empty.
"""

from __future__ import annotations

import json
import re
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from dueline.scheduler.core.schedule import Schedule, ScheduleError, compile_schedule, resume
from dueline.scheduler.core.schedule.months import DAY_S, day_number
from tests.unit.schedule.instants import iso, ms

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "corpus" / "schedule_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
OTHER_RULE: dict[str, str] = {}
TESTED_BY_PROPERTY = {"H-15", "calc-H-dom-31", "H-div"}


def expression_of(case: dict[str, Any]) -> str | None:
    repeat = case.get("expr_repeat")
    if repeat is None:
        return case.get("expr")
    return str(repeat["prefix"] + repeat["sep"].join([repeat["unit"]] * repeat["count"]) + repeat["suffix"])


def compiled(case: dict[str, Any]) -> Schedule:
    spec: dict[str, object] = {"tz": case["tz"]}
    if case["kind"] == "interval":
        spec["every"] = case["interval"]
        if case["anchor_iso_utc"] is not None:
            spec["anchor"] = case["anchor_iso_utc"]
    else:
        spec["cron"] = expression_of(case)
    if case.get("seconds_first"):
        spec["dialect"] = "seconds"
    return compile_schedule(spec, job_id=case.get("hash_id", ""))


def case_ids(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if kind_of(case) == kind]


def kind_of(case: dict[str, Any]) -> str:
    if case["expected"] in ("error", "property"):
        return str(case["expected"])
    return "due" if case["kind"] in ("cron", "interval") else str(case["kind"])


def test_corpus_is_complete_and_no_case_follows_another_rule() -> None:
    assert len(CASES) == 247
    assert len({case["id"] for case in CASES}) == 247
    assert {kind_of(case) for case in CASES} == {"due", "error", "property", "catchup", "clock"}
    assert {case["id"] for case in CASES if case["expected"] == "property"} == TESTED_BY_PROPERTY
    assert not OTHER_RULE


@pytest.mark.parametrize("case", case_ids("due"))
def test_corpus_due(case: dict[str, Any]) -> None:
    schedule, at, found = compiled(case), ms(case["start_iso_utc"]), list[str]()
    step = schedule.next_after if case["direction"] == "next" else schedule.previous_before
    for _ in range(case.get("n") or len(case["expected"])):
        due = step(at)
        if due is None:
            break
        found.append(iso(due))
        at = due
    assert found == case["expected"]


@pytest.mark.parametrize("case", case_ids("error"))
def test_corpus_error(case: dict[str, Any]) -> None:
    with pytest.raises(ScheduleError) as refusal:
        compiled(case)
    assert refusal.value.message
    assert refusal.value.position is None or 0 <= refusal.value.position <= len(refusal.value.text)


@pytest.mark.parametrize("case", case_ids("catchup"))
def test_corpus_catchup(case: dict[str, Any]) -> None:
    schedule = compiled(case)
    last, now = ms(case["last_fired_iso_utc"]), ms(case["now_iso_utc"])
    latest = schedule.previous_before(now + 1)
    assert latest is not None
    assert [iso(latest)] == case["expected"] == [case["last_missed"]]
    assert schedule.count_between(last + 1, now + 1) == case["missed_count"]
    assert iso(schedule.next_after(last)) == case["first_missed"]
    assert iso(schedule.next_after(now)) == case["next_after_now"]
    assert case["policies"]["all (bounded, in order)"] == sum(1 for _ in schedule.between(last + 1, now + 1))


@pytest.mark.parametrize("case", case_ids("clock"))
def test_corpus_clock(case: dict[str, Any]) -> None:
    last, now = ms(case["last_fired_iso_utc"]), ms(case["clock_after_iso_utc"])
    resumption = resume(compiled(case), last_ran=last, now=now)
    assert resumption.due is not None
    assert [iso(resumption.due)] == case["expected"]
    assert resumption.alarm == (last - now > 5 * 60_000)


@pytest.mark.parametrize("case", case_ids("property"))
def test_corpus_property(case: dict[str, Any]) -> None:
    schedule, again = compiled(case), compiled(case)
    start = ms(case["start_iso_utc"])
    dues = list(islice(schedule.between(start, start + 400 * DAY_S * 1_000), 96))
    assert dues == list(islice(again.between(start, start + 400 * DAY_S * 1_000), 96))
    if case["id"] == "H-15":
        assert {later - earlier for earlier, later in pairwise(dues)} == {15 * 60_000}
    elif case["id"] == "H-div":
        assert {later - earlier for earlier, later in pairwise(dues)} == {3_600_000}
    else:
        months = [re.match(r"(\d{4}-\d{2})", iso(due)) for due in dues]
        assert len({month[1] for month in months if month}) == len(dues)
        year = schedule.count_between(day_number(2027, 1, 1) * DAY_S * 1_000, day_number(2028, 1, 1) * DAY_S * 1_000)
        assert year == 12
