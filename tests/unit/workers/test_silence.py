"""A step whose topic does not answer waits, is written apart from the others, and is not failed for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from dueline.scheduler.core.ports import Aborted, Delivered, Outgoing, TransactionWriter, Unavailable
from dueline.scheduler.kafka.errors import NotAuthorized
from dueline.workers.errors import AttemptClosed, StepError
from dueline.workers.events import Event, InDoubt, Write, Written
from dueline.workers.loop import GroupCommit
from dueline.workers.silence import ASK_S
from tests.unit.workers.test_loop import INC, finish, mail, step


class Bench:
    """A group-commit loop on a broker of the test's. Of each port only what the loop asks."""

    def __init__(self, *outcomes: Aborted | None) -> None:
        self.now_s = 100.0
        self.outcomes = list(outcomes)
        self.written: list[list[str]] = []  # topics and names of each transaction
        self.partitions_of: dict[str, int] = {"mails": 1, "bills": 2}
        self.leaders_gone: set[str] = set()
        self.away = False
        self.denied: set[str] = set()
        self.left = 1
        self.over = ""
        self.commits = GroupCommit(
            INC, self, admin=self, clock=self, tasks=self, looks=self, pause=lambda _: None, post=self._post, starts={},  # type: ignore[arg-type]
        )  # fmt: skip

    def add(self, *writes: Write) -> None:
        for write in writes:
            self.commits.add(write)
        self.commits.flush()

    def later(self, seconds: float) -> None:
        self.now_s += seconds
        self.commits.flush()

    def _post(self, event: Event) -> None:
        if isinstance(event, InDoubt):
            return
        assert isinstance(event, Written)
        self.over = event.over
        self.commits.answered(event)

    # -- clock, tasks, admin ---------------------------------------------------------------------------------------------

    def monotonic_s(self) -> float:
        return self.now_s

    def submit(self, task: Callable[[], None]) -> None:
        task()

    def partitions(self, topic: str) -> int:
        if self.away:
            raise Unavailable("away")
        self._check_right(topic)
        return self.partitions_of.get(topic, 0)

    def leaderless(self, topic: str) -> frozenset[int]:
        return frozenset({0} if topic in self.leaders_gone else ())

    def _check_right(self, topic: str) -> None:
        if topic in self.denied:
            raise NotAuthorized(f"topic {topic!r}", "DESCRIBE")

    # -- the writer --------------------------------------------------------------------------------------------------------

    def write(self, groups: Sequence[Sequence[Outgoing]]) -> list[Delivered]:
        records = [record for group in groups for record in group]
        self.written.append(sorted({record.topic for record in records if record.topic in ("mails", "bills")}))
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        return [Delivered(topic=one.topic, partition=0, offset=0, append_ms=1) for one in records]

    def serve(self) -> None:
        pass

    def survivor(self) -> TransactionWriter | None:
        self.left -= 1
        return self if self.left >= 0 else None  # type: ignore[return-value] # see its text

    def close(self) -> None:
        pass


def late(topic: str) -> Aborted:
    error = Aborted("not acknowledged in time")
    error.partitions = ((topic, -1),)
    return error


def done(write: Write) -> bool:
    assert write.answer is not None
    return write.answer.done()


def failure(write: Write) -> BaseException | None:
    assert write.answer is not None
    return write.answer.exception(0)


def test_a_step_whose_topic_did_not_answer_waits_until_it_has_leaders_and_the_others_go_on() -> None:
    bench = Bench(late("bills"))
    bench.leaders_gone = {"bills"}
    waits, other, fine = step("a", produced=(mail(b"1", "bills"),)), step("b", claim=2, produced=(mail(b"2"),)), finish(3)
    bench.add(waits, other, fine)
    bench.later(0.1)
    assert (done(waits), done(other), bench.written) == (False, True, [["bills", "mails"], ["mails"]])
    second = step("c", claim=4, produced=(mail(b"3", "bills"),))
    bench.add(second)
    for _ in range(5):
        bench.later(ASK_S)
    assert (done(waits), done(second), len(bench.written)) == (False, False, 2)
    assert not bench.commits.idle
    bench.leaders_gone = set()
    bench.add(step("d", claim=5))
    bench.later(ASK_S)
    assert (failure(waits), failure(second), bench.written[2:]) == (None, None, [[], ["bills"]])
    bench.add(step("e", claim=6, produced=(mail(b"4", "bills"), mail(b"5"))))
    assert bench.written[4:] == [["bills", "mails"]]  # it has answered: nothing waits for it any more
    assert bench.commits.idle


