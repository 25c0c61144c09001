"""The pure parts of the group-commit loop: what is read back, and the order within a transaction."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from dueline.scheduler.core.ports import Aborted, Outgoing, Received
from dueline.scheduler.kafka.errors import TopicMissing, WriteNotAuthorized
from dueline.schemas.topics import Namespace
from dueline.schemas.work import EventKind, Outcome
from dueline.workers.attempt import StepDone
from dueline.workers.errors import StepError
from dueline.workers.events import STEP_KIND, Write
from dueline.workers.loop import groups, identity, refuse_produced, settle, standing, suspects
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


def mail(text: bytes, topic: str = "mails") -> Outgoing:
    return Outgoing(topic=topic, key=None, value=text)


def aborted(
    topic: str = "", *, refused: tuple[int, ...] = (), too_large: tuple[int, ...] = (), definite: bool = False
) -> Aborted:
    error = Aborted("too large")
    error.topic, error.refused, error.too_large, error.definite = topic, refused, too_large, definite
    return error


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


def test_after_an_abort_the_guilty_step_is_refused_by_name_and_others_are_tried_again() -> None:
    innocent, guilty = step("a"), step("b", produced=(mail(b"1"),))
    assert refuse_produced([innocent, guilty], Aborted("no right"), [guilty]) == [innocent]
    assert guilty.answer is not None
    assert innocent.answer is not None
    with pytest.raises(StepError, match=r"step 'b'.*mails.*no right"):
        guilty.answer.result(0)
    assert not innocent.answer.done()


def test_only_the_step_whose_record_was_refused_fails() -> None:
    """Given a batch of producing steps of which one has a record that is too large, then it alone is refused, by name."""
    batch = [step("a", produced=(mail(b"1"),)), step("b", produced=(mail(b"1"), mail(b"2" * 900))), finish(2), step("c"),
             step("d", produced=(mail(b"3"),))]  # fmt: skip
    error = aborted("mails", refused=(2,), too_large=(2,))
    kept = refuse_produced(batch, error, suspects(batch, error))
    assert [write.name for write in kept] == ["a", "", "c", "d"]
    assert batch[1].answer is not None
    with pytest.raises(StepError, match=r"step 'b'.*mails.*too large"):
        batch[1].answer.result(0)


def test_small_records_that_were_refused_with_a_large_one_are_tried_again() -> None:
    """Given what travelled together and was refused together, then only those about as large as the largest are meant."""
    batch = [step("a", produced=(mail(b"1"),)), step("b", produced=(mail(b"2" * 900),)), step("c", produced=(mail(b"3" * 500),))]
    error = aborted("mails", refused=(0, 1, 2), too_large=(0, 1, 2))
    assert [write.name for write in suspects(batch, error)] == ["b", "c"]


def test_size_is_no_reason_where_records_were_refused_for_another_one() -> None:
    """Given a small record without the key that its topic wants, beside a large one that is too large, then both are meant."""
    batch = [step("a", produced=(mail(b"1"),)), step("b", produced=(mail(b"2" * 900),)), step("c", produced=(mail(b"3"),))]
    assert [write.name for write in suspects(batch, aborted("mails", refused=(0,)))] == ["a"]
    assert [write.name for write in suspects(batch, aborted("mails", refused=(0, 1), too_large=(1,)))] == ["a", "b"]
    assert [write.name for write in suspects(batch, aborted("mails", refused=(0, 1)))] == ["a", "b"]


def test_the_size_of_a_record_is_that_of_all_its_parts() -> None:
    large = Outgoing(topic="mails", key=b"k" * 500, value=b"", headers=(("h", b"h" * 500),))
    batch = [step("a", produced=(mail(b"1"),)), step("b", produced=(large,))]
    assert [write.name for write in suspects(batch, aborted("mails", refused=(0, 1), too_large=(0, 1)))] == ["b"]


def test_a_topic_that_is_not_there_or_not_ours_is_the_fault_of_who_writes_to_it() -> None:
    batch = [step("a", produced=(mail(b"1"),)), step("b", produced=(mail(b"1", "bills"),)), finish(2)]
    assert [write.name for write in suspects(batch, aborted("bills", definite=True))] == ["b"]
    assert suspects(batch, aborted("somebody-elses", definite=True)) == []
    missing, denied = TopicMissing("bills"), WriteNotAuthorized("topic 'bills'", "WRITE")
    assert [[write.name for write in suspects(batch, error)] for error in (missing, denied)] == [["b"], ["b"]]


def test_a_topic_that_did_not_answer_and_a_reason_that_is_not_known_are_nobodys_fault() -> None:
    batch = [step("a", produced=(mail(b"1"),)), step("b", produced=(mail(b"1", "bills"),))]
    late = aborted()
    late.partitions = (("bills", -1),)
    assert [suspects(batch, error) for error in (late, aborted("bills"), aborted())] == [[], [], []]


def test_an_answer_given_twice_is_given_once() -> None:
    write = step("a")
    settle(write)
    settle(write, StepError("late"))
    assert write.answer is not None
    assert write.answer.result(0) is None
    settle(finish())
