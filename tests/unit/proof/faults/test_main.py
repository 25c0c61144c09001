"""What the command says and ends with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from proof.checker import __main__ as checker
from proof.checker.trouble import CannotJudge
from proof.faults import __main__ as main
from proof.faults.notes import Notebook
from proof.faults.plan import Plan
from proof.faults.world import forget
from proof.history.acts import Bounds, Fault, Noted
from proof.history.history import History
from proof.history.store import REST, load
from proof.history.verdict import Verdict
from tests.unit.proof.checker.histories import calm

PLAN = Plan(faults=250, seed=1, out=Path("nowhere"))
FINE = Verdict(violations=(), due_times=1, runs=1)


def told(faults: tuple[Fault, ...] = (), notes: tuple[str, ...] = ()) -> History:
    return History(
        title="", seed=1, prefix="p", began_ms=0, judged_ms=0, log={}, noted=Noted(faults=faults, notes=notes),
        bounds=Bounds(lateness_ms=0, skew_ms=0, worker_timeout_ms=0, session_ms=0),
    )  # fmt: skip


def test_each_fault_is_counted_as_it_begins_and_what_struck_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    screen = main.Screen(PLAN, quiet=False)
    notes = Notebook(screen.fault)
    notes.fault("link-cut", "s1>b1").end()
    notes.missed("endtxn-delayed", "s1", 0, "error code 47")
    notes.instant("kill-leader", "s1")
    lines = [line.split("s  ", 1)[1].split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[:2] for line in lines] == [["1/250", "link-cut"], ["struck", "nothing:"], ["2/250", "kill-leader"]]
    assert lines[1][-3:] == ["error", "code", "47"]


def test_a_trouble_breaks_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    broken = replace(FINE, troubles=("w1: exit 1",))
    assert main.document(told(), FINE)["holds"]
    said = main.document(told(notes=("s1: exit 70",)), broken)
    assert (said["holds"], said["trouble"], said["notes"]) == (False, ["w1: exit 1"], ["s1: exit 70"])
    main.Screen(PLAN, quiet=False).verdict(told(), broken)
    shown = capsys.readouterr().out
    assert "TROUBLE w1: exit 1" in shown
    assert "the promise held" not in shown
    main.Screen(PLAN, quiet=False).verdict(told(), FINE)
    assert "the promise held" in capsys.readouterr().out


def test_the_document_counts_what_struck_and_what_did_not() -> None:
    faults = tuple(Fault(kind="link-cut", target="w1", began_ms=0, ended_ms=0, struck=struck) for struck in (True, True, False))
    said = main.document(told(faults), FINE)
    assert (said["faults"], said["not_struck"]) == ({"link-cut": 2}, {"link-cut": 1})


def test_what_an_earlier_run_left_is_not_taken_for_this_one_s(tmp_path: Path) -> None:
    for name in ("effects", "s1.log", "w2.failpoints", "x8.log", "s1.clock", "nursery.log", "harness.log", "verdict.json"):
        (tmp_path / name).touch()
    forget(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["harness.log", "verdict.json"]


# --- the command, with a run that is over at once ---------------------------------------------------------------------


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[History | BaseException]:
    """What the next runs come to, in order."""
    results: list[History | BaseException] = []

    def run(*_: object) -> History:
        result = results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(main, "run", run)
    monkeypatch.setattr(main, "heed_interruptions", lambda: None)
    return results


def command(out: Path, *more: str) -> int:
    return main.main(["--faults", "1", "--seed", "1", "--out", str(out), *more])


def troubled(line: str) -> History:
    history = calm(1)
    return replace(history, noted=replace(history.noted, troubles=(line,), notes=("s1: exit 70",)))


def test_a_run_that_broke_is_stored_as_one(
    tmp_path: Path, ran: list[History | BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    ran += [troubled("4 runs did not end in time")]
    assert command(tmp_path) == 1
    stored = load(tmp_path / "history")
    assert (stored.noted.troubles, stored.noted.notes) == (("4 runs did not end in time",), ("s1: exit 70",))
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["holds"], len(report["troubles"]), len(report["notes"])) == (False, 1, 1)
    capsys.readouterr()
    assert checker.main([str(tmp_path / "history")]) == 1
    shown = capsys.readouterr().out
    assert "BROKEN: 1 trouble\n  trouble: 4 runs did not end in time" in shown
    assert "\nholds" not in shown
    assert checker.main([str(tmp_path / "history"), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["holds"], said["violations"], said["troubles"]) == (False, [], ["4 runs did not end in time"])


def test_a_finished_run_is_not_lost_unless_that_is_asked_for(
    tmp_path: Path, ran: list[History | BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    ran += [troubled("first"), calm(1), KeyboardInterrupt()]
    assert command(tmp_path) == 1
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        command(tmp_path)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{tmp_path} holds a finished run: give another --out, or --again" in said
    assert load(tmp_path / "history").noted.troubles == ("first",)
    assert command(tmp_path, "--again") == 0
    assert load(tmp_path / "history").noted.troubles == ()
    assert command(tmp_path, "--again") == 130
    assert not (tmp_path / "verdict.json").exists(), "an earlier verdict beside the logs of a run that did not end"
    assert not (tmp_path / "history" / REST).exists()


def test_without_a_folder_each_run_has_one_of_its_own(
    tmp_path: Path, ran: list[History | BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "PLACE", tmp_path)
    ran += [calm(1), calm(1), calm(1)]
    for more in ([], [], ["--again"]):
        assert main.main(["--seed", "7", *more]) == 0
    assert sorted(place.name for place in tmp_path.iterdir()) == ["7", "7-2"]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted: every process was ended"),
        (TimeoutError("no leader"), 2, "the run could not be done: no leader"),
        (AssertionError(), 2, "the run could not be done: AssertionError"),
        (CannotJudge("strange"), 2, "the history cannot be judged: strange"),
    ],
)
def test_what_ends_a_run_is_said_in_one_line(
    tmp_path: Path, ran: list[History | BaseException], capsys: pytest.CaptureFixture[str], error: BaseException, code: int,
    said: str,
) -> None:  # fmt: skip
    ran.append(error)
    assert command(tmp_path) == code
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


def test_a_place_that_cannot_be_written_is_told_before_anything_is_done(
    tmp_path: Path, ran: list[History | BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert command(tmp_path / "file" / "out") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "--out" in line
    assert "Not a directory" in line
    assert ran == []


@pytest.mark.parametrize(
    "wrong",
    [
        ["--faults", "0"], ["--session", "nan"], ["--session", "1e6"], ["--session", "0.5"], ["--apart", "-1"],
        ["--kinds", "kill-everything"], ["--nodes", "2"],
    ],
)  # fmt: skip
def test_arguments_that_ask_for_nothing_are_refused(tmp_path: Path, wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(tmp_path / "out", *wrong)
    assert ended.value.code == 2
    assert not (tmp_path / "out").exists()
