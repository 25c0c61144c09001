"""The pure parts of the group-commit loop: what is read back, and the order within a transaction."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from dueline.scheduler.core.ports import Aborted, Outgoing, Received
from dueline.schemas.topics import Namespace
from dueline.schemas.work import EventKind, Outcome
from dueline.workers.attempt import StepDone
from dueline.workers.errors import StepError
from dueline.workers.events import STEP_KIND, Write
from dueline.workers.loop import groups, identity, refuse_produced, settle, standing
from dueline.workers.outcome import Ended
from dueline.workers.records import Origin
from dueline.workers.steps import Recorded

INC = "w1.00000001"
ORIGIN = Origin(namespace=Namespace("n"), worker="w1", queue="q", home=0)


def step(name: str, claim: int = 1, produced: tuple[Outgoing, ...] = (), incarnation: str = INC) -> Write:
    recorded = Recorded(attempt=1, encoding="json", result=b"1")
    answer: Future[None] = Future()
    done = StepDone(name=name, recorded=recorded, started_ms=0, finished_ms=0, produced=produced, answer=answer)
    return Write(
        id=(incarnation, claim), kind=STEP_KIND, name=name, record=ORIGIN.step((incarnation, claim), "r", 1, done),
        produced=produced, answer=answer,
    )  # fmt: skip


def finish(claim: int = 1) -> Write:
    ended = Ended(outcome=Outcome.SUCCESS)
    record = ORIGIN.finished((INC, claim), "r", 1, ended, started_ms=0, finished_ms=0, steps=(0, 0))
    return Write(id=(INC, claim), kind=EventKind.FINISHED, name="", record=record)


def read(write: Write, value: bytes | None = None) -> Received:
    return Received(
        topic=write.record.topic, partition=0, offset=0, append_ms=0, key=write.record.key, value=value or write.record.value
    )


def mail(text: bytes) -> Outgoing:
    return Outgoing(topic="mails", key=None, value=text)


def test_what_stands_in_the_log_is_known_by_claim_kind_and_step() -> None:
    writes = [step("a"), step("a", claim=2), finish()]
    assert standing([read(write) for write in writes], INC) == {identity(write) for write in writes}
    assert identity(step("b")) not in standing([read(write) for write in writes], INC)


def test_other_incarnations_and_foreign_records_do_not_stand_for_ours() -> None:
    assert standing([read(step("a", incarnation="w1.other")), read(step("a"), b"junk")], INC) == set()


def test_a_steps_records_are_flushed_before_its_completion() -> None:
    writes = [step("a", produced=(mail(b"1"), mail(b"2"))), finish(2), step("b")]
    assert groups(writes) == [[mail(b"1"), mail(b"2")], [write.record for write in writes]]
    assert groups([finish()]) == [[finish().record]]


def test_after_an_abort_steps_that_produced_are_refused_by_name_and_others_are_tried_again() -> None:
    innocent, suspect = step("a"), step("b", produced=(mail(b"1"),))
    assert refuse_produced([innocent, suspect], Aborted("no right")) == [innocent]
    assert suspect.answer is not None
    assert innocent.answer is not None
    with pytest.raises(StepError, match=r"step 'b'.*mails.*no right"):
        suspect.answer.result(0)
    assert not innocent.answer.done()


def test_an_answer_given_twice_is_given_once() -> None:
    write = step("a")
    settle(write)
    settle(write, StepError("late"))
    assert write.answer is not None
    assert write.answer.result(0) is None
    settle(finish())
