"""After a doubt: whose step stands goes on while a producer is left, and not without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dueline.scheduler.core.ports import Delivered, Doubtful, Outgoing, Partition, Received
from dueline.workers.errors import AttemptClosed
from dueline.workers.loop import GroupCommit
from tests.unit.workers.test_loop import INC, read, step
from tests.unit.workers.test_silence import Bench, failure

HOME = ("steps", 0)


class Doubting(Bench):
    """Each transaction is committed, and its writer never told so."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left
        self.stands: list[Outgoing] = []
        self.commits = GroupCommit(
            INC, self, admin=self, clock=self, tasks=self, pause=lambda _: None, post=self._post, starts={HOME: 0},  # type: ignore[arg-type]
        )  # fmt: skip

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


def test_a_handler_whose_step_stands_begins_no_other_one_when_no_producer_is_left() -> None:
    """Another attempt finds it recorded; what this one began now could never be."""
    bench = Doubting(left=0)
    first = step("first")
    bench.add(first)
    assert bench.over == "not answered"
    assert isinstance(failure(first), AttemptClosed)
