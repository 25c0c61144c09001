"""Refusals that could not go in their transaction: they follow by a writer of their own, again and again, but not for ever."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.ports import Delivered, Outgoing
from dueline.scheduler.leader.encode import REJECTED_PART
from dueline.scheduler.leader.letters import TRIES, WAITING_LIMIT, Letters
from dueline.schemas.codec import decode
from dueline.schemas.command import Rejected
from dueline.schemas.topics import Namespace
from tests.unit.leader.logs import ScriptedPlainWriter

NAMESPACE = Namespace("t")
THERE = Delivered(topic=NAMESPACE.rejected, partition=0, offset=0, append_ms=1)


def letter(offset: int, key: bytes = b"k") -> Rejected:
    return Rejected(topic="t.jobs", partition=0, offset=offset, error="invalid-job", detail="why", key=key, term=3, leader_ms=5)


def offsets(records: list[Outgoing]) -> list[int]:
    read = [decode(record.value or b"") for record in records]
    return [each.offset for each in read if isinstance(each, Rejected)]


def test_each_is_in_the_log_before_it_follows_and_goes_to_its_topic(caplog: pytest.LogCaptureFixture) -> None:
    writer = ScriptedPlainWriter()
    letters = Letters(lambda: writer, NAMESPACE)
    letters.say([letter(7)])
    assert "t.jobs[0] offset 7: why" in caplog.text
    assert writer.sent == []
    letters.follow([letter(7, key=b"k" * 1_000_000)])
    assert offsets(writer.sent) == [7]
    assert {(record.topic, record.partition) for record in writer.sent} == {(NAMESPACE.rejected, 0)}
    assert len(writer.sent[0].value or b"") < 3 * REJECTED_PART, "a refused key of a megabyte fills its topic"


def test_one_that_is_not_written_is_sent_again_for_a_while_and_given_up_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    writer = ScriptedPlainWriter()
    letters = Letters(lambda: writer, NAMESPACE)
    letters.follow([letter(7), letter(8)])
    writer.answer(THERE)
    for number in range(2, TRIES + 1):
        writer.answer(None)
        assert offsets(writer.sent) == [7, *[8] * number]
    assert "is not written" not in caplog.text
    writer.answer(None)
    assert "t.jobs[0] offset 8 is not written: no broker" in caplog.text
    assert len(writer.sent) == 1 + TRIES


def test_a_process_that_ends_sends_nothing_again(caplog: pytest.LogCaptureFixture) -> None:
    writer = ScriptedPlainWriter()
    letters = Letters(lambda: writer, NAMESPACE)
    letters.follow([letter(7)])
    letters.close()
    writer.answer(None)
    assert len(writer.sent) == 1
    assert "offset 7 is not written" in caplog.text


def test_so_many_are_on_their_way_and_no_more() -> None:
    writer = ScriptedPlainWriter()
    letters = Letters(lambda: writer, NAMESPACE)
    letters.follow(map(letter, range(WAITING_LIMIT + 5)))
    assert len(writer.sent) == WAITING_LIMIT
    for _ in range(3):
        writer.answer(THERE)
    letters.follow(letter(WAITING_LIMIT + number) for number in range(5, 10))
    assert len(writer.sent) == WAITING_LIMIT + 3
