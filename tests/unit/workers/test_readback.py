"""Reading back while no broker answers: it goes on until one does, and what the writer's clients say meanwhile is heard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dueline.scheduler.core.ports import Partition, Received, Unavailable
from dueline.workers.readback import STUCK, Stuck, read_back

HOME = ("attempts", 3)


class Log:
    """Answers after so many questions. Of the port only what reading back asks."""

    def __init__(self, away: int) -> None:
        self.away = away

    def end_offset(self, partition: Partition) -> int:
        assert partition == HOME
        self.away -= 1
        if self.away >= 0:
            raise Unavailable("away")
        return 7

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:
        assert (partition, start, end, timeout_s > 0) == (HOME, 5, 7, True)
        yield Received(topic=partition[0], partition=partition[1], offset=6, append_ms=0, key=None, value=b"x")


def test_the_writer_is_served_between_two_tries() -> None:
    acts: list[str] = []
    found = read_back(
        Log(3),  # type: ignore[arg-type] # see its text
        [(HOME, 5)],
        goes_on=lambda: True,
        pause=lambda _: acts.append("pause"),
        serve=lambda: acts.append("serve"),
    )
    assert acts == ["serve", "pause"] * 3
    assert [one.offset for one in found or []] == [6]


def test_it_ends_when_nobody_waits_for_it_any_more() -> None:
    goes_on = iter([True, True, False])
    found = read_back(
        Log(99),  # type: ignore[arg-type] # see its text
        [(HOME, 5)],
        goes_on=lambda: next(goes_on),
        pause=lambda _: None,
        serve=lambda: None,
    )
    assert found is None


class Open(Log):
    """The end is told, but something stands open before it."""

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:
        raise Unavailable(f"stuck at {start}, before {end}, of {partition} for {timeout_s} s")


def test_it_gives_up_what_a_broker_that_answers_never_ends() -> None:
    """Else an incarnation would hold its runs and beat on for ever; whoever fences it ends what it left open."""
    waits: list[float] = []
    with pytest.raises(Stuck, match="stuck at 5"):
        read_back(
            Open(3),  # type: ignore[arg-type] # see its text
            [(HOME, 5)],
            goes_on=lambda: True,
            pause=waits.append,
            serve=lambda: None,
        )
    assert len(waits) == 3 + STUCK - 1, "while the broker is away nothing is given up"
