"""A report of several runs: what the page says is what report.json says, and that is what the runs add up to."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from proof.history.acts import STARVED
from proof.history.history import History
from proof.history.verdict import Kind, Verdict
from proof.report.markup import duration, number
from proof.report.writing import write_report
from tests.unit.proof.report.worlds import BEGAN, SETTING, fault, history, small, take_over, verdict, violation

Table = list[list[str]]


class Tables(HTMLParser):
    """The cells of each table, by its caption; tables of one caption one after the other."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, Table] = {}
        self._place: str = ""
        self._caption = ""

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        if tag == "caption":
            self._caption = ""
        if tag == "tr":
            self.found.setdefault(self._caption, []).append([])
        if tag in ("th", "td"):
            self.found[self._caption][-1].append("")
        if tag in ("caption", "th", "td"):
            self._place = tag

    def handle_endtag(self, tag: str) -> None:
        self._place = "" if tag == self._place else self._place

    def handle_data(self, data: str) -> None:
        if self._place == "caption":
            self._caption += data
        elif self._place:
            self.found[self._caption][-1][-1] += data


@pytest.fixture
def pairs() -> list[tuple[History, Verdict]]:
    """Three runs that share kinds, states and causes, and differ in them."""
    second = (
        history((), [
            fault("kill-leader", BEGAN), fault("cut", BEGAN + 5, 700), replace(fault("cut", BEGAN + 9, 50), struck=False),
            fault(STARVED, BEGAN + 900, 1_200),
        ], seed=2, title="second"),
        verdict(
            due_times=1_200, runs=1_100, runs_by_state={"succeeded": 1_099, "cancelled": 1}, lateness_ms=(50, 70, 20_500),
            steps_executed=2_000, steps_again=(("kill-leader", 2), ("cut", 1)), kills_in_flight=7, leaderless_ms=4_300,
            take_overs=(take_over("kill-leader", BEGAN, 1_900), take_over("cut", BEGAN + 5, 9_000)),
            violations=(violation(Kind.EARLY), violation(Kind.LATE), violation(Kind.LATE)),
        ),
    )  # fmt: skip
    third = (
        history((), [fault("cut", BEGAN, 300)], seed=3, title="third"),
        verdict(due_times=4, runs=4, runs_by_state={"succeeded": 4}, lateness_ms=(1,), violations=(violation(Kind.LATE),)),
    )
    return [small(), second, third]


@pytest.fixture
def written(pairs: list[tuple[History, Verdict]], tmp_path: Path) -> tuple[dict[str, Any], dict[str, Table], str]:
    """report.json, the tables of report.html, and its text."""
    data, html = write_report(pairs, tmp_path, SETTING, BEGAN)
    tables = Tables()
    tables.feed(html.read_text())
    tables.close()
    return json.loads(data.read_text()), tables.found, html.read_text()


Written = tuple[dict[str, Any], dict[str, Table], str]


def test_the_document_is_the_sum_of_its_runs(pairs: list[tuple[History, Verdict]], written: Written) -> None:
    figures, verdicts = written[0]["figures"], [found for _, found in pairs]
    assert (figures["faults"], figures["no_effect"], figures["starved"]) == (4, 1, 1)
    for name in ("due_times", "runs", "steps_executed", "kills_in_flight", "leaderless_ms"):
        assert figures[name] == sum(getattr(found, name) for found in verdicts), name
    assert figures["steps_again"] == sum(count for found in verdicts for _, count in found.steps_again) == 4
    assert figures["runs_by_state"] == {"cancelled": 1, "dispatched": 1, "failed": 1, "succeeded": 1_104}
    assert figures["lateness"]["count"] == sum(len(found.lateness_ms) for found in verdicts) == 7
    assert sum(one["n"] for one in figures["lateness_histogram"]) == 7
    assert {kind: count for kind, count in figures["violations"].items() if count} == {"early": 1, "late": 3}
    took = Counter({(one["cause"], one["count"]) for one in written[0]["take_overs"]})
    assert took == Counter({("kill-leader", 2): 1, ("cut", 1): 1})


def test_the_headline_says_what_the_document_says(written: Written) -> None:
    data, tables, _ = written
    figures = data["figures"]
    shown = {name: value for name, value, _ in tables["The figures"][1:]}
    expected = {"faults": figures["faults"], "struck nothing": figures["no_effect"], "due times": figures["due_times"],
                "runs": figures["runs"], **figures["violations"],
                **{f"runs {state}": count for state, count in figures["runs_by_state"].items()}}  # fmt: skip
    assert shown == {name: number(value) for name, value in expected.items()}


def test_faults_and_steps_again_by_kind_add_up_on_the_page(written: Written) -> None:
    data, tables, _ = written
    rows = [
        [kind["kind"], number(kind["n"]), number(kind["no_effect"]), duration(kind["total_ms"])]
        for kind in data["faults_by_kind"]
    ]
    *shown, last = tables["Faults by kind"][1:]
    assert shown == rows
    assert last[:3] == ["all", "4", "1"]
    again = {row[0]: row[2] for row in tables["Steps executed again"][1:]}
    assert again == {kind["kind"]: number(kind["steps_again"]) for kind in data["faults_by_kind"]}
    assert sum(map(int, again.values())) == data["figures"]["steps_again"]


def test_lateness_and_take_overs_on_the_page_are_those_of_the_document(written: Written) -> None:
    data, tables, text = written
    late = data["figures"]["lateness"]
    assert [row[1] for row in tables["Lateness"][1:]] == [
        number(late["count"]), *(duration(late[name]) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
    ]  # fmt: skip
    assert [int(row[1]) for row in tables["Runs by lateness"][1:]] == [one["n"] for one in data["figures"]["lateness_histogram"]]
    assert [row[1:6] + row[7:] for row in tables["Take-over times"][1:]] == [
        [
            number(one["count"]), *(duration(one[name]) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
            number(len(one["outliers"])),
        ]
        for one in data["take_overs"]
    ]  # fmt: skip
    assert f"Time without a leader: <strong>{duration(data['figures']['leaderless_ms'])}</strong>" in text


def test_each_run_and_each_violation_has_its_row(written: Written) -> None:
    data, tables, _ = written
    assert [[row[0], row[1], row[3]] for row in tables["How to do each history again"][1:]] == [
        [str(one["seed"]), one["title"], number(one["violations"])] for one in data["histories"]
    ]
    assert [[row[0], row[4]] for row in tables["Violations"][1:]] == [
        [one["kind"], f"{one['title']}, seed {one['seed']}"] for one in data["violations"]
    ]
    assert len(data["violations"]) == sum(data["figures"]["violations"].values()) == 4
