"""A history in a folder, and the command that judges it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dueline.schemas.job import JobVersion
from proof.checker.__main__ import main
from proof.checker.check import check
from proof.history.store import EFFECTS, LOG, PUBLISHED, REST, StoreError, load, save
from tests.unit.proof.checker.drop import drop_run
from tests.unit.proof.checker.edit import changed, record_of
from tests.unit.proof.checker.histories import calm, squall
from tests.unit.proof.checker.honest import VERSIONS
from tests.unit.proof.checker.world import World, job


def test_a_history_comes_back_as_it_was(tmp_path: Path) -> None:
    for seed, make in enumerate((calm, squall)):
        history = make(1)
        save(history, tmp_path / str(seed))
        listed = {place: list(entries) for place, entries in history.log.items()}
        assert load(tmp_path / str(seed)) == replace(history, log=listed)


def test_the_same_history_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(squall(1), tmp_path / name)
    for file in (LOG, PUBLISHED, EFFECTS, REST):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def _cut_log(folder: Path) -> None:
    data = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(data[: len(data) // 2])


def _wrong_entry(folder: Path) -> None:
    lines = gzip.decompress((folder / LOG).read_bytes()).splitlines()
    lines[2] = b'["t", 0, "one", 5, null, null]'
    (folder / LOG).write_bytes(gzip.compress(b"\n".join(lines)))


def _unknown_field(folder: Path) -> None:
    first, _, rest = (folder / EFFECTS).read_text().partition("\n")
    (folder / EFFECTS).write_text(json.dumps({**json.loads(first), "mood": "good"}) + "\n" + rest)


def _no_record(folder: Path) -> None:
    (folder / LOG).write_bytes(gzip.compress(b""))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_cut_log, f"{LOG}: Compressed file ended"),
        (lambda folder: (folder / LOG).write_bytes(b""), f"{LOG}: holds no record"),
        (_no_record, f"{LOG}: holds no record"),
        (lambda folder: (folder / LOG).unlink(), f"{LOG}: No such file or directory"),
        (_wrong_entry, f"{LOG}, line 3: offset is 'one'"),
        (_unknown_field, f"{EFFECTS}, line 1: Effect has no mood"),
        (lambda folder: (folder / PUBLISHED).unlink(), PUBLISHED),
        (lambda folder: (folder / REST).write_text("{}"), "no field 'partitions'"),
    ],
    ids=["cut", "empty", "no record", "no log", "type", "field", "missing", "rest"],
)
def test_a_damaged_folder_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: Callable[[Path], object], said: str
) -> None:
    save(calm(1), tmp_path)
    harm(tmp_path)
    with pytest.raises(StoreError) as error:
        load(tmp_path)
    assert said in str(error.value)
    assert main([str(tmp_path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"cannot judge: {tmp_path}")
    assert said in line


def test_troubles_and_notes_are_kept_and_an_older_history_has_none(tmp_path: Path) -> None:
    history = calm(1)
    noted = replace(history.noted, troubles=("w1: exit 1:\nlast words",), notes=("s1: exit 70",))
    save(replace(history, noted=noted), tmp_path)
    assert load(tmp_path).noted == noted
    rest = json.loads((tmp_path / REST).read_text())
    older = {name: value for name, value in rest.items() if name not in ("troubles", "notes")}
    (tmp_path / REST).write_text(json.dumps(older))
    assert load(tmp_path).noted == history.noted
    (tmp_path / REST).write_text(json.dumps({**older, "troubles": "w1"}))
    with pytest.raises(StoreError, match="troubles is 'w1'"):
        load(tmp_path)


def test_a_trouble_breaks_a_history_in_which_nothing_else_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = calm(1)
    save(replace(history, noted=replace(history.noted, troubles=("2 runs did not end in time",))), tmp_path)
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.endswith("\nBROKEN: 1 trouble\n  trouble: 2 runs did not end in time\n")
    assert main([str(tmp_path), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["holds"], said["troubles"], said["violations"]) == (False, ["2 runs did not end in time"], [])


def test_the_command_says_whether_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(calm(1), tmp_path / "good")
    assert main([str(tmp_path / "good")]) == 0
    told = capsys.readouterr().out
    assert "\nholds" in told
    found = check(calm(1))
    assert set(found.ends) == {"cancelled", "failed", "succeeded"}
    ends = ", ".join(f"{found.ends[end]} {end}" for end in ("cancelled", "failed", "succeeded"))
    assert f"\ndue times {found.due_times}: {ends}\n" in told
    assert "faults 0, and 0 that did not strike" in told
    key, broken = next(drop_run(calm(1)))
    save(broken, tmp_path / "bad")
    assert main([str(tmp_path / "bad"), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["holds"] is False
    assert {"kind": "missed", "subject": key} == {name: verdict["violations"][0][name] for name in ("kind", "subject")}


def test_a_history_without_a_due_time_is_not_one_that_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(World(1).history(2), tmp_path)
    assert main([str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert "NOTHING TO JUDGE" in told.out and "\nholds" not in told.out
    assert told.err == "nothing to judge: no due time\n"


def test_a_schedule_that_it_does_not_know_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = World(1).at(0.1, job("a", schedule={"every": "1s"})).history(2)
    version = next(record for record in map(record_of, history.log[VERSIONS, 0]) if isinstance(record, JobVersion))
    strange = replace(version, definition=replace(version.definition, schedule='{"rrule":"FREQ=DAILY"}'))
    save(changed(history, (VERSIONS, 0), 1, strange), tmp_path)
    assert main([str(tmp_path)]) == 2
    assert "proof.job-versions[0]@" in capsys.readouterr().err
