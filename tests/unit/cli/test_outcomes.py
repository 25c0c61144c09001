"""What commands that change something print with --json: one document that says what became of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dueline.scheduler.cli import commands, jobs
from dueline.scheduler.cli.main import run
from dueline.schemas.codec import Record
from dueline.schemas.job import Change
from dueline.schemas.run import Run, RunJob, RunState
from tests.unit.audit.worlds import EPOCH, make_version

VERSION = make_version(2, EPOCH, '{"every":"1m"}', change=Change.PAUSED)
RUNNING = Run(
    job=RunJob(id="menu", version=1, queue="q", handler="h", payload=""), due_ms=EPOCH, state=RunState.RUNNING, term=1
)
ENDED = Run(job=RUNNING.job, due_ms=EPOCH, state=RunState.CANCELLED, reason="enough", finished_ms=EPOCH, term=1)


@pytest.mark.parametrize(
    ("line", "answer", "said"),
    [
        ("jobs pause menu", VERSION, {"job": "menu", "outcome": "paused", "version": 2}),
        ("jobs pause menu", None, {"job": "menu", "outcome": "no-change", "version": None}),
        ("jobs resume menu --no-wait", None, {"job": "menu", "outcome": "sent", "effective": None}),
        ("jobs delete menu", None, {"outcome": "no-change"}),
        ("cancel menu@x", ENDED, {"run": "menu@x", "outcome": "cancelled", "reason": "enough"}),
        ("cancel menu@x", RUNNING, {"outcome": "asked"}),
        ("cancel menu@x --no-wait", None, {"outcome": "sent"}),
        ("accept-positions t.jobs", None, {"topic": "t.jobs", "outcome": "taken-up"}),
        ("accept-positions t.jobs --no-wait", None, {"outcome": "sent"}),
    ],
)
def test_an_outcome_is_one_document(
    line: str, answer: Record | None, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given what the ledger answers, then JSON names the command's id and its outcome, and nothing else is said."""
    for module in (jobs, commands):
        monkeypatch.setattr(module, "execute", lambda *_, **__: answer)
    assert run([*line.split(), "--json"]) == 0
    streams = capsys.readouterr()
    document = json.loads(streams.out)
    assert document["command"]
    assert document == {**document, **said}
    assert streams.err == ""
