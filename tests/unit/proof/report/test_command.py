"""`python -m proof.report`: stored histories in, a report out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from proof.checker.trouble import CannotJudge
from proof.history.history import History
from proof.history.store import save
from proof.history.verdict import Verdict
from proof.report import __main__ as command
from tests.unit.proof.checker.histories import calm
from tests.unit.proof.report.worlds import BEGAN, fault, history, verdict, violation

RECORDS = ((BEGAN, None),)
"""A stored log holds one at least."""


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> dict[int, Verdict]:
    """Verdicts by seed: the checker has tests of its own."""
    verdicts: dict[int, Verdict] = {}

    def check(told: History) -> Verdict:
        if told.seed not in verdicts:
            raise CannotJudge("a schedule of another world")
        return replace(verdicts[told.seed], troubles=told.noted.troubles)

    monkeypatch.setattr(command, "check", check)
    return verdicts


def stored(folder: Path, *seeds: int) -> Path:
    for seed in seeds:
        save(history(RECORDS, [fault("kill-leader", BEGAN + seed)], seed=seed), folder / f"run-{seed}")
    return folder


def report(folder: Path) -> dict[str, object]:
    told: dict[str, object] = json.loads((folder / "report.json").read_text())
    return told


def test_a_folder_of_histories_makes_one_report(
    tmp_path: Path, judged: dict[int, Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    judged.update({1: verdict(due_times=3), 2: verdict(due_times=4)})
    source, out = stored(tmp_path / "in", 1, 2), tmp_path / "out"
    assert command.main([str(source), "--out", str(out), "--replay", "make faults N=1 SEED={seed}"]) == 0
    told = report(out)
    assert [one["command"] for one in told["histories"]] == ["make faults N=1 SEED=1", "make faults N=1 SEED=2"]  # type: ignore[attr-defined]
    assert "7 due times" in (out / "report.html").read_text()
    said = capsys.readouterr().out
    assert "HELD: no violation in 7 due times" in said
    assert "report.html" in said


def test_single_histories_stand_in_the_order_given(tmp_path: Path, judged: dict[int, Verdict]) -> None:
    judged.update({1: verdict(), 2: verdict()})
    source = stored(tmp_path / "in", 1, 2)
    assert command.main([str(source / "run-2"), str(source / "run-1"), "--out", str(tmp_path / "out")]) == 0
    assert [one["seed"] for one in report(tmp_path / "out")["histories"]] == [2, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("broken", [verdict(violations=(violation(),)), verdict(due_times=0)])
def test_what_is_broken_or_judged_nothing_is_no_success(tmp_path: Path, judged: dict[int, Verdict], broken: Verdict) -> None:
    judged[1] = broken
    assert command.main([str(stored(tmp_path / "in", 1)), "--out", str(tmp_path / "out")]) == 1
    assert report(tmp_path / "out")["holds"] is False


def test_a_folder_without_history_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "no history here" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_history_that_cannot_be_judged_makes_no_report(
    tmp_path: Path, judged: dict[int, Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    judged.clear()
    assert command.main([str(stored(tmp_path / "in", 1)), "--out", str(tmp_path / "out")]) == 2
    assert "another world" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_troubles_that_a_run_noted_beside_its_history_break_it(
    tmp_path: Path, judged: dict[int, Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    """Older histories do not tell of them; each trouble is told once."""
    judged[1] = verdict()
    save(history(RECORDS, seed=1), tmp_path / "run" / "history")
    out = str(tmp_path / "out")
    (tmp_path / "run" / "verdict.json").write_text(json.dumps({"trouble": []}))
    assert command.main([str(tmp_path / "run"), "--out", out]) == 0
    (tmp_path / "run" / "verdict.json").write_text(json.dumps({"trouble": ["w1: exit 1"]}))
    assert command.main([str(tmp_path / "run"), "--out", out]) == 1
    assert report(tmp_path / "out")["troubles"] == ["by hand: w1: exit 1"]
    said = capsys.readouterr().out
    assert "BROKEN: no violation in 1 due times, but 1 trouble" in said
    assert "trouble: by hand: w1: exit 1" in said
    save(troubled(history(RECORDS, seed=1), "w1: exit 1"), tmp_path / "run" / "history")
    assert command.main([str(tmp_path / "run"), "--out", out]) == 1
    assert report(tmp_path / "out")["troubles"] == ["by hand: w1: exit 1"]
    (tmp_path / "run" / "verdict.json").write_text("[]")
    assert command.main([str(tmp_path / "run"), "--out", out]) == 2
    assert "not the verdict of a run" in capsys.readouterr().err


def troubled(told: History, *troubles: str) -> History:
    return replace(told, noted=replace(told.noted, troubles=troubles))


def test_a_history_with_a_trouble_is_nowhere_reported_as_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the real checker, from the folder of the history alone."""
    save(calm(1), tmp_path / "good")
    save(troubled(calm(1), "runs did not end in time"), tmp_path / "bad")
    assert command.main([str(tmp_path / "good"), "--out", str(tmp_path / "out")]) == 0
    assert "HELD" in capsys.readouterr().out
    assert command.main([str(tmp_path / "bad"), "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert "HELD" not in shown
    assert "but 1 trouble" in shown
    told = report(tmp_path / "out")
    assert told["holds"] is False
    assert [line.rpartition(": ")[2] for line in told["troubles"]] == ["runs did not end in time"]  # type: ignore[attr-defined]
    html = (tmp_path / "out" / "report.html").read_text()
    assert "The promise held" not in html
    assert "runs did not end in time" in html


def test_a_place_that_cannot_be_written_is_told_after_the_judgement(
    tmp_path: Path, judged: dict[int, Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    judged[1] = verdict()
    (tmp_path / "file").touch()
    assert command.main([str(stored(tmp_path / "in", 1)), "--out", str(tmp_path / "file" / "out")]) == 2
    told = capsys.readouterr()
    assert "HELD" in told.out
    assert "cannot be written to" in told.err
    assert len(told.err.splitlines()) == 1


def test_an_interrupted_report_leaves_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(told: History) -> Verdict:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "check", check)
    assert command.main([str(stored(tmp_path / "in", 1)), "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "proof.report: interrupted\n"
