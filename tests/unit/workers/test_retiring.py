"""The last word of an incarnation: `stopped` only when both its writers say that all they wrote can be read, else `lost`."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.work import Signal, SignalKind, WorkerState
from dueline.workers.claim import Claims
from dueline.workers.events import LeftGroup, Opened, SignalsRead, SignedOff
from dueline.workers.incarnation import Incarnation
from dueline.workers.worker import Worker
from tests.unit.leader.manual import ManualClock

NAME = "w.00000001"


class Stage:
    """A worker with one incarnation that holds nothing, asked to stop."""

    def __init__(self) -> None:
        clock, parts = ManualClock(wall_ms=0), MagicMock()
        parts.offers.take.return_value = parts.offers.seek.return_value = None
        self.said: list[WorkerState] = []
        heart = MagicMock(next_s=float("inf"))
        heart.beat.side_effect = lambda *, state, **_: self.said.append(state)
        self.commits, self.claiming = MagicMock(idle=True), MagicMock(flying=False)
        one = Incarnation(
            name=NAME, state=WorkerState.RUNNING, claiming=self.claiming, commits=self.commits, heart=heart, lease=MagicMock(),
            looks=MagicMock(),
        )
        self.worker = Worker(
            clock=clock, registry=parts, settings=MagicMock(drain_timeout_s=30.0),
            claims=Claims(slots=1, start_bound_s=1.0), offers=parts.offers, acts=parts, log_clock=MagicMock(offset_s=None),
            open_incarnation=parts, seek=parts,
        )  # fmt: skip
        self.worker.tick([Opened(incarnation=one)])
        self.worker.drain()

    def tick(self, *events: Any) -> WorkerState:
        self.worker.tick(events)
        return self.said[-1]

    @property
    def asked(self) -> list[int]:
        return [self.commits.sign_off.call_count, self.claiming.sign_off.call_count]


def answer(*, readable: bool) -> SignedOff:
    return SignedOff(incarnation=NAME, readable=readable)


def test_it_says_nothing_before_both_have_answered_and_asks_once() -> None:
    stage = Stage()
    assert (stage.tick(), stage.asked) == (WorkerState.DRAINING, [0, 0])  # the group is not left
    assert (stage.tick(LeftGroup()), stage.asked) == (WorkerState.DRAINING, [1, 1])
    assert stage.tick() == WorkerState.DRAINING
    assert stage.tick(answer(readable=True)) == WorkerState.DRAINING
    assert not stage.worker.over
    assert stage.tick(answer(readable=True)) == WorkerState.STOPPED
    assert (stage.worker.over, stage.asked) == (True, [1, 1])


@pytest.mark.parametrize("answers", [[False], [True, False], [False, True], [False, False]])
def test_one_of_them_that_cannot_tell_is_enough_to_ask_to_be_fenced(answers: list[bool]) -> None:
    stage = Stage()
    stage.tick(LeftGroup())
    assert stage.tick(*(answer(readable=each) for each in answers)) == WorkerState.LOST
    said = list(stage.said)
    assert stage.worker.over
    stage.tick(answer(readable=True))  # late
    assert stage.said == said


def test_who_is_fenced_meanwhile_is_lost_whatever_the_answers() -> None:
    stage = Stage()
    stage.tick(LeftGroup())
    signal = Signal(kind=SignalKind.FENCED, incarnation=NAME, claim=0, run="", attempt=0, reason="silent")
    record = MagicMock(value=encode(signal))
    assert stage.tick(SignalsRead(records=[record])) == WorkerState.LOST
    assert stage.tick(answer(readable=True), answer(readable=True)) == WorkerState.LOST
    assert stage.worker.over


def test_what_came_to_nothing_before_is_not_asked_for() -> None:
    """Given an incarnation that is to be fenced anyway."""
    stage = Stage()
    stage.worker.incarnations[NAME].lost = True
    assert stage.tick(LeftGroup()) == WorkerState.LOST
    assert stage.asked == [0, 0]
