"""`dueline next`: the table, its remarks, its JSON, and its refusals, without a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dueline.scheduler.cli.errors import CommandError
from dueline.scheduler.cli.next import next_command
from dueline.scheduler.cli.session import Session

app = typer.Typer()


@app.callback()
def root(context: typer.Context) -> None:
    context.obj = Session()


app.command("next")(next_command)


def answer(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["next", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_gap_day_carries_a_remark() -> None:
    lines = answer("30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07", "--count", "4").splitlines()
    assert lines[0] == "At 02:30, America/New_York"
    assert [line[:20] for line in lines[2:]] == [
        "2026-03-07T07:30:00Z",
        "2026-03-08T07:00:00Z",
        "2026-03-09T06:30:00Z",
        "2026-03-10T06:30:00Z",
    ]
    assert "Sun 2026-03-08 03:00 -04:00" in lines[3]
    assert ["does not exist" in line for line in lines[2:]] == [False, True, False, False]


@pytest.mark.parametrize(
    ("zone", "start", "text", "remark"),
    [
        ("Antarctica/Troll", "2026-10-25", "30 1 * * *", "first showing of 01:30"),
        ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", "02:15 does not exist (clocks go from 02:00 to 02:30)"),
        ("Pacific/Apia", "2011-12-29", "30 2 * * *", "2011-12-30 02:30 does not exist"),
    ],
)
def test_odd_zones(zone: str, start: str, text: str, remark: str) -> None:
    assert remark in answer(text, "--tz", zone, "--from", start, "--count", "2")


def test_json_and_a_calendar_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "calendar.yaml"
    file.write_text("exclude: 2026-12-31\nholidays: DE\n", encoding="utf-8")
    text = answer("0 9 * * *", "--calendar", str(file), "--from", "2026-12-30", "--count", "2", "--json")
    shown = json.loads(text)
    assert [due["utc"] for due in shown["due"]] == ["2026-12-30T09:00:00Z", "2027-01-02T09:00:00Z"]
    assert shown["zone"] == "UTC"


def test_any_kind_of_schedule() -> None:
    assert "2026-01-31T00:00:00Z" in answer("{monthly: 1, anchor: 2026-01-31T00:00Z}", "--from", "2026-01-01", "--count", "1")
    assert "2026-01-01T03:00:00Z" in answer("0 0 3 ? * *", "--dialect", "quartz", "--from", "2026-01-01", "--count", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("61 * * * *",), "outside 0-59"),
        (("0 1 * * *", "--tz", "Europe/Berln"), "did you mean: Europe/Berlin"),
        (("0 1 * * *", "--calendar", "/does/not/exist"), "can't be read"),
        (("0 1 * * *", "--from", "yesterday"), "is no time"),
        (("H 1 * * *",), "job id"),
        (("{every: 5m, colour: red}",), "no such key"),
    ],
)
def test_refusals_teach(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        answer(*arguments)
