"""A worker whose transactions are aborted again and again comes back more and more slowly, and at once after a good while."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from dueline.schemas.work import WorkerState
from dueline.workers.events import InDoubt, Opened
from dueline.workers.worker import FIRST_PAUSE_S, LAST_PAUSE_S, SHORT_LIFE_S, Worker
from tests.unit.leader.manual import ManualClock


def incarnation(name: str) -> Any:
    """One that takes work, and does nothing."""
    made = MagicMock(state=WorkerState.RUNNING, idle=False)
    made.name, made.takes_work = name, True
    return made


def test_an_abort_loop_slows_down() -> None:
    """Given incarnations that give up at once, then the pauses before the next grow to a bound; one that lived for a while is
    followed at once."""
    clock, pauses, parts = ManualClock(), list[float](), MagicMock()
    worker = Worker(
        clock=clock, registry=parts, settings=parts, claims=parts, offers=parts, acts=parts, log_clock=parts,
        open_incarnation=pauses.append, seek=parts,
    )  # fmt: skip
    worker.start()
    for number in range(9):
        life_s = 0.5 if number != 7 else SHORT_LIFE_S + 1
        worker._handle(Opened(incarnation=incarnation(f"w.{number}")))
        clock.pass_s(life_s)
        worker._handle(InDoubt(incarnation=f"w.{number}", error="aborted"))
    assert pauses[:4] == [0.0, FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert max(pauses) == LAST_PAUSE_S
    assert pauses[-2:] == [0.0, FIRST_PAUSE_S]
