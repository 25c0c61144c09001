"""`dueline run show`: why a run waits, and how an attempt ended of whose end its worker told nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dueline.scheduler.audit.evidence import Place, Seen
from dueline.scheduler.audit.readmodel import Attempts, RunTrail
from dueline.scheduler.cli.fleet import STALE_AFTER_S, why_waiting
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.runs import _attempts_json, _show_run
from dueline.scheduler.cli.session import display_of
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, WorkerState
from tests.unit.audit.worlds import EPOCH, make_run, make_version

RUN = replace(make_run(make_version(1, EPOCH), EPOCH, -1), state=RunState.WAITING, reason=Waiting.NO_WORKER)
QUEUE, HANDLER = RUN.job.queue, RUN.job.handler


def beat(*handlers: str, state: str = WorkerState.RUNNING, age_s: float = 0, queue: str = QUEUE) -> tuple[Place, Heartbeat]:
    """A worker's last heartbeat, so old."""
    place = Place(topic="t.workers", partition=0, offset=0, append_ms=EPOCH - int(age_s * 1000))
    shown = Heartbeat(
        incarnation="w.1", worker="w", queue=queue, home=0, state=state, seq=1, slots=1, handlers=list(handlers), partitions=[0]
    )
    return place, shown


@pytest.mark.parametrize(
    ("beats", "said"),
    [
        ([], f"no worker of queue {QUEUE} is running"),
        ([beat(HANDLER, queue="elsewhere")], f"no worker of queue {QUEUE} is running"),
        ([beat(HANDLER, age_s=STALE_AFTER_S + 1)], f"no worker of queue {QUEUE} is running"),
        ([beat(HANDLER, state=WorkerState.STOPPED)], f"no worker of queue {QUEUE} is running"),
        ([beat("other", "another")], f"no worker with handler {HANDLER}; the workers of queue {QUEUE} have: another, other"),
        ([beat("other"), beat(HANDLER)], f"no worker with handler {HANDLER} has a free slot"),
    ],
)
def test_what_a_run_waits_for_is_said(beats: list[tuple[Place, Heartbeat]], said: str) -> None:
    """Given the fleet, then the line says what is missing and what to do."""
    assert said in why_waiting(RUN, beats, EPOCH)


def test_a_run_that_waits_for_something_else_is_not_explained_by_workers() -> None:
    """Given a retry that has its time, or a run that has begun, then nothing is said of workers."""
    assert why_waiting(replace(RUN, reason=Waiting.RETRY), [], EPOCH) == ""
    assert why_waiting(replace(RUN, state=RunState.RUNNING, reason=""), [], EPOCH) == ""


def trail(*records: Run) -> RunTrail:
    """A run as these records tell it."""
    seen = [Seen(place=place(offset), key=RUN.key, record=record) for offset, record in enumerate(records)]
    made = RunTrail(key=RUN.key, last=seen[0], first=seen[0].place)
    for each in seen:
        made.add(each)
    return made


def place(offset: int) -> Place:
    """Where a record stands."""
    return Place(topic="t.runs", partition=0, offset=offset, append_ms=EPOCH + offset)


def granted(attempt: int) -> Run:
    """An attempt that a worker holds."""
    return replace(
        RUN, state=RunState.RUNNING, reason="", attempt=attempt, incarnation=f"w.{attempt}", worker="w", claim=attempt, home=0
    )


def claims(*numbers: int) -> Attempts:
    """What the workers told: that they claimed, and nothing else."""
    attempts = Attempts()
    attempts.events[RUN.key] = [
        Seen(
            place=place(number),
            key=RUN.key,
            record=AttemptEvent(
                kind=EventKind.CLAIMED, run=RUN.key, attempt=number, claim=number, incarnation=f"w.{number}", worker="w",
                queue=QUEUE, home=0,
            ),
        )
        for number in numbers
    ]  # fmt: skip
    return attempts


@pytest.mark.parametrize(
    ("records", "outcomes", "words"),
    [
        ([granted(1)], [None], ["no end recorded yet"]),
        ([granted(1), granted(2)], ["worker-lost", None], ["worker lost", "no end recorded yet"]),
        ([granted(1), replace(RUN, attempt=1, reason=Waiting.LOST)], ["worker-lost"], ["worker lost"]),
        ([granted(1), replace(RUN, attempt=1, state=RunState.FAILED, reason="worker-lost")], ["worker-lost"], ["worker lost"]),
    ],
    ids=["runs", "goes on elsewhere", "waits", "failed"],
)
def test_an_attempt_whose_worker_was_killed_is_shown_as_lost(
    records: list[Run], outcomes: list[str | None], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Given attempts that were granted and never ended, then each that the run went on from is lost, not open."""
    run, told = trail(*records), claims(*range(1, len(outcomes) + 1))
    documents: list[Any] = _attempts_json(run, told, [])
    assert [document["outcome"] for document in documents] == outcomes
    _show_run(Output(), display_of("UTC"), run, told, [])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("attempt ")]
    assert [word in line for word, line in zip(words, lines, strict=True)] == [True] * len(words)
