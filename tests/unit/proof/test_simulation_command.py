"""`python -m proof.simulation`: arguments that ask for nothing, what a run that judged nothing ends with, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from proof.checker import __main__ as checker
from proof.history.store import load, save
from proof.simulation import __main__ as command
from proof.simulation.judge import judged
from proof.simulation.plan_check import wrong_with
from proof.simulation.runner import Report
from proof.simulation.setup import Setup
from tests.unit.proof.checker.histories import calm


def plan(fault: str) -> str:
    return f'{{"seed": 1, "hours": 1, "profile": "calm", "plan": [{"{" + fault + "}" if fault else ""}]}}'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "5..1"], "argument --seeds: '5..1' has no seed: nothing to prove"),
        (["--seeds", "a"], "argument --seeds: 'a' is neither a number nor A..B"),
        (["--seeds", "1.."], "argument --seeds: '1..' is neither"),
        (["--hours", "0"], "argument --hours: 0 is not more than 0 (nothing to prove)"),
        (["--hours", "-1"], "argument --hours: -1 is not more than 0 (nothing to prove)"),
        (["--hours", "nan"], "argument --hours: nan is not more"),
        (["--load", "0"], "argument --load: 0 is not more"),
        (["--setup", "{"], "argument --setup: no JSON"),
        (["--setup", '{"seed": 1}'], "argument --setup: not the setup of a world: no field 'plan'"),
        (["--setup", "[]"], "argument --setup: not the setup of a world"),
        (["--setup", '{"seed": 1, "hours": 1, "profile": "calm", "plan": [{"kind": "flood"}]}'], "'flood' is not a valid"),
        (["--setup", '{"seed": 1, "hours": 0, "profile": "calm", "plan": []}'], "0.0 is not more than 0"),
        (["--hours", "1e30"], "argument --hours: 1e30 is not more than 0 (nothing to prove) and at most 1000"),
        (["--setup", plan('"kind": "kill", "at_s": 9, "target": "s9"')], "plan[0] (kill): no process 's9': this seed has s1, s2"),
        (["--setup", plan('"kind": "cut", "at_s": 9, "target": "s1"')], "plan[0] (cut): no link 's1': CLIENT>BROKER"),
        (["--setup", plan('"kind": "broker-kill", "at_s": 9, "target": "9"')], "plan[0] (broker-kill): no broker '9'"),
        (["--setup", plan('"kind": "failpoint", "at_s": 9, "target": "s1", "act": "zz"')], "plan[0] (failpoint): no act 'zz'"),
        (["--setup", plan('"kind": "kill", "at_s": "x", "target": "s1"')], "plan[0] (kill): at_s 'x' is no number"),
        (["--setup", plan('"kind": "kill", "at_s": -5, "target": "s1"')], "plan[0] (kill): at_s -5 is no number from 0 on"),
        (["--setup", plan(""), "--seeds", "3"], "argument --seeds: not allowed with argument --setup"),
        (["--rule", "L99"], "argument --rule: no rule 'L99'; there are L1, "),
        (["--jobs", "0"], "argument --jobs: 0 is not at least 1"),
        (["--jobs", "two"], "argument --jobs: 'two' is no number"),
        (["--log", "loud"], "argument --log: no level 'loud'; there are debug"),
    ],
)
def test_arguments_that_ask_for_nothing_are_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err.splitlines()[-1]
    assert "Traceback" not in told.err


@pytest.mark.parametrize("argument", ["--save", "--shrink"])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_done(
    argument: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        command.main([argument, str(tmp_path / "file" / "out")])
    assert ended.value.code == 2
    assert f"error: {argument} {tmp_path}/file/out: Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize(("due_times", "lines", "code"), [(3, (), 0), (0, (), 2), (3, ("lost: a",), 1), (0, ("lost: a",), 1)])
def test_a_run_that_judged_nothing_is_no_success(
    due_times: int, lines: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_many(setups: list[Setup], *, jobs: int, rule: str) -> Iterator[Report]:
        for setup in setups:
            yield Report(setup=setup, lines=lines, due_times=due_times)

    monkeypatch.setattr(command, "run_many", run_many)
    assert command.main(["--seeds", "1..2", "--hours", "0.1"]) == code
    assert capsys.readouterr().err == ("nothing to judge: no due time\n" if code == 2 else "")


def test_what_a_process_may_not_do_is_kept_with_the_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No record shows a thread that broke: the stored history tells of it, or it would be judged to hold."""
    setup = Setup(seed=1, plan=())
    assert judged(setup, calm(1), [], cpu_s=0.0, steps=0).holds
    found = judged(setup, calm(1), ["w1: a thread ended with ValueError"], cpu_s=0.0, steps=0)
    assert (found.holds, found.verdict.holds, found.lines()) == (False, False, ["w1: a thread ended with ValueError"])
    save(found.history, tmp_path)
    assert load(tmp_path).noted.troubles == found.findings
    assert checker.main([str(tmp_path)]) == 1
    assert "BROKEN: 1 trouble\n  trouble: w1: a thread ended with ValueError" in capsys.readouterr().out


def test_every_kept_plan_can_strike() -> None:
    folder = Path(__file__).parents[2] / "simulation"
    kept = [*folder.glob("controls/*.json"), *folder.glob("regressions/*.json")]
    assert kept
    wrong = {path.name: wrong_with(Setup.from_json(json.loads(path.read_text()))) for path in kept}
    assert [name for name, found in wrong.items() if found] == []
