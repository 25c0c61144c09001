"""What the leader left out is said once, with its place and its traceback."""

from __future__ import annotations

import logging

import pytest

from dueline.scheduler.core.guard import Culprits
from dueline.scheduler.core.ports import Received
from dueline.scheduler.core.state import State
from dueline.scheduler.core.trouble import Trouble, trouble_of
from dueline.scheduler.leader import decoding
from dueline.scheduler.leader.quarantine import Quarantine
from dueline.schemas.job import Change, Job, JobVersion


def trouble(text: str) -> Trouble:
    """As planning meets it."""
    try:
        raise ZeroDivisionError(text)
    except ZeroDivisionError as error:
        return trouble_of(error)


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said, by name."""
    return [getattr(record, "action", "") for record in caplog.records]


def test_a_job_set_aside_is_said_once_and_again_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """Given the same trouble in each round, then one line with job and traceback; then one that it is over."""
    quarantine, state = Quarantine(), State()
    state.set_aside("menu", trouble("first"))
    for _ in range(3):
        quarantine.set_aside(state)
    assert actions(caplog) == ["quarantine_job"]
    assert "menu" in caplog.text
    assert "Traceback" in caplog.text
    state.set_aside("menu", trouble("second"))
    quarantine.set_aside(state)
    with caplog.at_level(logging.WARNING):
        state.aside.clear()
        quarantine.set_aside(state)
        quarantine.set_aside(state)
    assert actions(caplog) == ["quarantine_job", "quarantine_job", "quarantine_over"]


def test_inputs_are_said_each_and_a_worker_once(caplog: pytest.LogCaptureFixture) -> None:
    """Given a worker whose heartbeats meet a bug each second, then it is said once; each input has its line."""
    quarantine, met = Quarantine(), Culprits(reads={("control", 0, 7): trouble("x")}, workers={"w.1": trouble("y")})
    quarantine.left_out(met)
    quarantine.left_out(Culprits(workers=met.workers))
    assert actions(caplog) == ["quarantine_input", "quarantine_worker"]
    assert "control[0] offset 7" in caplog.text


def test_a_record_that_decoding_cannot_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a bug in the decoder, then the record has a problem with its place, and nothing is raised."""

    def broken(_: bytes) -> object:
        raise RecursionError("too deep")

    monkeypatch.setattr(decoding, "parse_job", broken)
    read = decoding.read_job(Received(topic="jobs", partition=0, offset=3, append_ms=1, key=b"menu", value=b"["))
    assert read.problem is not None
    assert read.problem.error == "internal-error"
    assert "jobs[0] offset 3" in read.problem.detail


def test_a_stored_schedule_that_does_not_compile_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Given one that this release does not understand, one that raises in the engine, a deleted one and a good one; then
    the first two are errors, and all of the ledger is read."""
    state = State()
    schedules = {"bad": '{"every": "1m", "colour": "red"}', "gone": '"nonsense"', "good": '{"every": "1m"}', "odd": "[" * 9_999}
    for job_id, schedule in schedules.items():
        change = Change.DELETED if job_id == "gone" else Change.DEFINED
        assert state.apply(
            JobVersion(
                job=job_id, version=1, change=change, effective_ms=0, paused=False,
                definition=Job(id=job_id, schedule=schedule, handler="h"),
                source_topic="jobs", source_partition=0, source_offset=0, source_ms=0, term=0,
            )
        )  # fmt: skip
    Quarantine().say_uncompiled(state)
    assert [getattr(record, "job", "") for record in caplog.records] == ["bad", "odd"]
    assert actions(caplog) == ["schedule_uncompiled"] * 2
