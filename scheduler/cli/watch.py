"""Waits for what a scheduler makes of something that was sent: a version, a run, or a dead letter.

The ends of the three topics where an answer can stand are taken before anything is sent, so no answer is missed. The
leader's positions, which it writes in the same transaction as the answer, tell that the input was read even when it
changed nothing; once they have passed it, whatever stands before the topics' ends is looked at, and the wait is over. That there
was no answer says little then: a refusal may follow later, or stand in `rejected` where no reader comes to yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dueline.scheduler.audit.reading import TopicMissing
from dueline.scheduler.core.ports import Clock, Delivered, Kafka, LogReader, Partition, Received
from dueline.schemas.codec import Record, decode
from dueline.schemas.command import Rejected
from dueline.schemas.errors import DecodeError
from dueline.schemas.ledger import Positions
from dueline.schemas.topics import Namespace

POLL_S: Final = 0.2
"""How long one look takes at most, so that Ctrl-C and the deadline are noticed."""

BATCH: Final = 2_000

Answer = Callable[[Record], bool]
"""Whether a record is what was waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The record that was waited for."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The dead letter of what was sent."""

    rejected: Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWithoutEffect:
    """The leader has read it; neither an effect nor a refusal was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """The time ran out, and the leader has not read it."""


Result = Answered | Refusal | ReadWithoutEffect | NoAnswer


@dataclass(slots=True)
class Watch:
    """Reads `job-versions`, `runs` and `rejected` from where they ended when it was opened."""

    reader: LogReader
    clock: Clock
    kafka: Kafka
    topics: tuple[Partition, ...]
    namespace: Namespace
    seen: list[Record] = field(default_factory=list)
    rejections: dict[tuple[str, int, int], Rejected] = field(default_factory=dict)
    read_up_to: dict[Partition, int] = field(default_factory=dict)

    def wait(self, sent: Delivered, answer: Answer, timeout_s: float) -> Result:
        """The first record that answers, or what else became of the input."""
        deadline = self.clock.monotonic_s() + timeout_s
        looked = 0
        while True:
            for record in self.seen[looked:]:
                if answer(record):
                    return Answered(record=record)
            looked = len(self.seen)
            rejected = self.rejections.get((sent.topic, sent.partition, sent.offset))
            if rejected is not None:
                return Refusal(rejected=rejected)
            passed = self.read_up_to.get((sent.topic, sent.partition), -1) > sent.offset
            left = deadline - self.clock.monotonic_s()
            if passed and self._at_the_end():
                if looked == len(self.seen):
                    return ReadWithoutEffect()
            elif left <= 0:
                return ReadWithoutEffect() if passed else NoAnswer()
            else:
                self._look(min(POLL_S, left))

    def follow(self, answer: Answer, timeout_s: float | None) -> Record | None:
        """The first record from now on that answers; None when the time ran out. `timeout_s` None: however long."""
        deadline = None if timeout_s is None else self.clock.monotonic_s() + timeout_s
        looked = 0
        while True:
            for record in self.seen[looked:]:
                if answer(record):
                    return record
            looked = len(self.seen)
            if deadline is not None and self.clock.monotonic_s() >= deadline:
                return None
            self._look(POLL_S)

    def _at_the_end(self) -> bool:
        """Read on to where the topics end now: an answer of the same transaction stands before that."""
        admin = self.kafka.admin()
        ends = {partition: admin.end_offset(partition) for partition in self.topics}
        while any(self.reader.position(partition) < end for partition, end in ends.items()):
            before = {partition: self.reader.position(partition) for partition in ends}
            self._look(POLL_S)
            if before == {partition: self.reader.position(partition) for partition in ends}:
                return False  # an open transaction holds it back: come again
        return True

    def _look(self, timeout_s: float) -> None:
        for received in self.reader.poll(timeout_s, BATCH):
            self._take(received)

    def _take(self, received: Received) -> None:
        if received.value is None:
            return
        try:
            record = decode(received.value)
        except DecodeError:
            return  # the audit reports it; it answers nobody
        if isinstance(record, Positions):
            for position in record.positions:
                self.read_up_to[position.topic, position.partition] = position.offset
        elif isinstance(record, Rejected):
            self.rejections[record.topic, record.partition, record.offset] = record
        else:
            self.seen.append(record)


@contextmanager
def watching(kafka: Kafka, namespace: Namespace, clock: Clock) -> Iterator[Watch]:
    """A watch that begins now. Raises TopicMissing, Unavailable."""
    admin = kafka.admin()
    topics = ((namespace.job_versions, 0), (namespace.runs, 0), (namespace.rejected, 0))
    for topic, _ in topics:
        if not admin.partitions(topic):
            raise TopicMissing(topic)
    starts = {partition: admin.end_offset(partition) for partition in topics}
    reader = kafka.log_reader("answers")
    try:
        reader.assign(starts)
        yield Watch(reader=reader, clock=clock, kafka=kafka, topics=topics, namespace=namespace)
    finally:
        reader.close()
