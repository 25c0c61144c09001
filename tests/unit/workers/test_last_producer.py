"""After a doubt: whose step stands goes on while a producer is left, and not without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dueline.scheduler.core.ports import Aborted, Delivered, Doubtful, Outgoing, Partition, Received
from dueline.workers.errors import AttemptClosed
from dueline.workers.events import Event, Write, Written
from dueline.workers.loop import GroupCommit
from tests.unit.workers.test_loop import INC, finish, mail, read, step
from tests.unit.workers.test_silence import Bench, failure

HOME = ("steps", 0)


class Doubting(Bench):
    """Each transaction is committed, and its writer never told so."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left
        self.stands: list[Outgoing] = []
        self.landed: list[Write] = []
        self.commits = GroupCommit(
            INC, self, admin=self, clock=self, tasks=self, looks=self, pause=lambda _: None, post=self._post, starts={HOME: 0},  # type: ignore[arg-type]
        )  # fmt: skip

    def _post(self, event: Event) -> None:
        if isinstance(event, Written):
            self.landed += event.landed
        super()._post(event)

    def write(self, groups: Sequence[Sequence[Outgoing]]) -> list[Delivered]:
        self.stands += [record for group in groups for record in group]
        raise Doubtful("not answered")

    def end_offset(self, partition: Partition) -> int:
        assert partition == HOME
        return len(self.stands)

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:
        assert (partition, timeout_s > 0) == (HOME, True)
        for offset in range(start, end):
            yield read(step("any"), self.stands[offset].value)


def test_a_step_that_stands_is_answered_while_a_producer_is_left() -> None:
    bench = Doubting(left=1)
    first = step("first")
    bench.add(first)
    assert (failure(first), bench.over) == (None, "")


def test_without_one_it_is_answered_when_the_incarnation_is_over() -> None:
    """The worker has revoked the lease by then (`test_once_a_step_stands_that_its_last_producer_wrote_no_other_one_begins`)."""
    bench = Doubting(left=0)
    first, last = step("first"), finish(2)
    bench.add(first, last)
    assert (failure(first), bench.over) == (None, "not answered")
    assert bench.landed == [first, last]
    after = step("after")
    bench.add(after)
    assert isinstance(failure(after), AttemptClosed)


def test_without_one_a_step_that_the_broker_refused_is_not_failed_but_comes_back() -> None:
    """A handler that bears a refusal would go on, and begin what nobody can record."""
    bench = Bench(refused("mails"))
    bench.left = 0
    guilty = step("guilty", produced=(mail(b"1"),))
    bench.add(guilty)
    assert isinstance(failure(guilty), AttemptClosed)


def refused(topic: str) -> Aborted:
    error = Aborted("refused")
    error.topic, error.definite = topic, True
    return error
