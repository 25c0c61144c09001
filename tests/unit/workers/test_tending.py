"""Both writers of an incarnation look, while it lives, whether what they wrote can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import MagicMock

import pytest

from dueline.scheduler.core.ports import (
    Aborted,
    Assignment,
    Delivered,
    Doubtful,
    Fenced,
    GroupOffsets,
    Outgoing,
    Partition,
    Received,
    Unavailable,
    UnfencedOffset,
)
from dueline.workers.claiming import Claiming
from dueline.workers.errors import AttemptClosed
from dueline.workers.events import ClaimsAnswered, InDoubt, SignedOff, Written
from dueline.workers.loop import GroupCommit
from dueline.workers.offers import Batch
from dueline.workers.registry import Registry
from dueline.workers.trail import ENDS_S
from tests.unit.leader.manual import ManualClock
from tests.unit.workers.test_loop import INC, ORIGIN, finish, step
from tests.unit.workers.test_silence import failure

ATTEMPTS, STEPS = (ORIGIN.namespace.attempts, 0), (ORIGIN.namespace.steps, 0)
OFFER = (ORIGIN.namespace.dispatch("q"), 4)


class Log:
    """Ports of a log of which nothing can be read before `ends` transactions were written; both writers', one after the other."""

    producers = 2

    def __init__(self, ends: float) -> None:
        self.clock, self.ends = ManualClock(wall_ms=0), ends
        self.written: list[tuple[list[Outgoing], Any]] = []
        self.events: list[Any] = []
        self.error: Exception | None = None
        self.left = 1
        self.away = False
        self.asked = 0
        self.held: list[Callable[[], None]] | None = None  # looks that are not done; None: each is at once
        ports: Any = self
        looks: Any = MagicMock(submit=self.look_later)
        self.commits = GroupCommit(
            INC, ports, admin=ports, clock=self.clock, tasks=ports, looks=looks, pause=self.clock.pass_s, post=self._post,
            starts={ATTEMPTS: 0, STEPS: 0},
        )  # fmt: skip
        self.claiming = Claiming(
            INC, ports, origin=ORIGIN, admin=ports, clock=self.clock, tasks=ports, looks=looks, pause=self.clock.pass_s,
            post=self._post, attempts_from=0,
        )  # fmt: skip

    def _post(self, event: Any) -> None:
        self.events.append(event)
        if isinstance(event, Written):
            self.commits.answered(event)

    def submit(self, task: Callable[[], None]) -> None:
        task()

    def look_later(self, task: Callable[[], None]) -> None:
        if self.held is None:
            task()
        else:
            self.held.append(task)

    def close(self) -> None:
        pass

    def serve(self) -> None:
        pass

    def write(self, groups: Sequence[Sequence[Outgoing]], *, offsets: Any = None) -> list[Delivered]:
        if self.error is not None:
            raise self.error
        records = [record for group in groups for record in group]
        self.written.append((records, offsets))
        return [Delivered(topic=one.topic, partition=0, offset=len(self.written), append_ms=1) for one in records]

    def survivor(self) -> Any:
        self.left -= 1
        return self if self.left >= 0 else None

    def stable_offset(self, _: Partition) -> int:
        self.asked += 1
        if self.away:
            raise Unavailable("no answer")
        return 1000 if len(self.written) >= self.ends else 0

    def end_offset(self, _: Partition) -> int:
        return 0

    def read_range(self, *_: Any, **__: Any) -> Iterator[Received]:
        return iter(())

    # -- what the tests do -------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        self.commits.add(finish())
        self.commits.flush()

    def claim(self) -> None:
        record = Received(topic=OFFER[0], partition=OFFER[1], offset=6, append_ms=0, key=b"r", value=b"not an offer")
        held = Assignment(serial=1, generation=1, member="m", partitions=frozenset([OFFER]), metadata=b"")
        self.claiming.claim(Batch(records=[record], offsets=GroupOffsets(assignment=held, offsets={OFFER: 7})), Registry.of({}))

    def serve_for(self, seconds: float) -> None:
        for _ in range(round(seconds) + 1):
            self.commits.serve()
            self.claiming.serve()
            self.clock.pass_s(1.0)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def test_an_end_that_a_broker_forgot_is_ended_by_both_of_the_pair_though_nothing_else_is_written() -> None:
    log = Log(ends=3)
    log.finish()
    log.serve_for(ENDS_S - 1)
    assert len(log.written) == 1
    log.serve_for(10)
    assert [[(one.topic, one.value) for one in records] for records, _ in log.written[1:]] == [[(ATTEMPTS[0], None)]] * 2
    assert log.commits.idle
    assert log.of(InDoubt) == []


def test_a_claim_is_ended_with_its_offsets() -> None:
    log = Log(ends=2)
    log.producers = 1
    log.claim()
    log.serve_for(10)
    assert [(records[0].topic, offsets) for records, offsets in log.written[1:]] == [
        (ATTEMPTS[0], UnfencedOffset(group=ORIGIN.namespace.worker_group("q"), partition=ATTEMPTS))
    ]
    assert [event.unclaimed for event in log.of(ClaimsAnswered)] == [()]


def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    log = Log(ends=4)
    log.finish()
    log.claim()
    log.away = True
    log.serve_for(5)
    assert log.of(InDoubt) == []
    assert len(log.written) == 2
    log.away = False
    log.serve_for(5)
    assert len(log.written) >= 4


def test_no_more_than_one_look_waits_at_a_time() -> None:
    log = Log(ends=9)
    log.held = []
    log.finish()
    log.claim()
    log.serve_for(5)
    assert len(log.held) == 2


@pytest.mark.parametrize("word", ["sign_off", "close"])
def test_a_look_that_waited_until_the_writer_stopped_asks_for_nothing(word: str) -> None:
    log = Log(ends=9)
    log.finish()
    log.claim()
    held: list[Callable[[], None]] = []
    log.held = held
    log.serve_for(0)
    log.commits.sign_off() if word == "sign_off" else log.commits.close()
    log.claiming.sign_off() if word == "sign_off" else log.claiming.close()
    asked, waiting = log.asked, held[:2]
    for look in waiting:
        look()
    assert log.asked == asked


@pytest.mark.parametrize("error", [Doubtful("slow"), Aborted("no"), Fenced("newer")])
def test_where_the_ending_fails_the_pair_is_over(error: Exception) -> None:
    """It may have aborted what was acknowledged, which the survivor would not know."""
    log = Log(ends=float("inf"))
    log.finish()
    log.error = error
    log.serve_for(ENDS_S)
    assert [event.over for event in log.of(Written)[1:]] == [str(error)]
    log.error = None
    after = step("after")
    log.commits.add(after)
    log.commits.flush()
    assert isinstance(failure(after), AttemptClosed)


def test_a_claim_whose_ending_fails_makes_way_for_a_fresh_incarnation() -> None:
    log = Log(ends=float("inf"))
    log.claim()
    log.error = Doubtful("slow")
    log.serve_for(ENDS_S + 5)
    assert [event.error for event in log.of(InDoubt)] == ["slow"]
    log.error, log.ends = None, 0
    log.claiming.sign_off()
    assert [event.readable for event in log.of(SignedOff)] == [False]


def test_who_stops_writes_nothing_after_it_was_asked() -> None:
    log = Log(ends=0)
    log.finish()
    log.claim()
    log.commits.sign_off()
    log.claiming.sign_off()
    assert [event.readable for event in log.of(SignedOff)] == [True, True]
    late = step("late")
    log.commits.add(late)
    log.commits.flush()
    assert isinstance(failure(late), AttemptClosed)
    assert len(log.written) == 2
