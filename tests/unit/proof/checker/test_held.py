"""By which versions a due time may have been skipped: a reason needs a version that held then, as far as it had been read."""

from __future__ import annotations

import pytest

from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.run import Run, RunJob
from proof.checker.expected import Expected, Span
from proof.checker.passing import held_by
from proof.checker.reading import Placed
from proof.checker.schedule import FOREVER
from proof.history.entry import Entry

DUE_MS, READ_MS = 15_000, 20_000


def span(number: int, change: Change, effective_ms: int, end_ms: int, *, taken: tuple[int, ...] = (), read_ms: int = 0) -> Span:
    version = JobVersion(
        job="a", version=number, change=change, effective_ms=effective_ms, paused=False,
        definition=Job(id="a", schedule='{"every":"5s"}', handler="h"), source_topic="jobs", source_partition=0,
        source_offset=number, source_ms=effective_ms, taken=list(taken), leader_ms=read_ms or effective_ms,
    )  # fmt: skip
    entry = Entry(topic="job-versions", partition=0, offset=number, append_ms=effective_ms, key=b"", value=b"")
    return Span(placed=Placed(version, entry), start=effective_ms, end=end_ms, dues=None)


def held(*, decided_ms: int, taken: tuple[int, ...] = (DUE_MS,)) -> list[int]:
    """A job that was deleted and defined again before the due time; the definition was read only after it."""
    spans = [
        span(1, Change.DEFINED, 0, 10_000),
        span(2, Change.DELETED, 10_000, 12_000),
        span(3, Change.DEFINED, 12_000, FOREVER, taken=taken, read_ms=READ_MS),
    ]
    run = Run(job=RunJob(id="a", version=1, queue="q", handler="h", payload="null"), due_ms=DUE_MS, leader_ms=decided_ms)
    return [each.version.version for each in held_by(Expected(job="a", spans=spans), run)]


@pytest.mark.parametrize(
    ("decided_ms", "versions"),
    [
        (DUE_MS, [3, 2]),
        (READ_MS - 1, [3, 2]),
        (READ_MS, [3]),  # by then it had been read
        (DUE_MS - 1, [3]),  # nothing is skipped before it is due
    ],
)
def test_a_version_that_was_read_later_leaves_room_for_the_one_before(decided_ms: int, versions: list[int]) -> None:
    assert held(decided_ms=decided_ms) == versions


def test_only_for_a_due_time_that_it_lists_as_taken() -> None:
    assert held(decided_ms=DUE_MS, taken=()) == [3]