def test_a_topic_that_is_slow_is_left_alone_for_a_moment_though_it_has_a_leader() -> None:
    bench = Bench(late("bills"))
    waits = step("a", produced=(mail(b"1", "bills"),))
    bench.add(waits)
    bench.later(ASK_S / 2)
    assert (done(waits), bench.written) == (False, [["bills"]])
    bench.later(ASK_S)
    assert (failure(waits), bench.written) == (None, [["bills"], ["bills"]])


def test_a_step_waits_for_each_of_its_topics() -> None:
    bench = Bench(late("bills"))
    bench.leaders_gone = {"mails"}
    waits = step("a", produced=(mail(b"1", "bills"), mail(b"2")))
    bench.add(waits)
    bench.later(ASK_S)
    assert (done(waits), len(bench.written)) == (False, 1)


def test_while_no_broker_answers_for_the_topic_it_waits() -> None:
    bench = Bench(late("bills"))
    waits = step("a", produced=(mail(b"1", "bills"),))
    bench.add(waits)
    bench.away = True
    bench.later(ASK_S)
    assert (done(waits), len(bench.written)) == (False, 1)
    bench.away = False
    bench.later(ASK_S)
    assert (failure(waits), len(bench.written)) == (None, 2)


def test_a_right_that_one_topic_lacks_stops_its_steps_alone_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(late("bills"))
    denied, other = step("a", produced=(mail(b"1", "bills"),)), step("b", claim=2, produced=(mail(b"2"),))
    bench.denied = {"bills"}
    bench.add(denied)
    bench.add(other)
    bench.later(ASK_S)  # nothing is raised: that would end the process
    assert (failure(other), done(denied), bench.written) == (None, False, [["bills"], ["mails"]])
    (line,) = [record.getMessage() for record in caplog.records if getattr(record, "action", "") == "worker.topic-denied"]
    assert line.startswith("steps that write to bills wait: not authorized: DESCRIBE on topic 'bills'; grant DESCRIBE")
    bench.add(finish(1))
    assert isinstance(failure(denied), AttemptClosed)
    assert "bills" in str(failure(denied))


def test_once_the_right_is_granted_the_step_is_written() -> None:
    bench = Bench(late("bills"))
    waits = step("a", produced=(mail(b"1", "bills"),))
    bench.denied = {"bills"}
    bench.add(waits)
    bench.later(ASK_S)
    assert (done(waits), bench.over) == (False, "")
    bench.denied = set()
    bench.later(ASK_S)
    assert (failure(waits), bench.written) == (None, [["bills"], ["bills"]])


def test_a_topic_that_is_gone_by_then_fails_the_step() -> None:
    bench = Bench(late("bills"))
    waits = step("a", produced=(mail(b"1", "bills"),))
    bench.add(waits)
    del bench.partitions_of["bills"]
    bench.later(ASK_S)
    error = failure(waits)
    assert isinstance(error, StepError)
    assert "step 'a'" in str(error)
    assert "bills" in str(error)
    assert bench.commits.idle


def test_the_end_of_an_attempt_leaves_its_waiting_step_out_and_nothing_is_recorded_after_it() -> None:
    bench = Bench(late("bills"))
    bench.leaders_gone = {"bills"}
    waits, other = step("a", produced=(mail(b"1", "bills"),)), step("b", claim=2, produced=(mail(b"1", "bills"),))
    bench.add(waits, other)
    bench.add(finish(1))
    assert isinstance(failure(waits), AttemptClosed)
    assert (done(other), bench.written) == (False, [["bills"], []])


def test_a_second_transaction_without_an_answer_ends_the_incarnation_and_fails_no_step() -> None:
    """The limit: a topic with leaders that does not answer twice. What the incarnation held comes back as another attempt."""
    bench = Bench(late("bills"), None, late("bills"))
    waits, fine = step("a", produced=(mail(b"1", "bills"),)), finish(3)
    bench.add(waits, fine)
    bench.later(0.1)
    bench.later(ASK_S)
    assert bench.written == [["bills"], [], ["bills"]]  # what does not wait was written before
    assert bench.over
    assert isinstance(failure(waits), AttemptClosed)


@pytest.mark.parametrize("topic", ["", "bills"])
def test_after_an_abort_for_an_unknown_reason_all_are_written_again(topic: str) -> None:
    error = Aborted("the client does not say why")
    error.topic = topic
    bench = Bench(error)
    writes = [step("a", produced=(mail(b"1", "bills"),)), step("b", claim=2, produced=(mail(b"2"),)), step("c", claim=3)]
    bench.add(*writes)
    bench.later(0.1)
    bench.later(ASK_S)
    assert [failure(write) for write in writes] == [None, None, None]
