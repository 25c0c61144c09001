"""What several histories add up to, in figures and in report.json."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from proof.history.acts import STARVED
from proof.history.verdict import Kind
from proof.report.document import document
from proof.report.figures import aim_of, figures
from tests.unit.proof.report.worlds import (
    BEGAN,
    BOUNDS,
    SETTING,
    fault,
    history,
    small,
    take_over,
    verdict,
    violation,
)


def test_several_runs_add_up() -> None:
    first = (
        history((), [fault("kill-leader", BEGAN), fault("cut", BEGAN, 500)], seed=1),
        verdict(
            due_times=10, runs=9, runs_by_state={"succeeded": 9}, lateness_ms=(1, 2), steps_executed=4, leaderless_ms=100,
            steps_again=(("kill-worker", 1),), kills_in_flight=2,
        ),
    )  # fmt: skip
    second = (
        history((), [fault("cut", BEGAN, 700)], seed=2),
        verdict(
            due_times=5, runs=5, runs_by_state={"succeeded": 4, "failed": 1}, lateness_ms=(50,), steps_executed=1,
            steps_again=(("kill-worker", 2), ("cut", 1)), kills_in_flight=3, violations=(violation(Kind.EARLY),),
        ),
    )  # fmt: skip
    sums = figures([first, second])
    assert (sums.histories, sums.faults, sums.due_times, sums.runs, sums.judged_ms) == (2, 3, 15, 14, 120_000)
    assert sums.runs_by_state == {"failed": 1, "succeeded": 13}
    assert (sums.steps_executed, sums.steps_again, sums.kills_in_flight, sums.leaderless_ms) == (5, 4, 5, 100)
    assert sums.lateness is not None
    assert sums.lateness.largest == 50
    assert [(kind.kind, kind.count, kind.total_ms, kind.again) for kind in sums.kinds] == [
        ("cut", 2, 1_200, 1), ("kill-leader", 1, 0, 0), ("kill-worker", 0, 0, 3),
    ]  # fmt: skip
    assert {kind: count for kind, count in sums.violations_by_kind.items() if count} == {Kind.EARLY: 1}
    assert set(sums.violations_by_kind) == set(Kind), "a kind without a violation is said to have none"
    assert [(found.seed, found.violation.kind) for found in sums.violations] == [(2, Kind.EARLY)]
    assert not sums.holds


def test_a_fault_that_struck_nothing_is_counted_apart() -> None:
    told = history((), [fault("cut", BEGAN, 500), replace(fault("cut", BEGAN, 700), struck=False), fault("kill-leader", BEGAN)])
    sums = figures([(told, verdict(take_overs=(take_over("kill-leader", BEGAN, 9_000),)))])
    assert (sums.faults, sums.no_effect) == (2, 1)
    assert [(kind.kind, kind.count, kind.no_effect, kind.total_ms) for kind in sums.kinds] == [
        ("cut", 1, 1, 500), ("kill-leader", 1, 0, 0),
    ]  # fmt: skip
    assert sums.take_overs[0].outliers[0].meanwhile == ("cut s1", "kill-leader s1")


def test_a_trouble_beside_the_history_breaks_the_run() -> None:
    assert figures([(history(), verdict())]).holds
    pairs = [(history(title="one"), verdict(troubles=("w1: exit 1",))), (history(title="other"), verdict())]
    sums = figures(pairs)
    assert (sums.holds, document(pairs, sums, SETTING, BEGAN)["troubles"]) == (False, ["one: w1: exit 1"])


def test_a_machine_that_stood_still_is_no_fault() -> None:
    told = history((), [fault("kill-leader", BEGAN), fault(STARVED, BEGAN + 100, 1_400), fault(STARVED, BEGAN + 9_000, 1_100)])
    sums = figures([(told, verdict())])
    assert (sums.faults, [kind.kind for kind in sums.kinds]) == (1, ["kill-leader"])
    assert (sums.starved, sums.starved_ms) == (2, 2_500)
    data = document([(told, verdict())], sums, SETTING, BEGAN)
    assert (data["figures"]["faults"], data["figures"]["starved"], data["figures"]["starved_ms"]) == (1, 2, 2_500)
    assert len(data["histories"][0]["faults"]) == 1
    assert data["histories"][0]["starved"][0] == {"began_ms": BEGAN + 100, "ended_ms": BEGAN + 1_500}


def test_a_report_that_judged_nothing_does_not_say_that_the_promise_held() -> None:
    assert figures([(history(), verdict(due_times=1))]).holds
    assert not figures([(history(), verdict(due_times=0))]).holds
    assert not figures([]).holds


@pytest.mark.parametrize(
    ("cause", "session_ms", "aim_ms"),
    [
        ("kill-leader", 6_000, 7_500), ("kill-leader", 1_000, 2_000), ("SIGTERM", 6_000, 1_500), ("term-leader", 6_000, 1_500),
        ("rolling-schedulers", 6_000, 1_500), ("determined-cut", 6_000, 7_500),
    ],
)  # fmt: skip
def test_what_a_take_over_should_not_exceed(cause: str, session_ms: int, aim_ms: int) -> None:
    assert aim_of(cause, session_ms) == aim_ms


def test_take_overs_are_grouped_and_outliers_tell_what_was_on_meanwhile() -> None:
    slow = replace(BOUNDS, session_ms=6_000)
    first = (
        history((), [
            fault("cut", BEGAN + 4_000, 500), fault("kill-leader", BEGAN + 5_000), fault("stop", BEGAN + 6_000, 100, "w1"),
            fault("later", BEGAN + 9_000),
        ]),
        verdict(take_overs=(take_over("kill-leader", BEGAN + 5_000, 2_500), take_over("kill-leader", BEGAN, 1_400))),
    )  # fmt: skip
    second = (history(bounds=slow), verdict(take_overs=(take_over("kill-leader", BEGAN, 2_500),)))
    quick, long = figures([first, second]).take_overs
    assert (quick.session_ms, quick.took_ms, quick.spread.p50, quick.spread.largest) == (1_000, (1_400, 2_500), 1_400, 2_500)
    [outlier] = quick.outliers
    assert (outlier.took_ms, outlier.aim_ms, outlier.since_began_ms) == (2_500, 2_000, 5_000)
    assert outlier.meanwhile == ("kill-leader s1", "stop w1")
    assert (long.session_ms, long.outliers) == (6_000, ())


def test_a_take_over_of_a_leader_with_another_session_is_held_against_that_one() -> None:
    other = replace(take_over("kill-leader", BEGAN, 3_500), session_ms=3_000)
    told = (history(), verdict(take_overs=(other, take_over("kill-leader", BEGAN, 1_500))))
    groups = {group.session_ms: group for group in figures([told]).take_overs}
    assert {session: group.took_ms for session, group in groups.items()} == {3_000: (3_500,), 1_000: (1_500,)}
    assert all(group.outliers == () for group in groups.values())


# --- report.json ------------------------------------------------------------------------------------------------------


def told(*pairs: Any) -> Any:
    return json.loads(json.dumps(document(pairs, figures(pairs), SETTING, BEGAN)))


def test_the_document_has_its_shape() -> None:
    """This test is the shape's keeper: a change here is a new version, but for a field that is added."""
    said = told(small())
    assert (said["schema"], said["version"], said["made_ms"], said["holds"]) == ("dueline.proof.report", 1, BEGAN, True)
    assert set(said) >= {
        "schema", "version", "made_ms", "holds", "troubles", "setting", "figures", "faults_by_kind", "take_overs", "violations",
        "histories",
    }  # fmt: skip
    assert said["setting"] == {
        "replay": "make faults SEED={seed}", "machine": "two cores", "versions": {"Apache Kafka": "4.3.1", "Python": "3.11"},
    }  # fmt: skip
    bins = said["figures"].pop("lateness_histogram")
    assert bins[0] == {"from_ms": None, "to_ms": 0, "n": 0}
    assert [one["n"] for one in bins if one["n"]] == [1, 1, 1]
    assert said["figures"] == {
        "histories": 1, "judged_ms": 60_000, "faults": 1, "no_effect": 0, "starved": 0, "starved_ms": 0,
        "due_times": 5, "runs": 3,
        "runs_by_state": {"dispatched": 1, "failed": 1, "succeeded": 1},
        "violations": {
            "missed": 0, "doubled": 0, "early": 0, "late": 0, "unexplained": 0, "lost": 0, "order": 0, "limit": 0,
        },
        "lateness": {"count": 3, "p50_ms": 12, "p95_ms": 1_310, "p99_ms": 1_310, "max_ms": 1_310},
        "lateness_bounds_ms": [10_000], "steps_executed": 4, "steps_again": 1, "kills_in_flight": 1, "leaderless_ms": 1_300,
        "unmeasured": 0,
    }  # fmt: skip
    assert said["faults_by_kind"] == [{"kind": "kill-leader", "n": 1, "no_effect": 0, "total_ms": 0, "steps_again": 1}]
    assert said["take_overs"] == [{
        "cause": "kill-leader", "session_ms": 1_000, "aim_ms": 2_000, "count": 1, "p50_ms": 1_300, "p95_ms": 1_300,
        "p99_ms": 1_300, "max_ms": 1_300, "took_ms": [1_300], "outliers": [],
    }]  # fmt: skip
    assert said["violations"] == []
    [one] = said["histories"]
    assert (one["seed"], one["command"], one["due_times"], one["violations"]) == (7, "make faults SEED=7", 5, 0)
    assert one["faults"] == [{
        "kind": "kill-leader", "target": "s1", "began_ms": BEGAN + 4_000, "ended_ms": BEGAN + 4_000, "shift_ms": 0, "detail": "",
        "struck": True,
    }]  # fmt: skip


def test_every_violation_stands_in_the_document() -> None:
    many = tuple(violation(subject=f"job@{number}") for number in range(2_000))
    said = told((history(), verdict(violations=many)))
    assert [one["subject"] for one in said["violations"]] == [f"job@{number}" for number in range(2_000)]
    assert set(said["violations"][0]) == {"title", "seed", "kind", "subject", "what", "evidence"}
    assert not said["holds"]
