"""What was granted ahead begins under an older version only if a fault kept the recall from who had it then, or has it now."""

from __future__ import annotations

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.run import Run, RunJob, RunState
from proof.checker.holding import check_holding
from proof.checker.reading import read
from proof.history.acts import Effect, Fault, Life, Noted, Role
from proof.history.entry import Entry
from proof.history.history import History
from tests.unit.proof.checker.honest import RUNS, VERSIONS
from tests.unit.proof.checker.log import PREFIX
from tests.unit.proof.checker.world import BOUNDS, START_MS

MADE_S, BEGUN_S = 10.0, 20.1
"""When the job was paused, and when its run began; it was due at 20 s."""

Turn = tuple[str, float, float]
"""A worker, when it was granted the run, and when the run had left it."""


def after(seconds: float) -> int:
    return START_MS + round(seconds * 1000)


def version(number: int, change: Change, made_s: float) -> Entry:
    record = JobVersion(
        job="a", version=number, change=change, effective_ms=after(made_s), paused=change == Change.PAUSED,
        definition=Job(id="a", schedule='{"every":"20s"}', handler="tick"), source_topic="jobs", source_partition=0,
        source_offset=number, source_ms=after(made_s), leader_ms=after(made_s),
    )  # fmt: skip
    return Entry(topic=VERSIONS, partition=0, offset=number, append_ms=after(made_s), key=b"a", value=encode(record))


def ledger(turns: tuple[Turn, ...]) -> list[Entry]:
    """The run's records: granted, and waiting again, once for each turn."""
    entries: list[Entry] = []
    for number, (worker, granted_s, left_s) in enumerate(turns, 1):
        for state, at_s in ((RunState.RUNNING, granted_s), (RunState.WAITING, left_s)):
            job = RunJob(id="a", version=1, queue="default", handler="tick", payload="null")
            run = Run(job=job, due_ms=after(20), state=state, attempt=number, worker=worker, leader_ms=after(at_s))
            key, offset = run.key.encode(), len(entries)
            entries.append(Entry(topic=RUNS, partition=0, offset=offset, append_ms=after(at_s), key=key, value=encode(run)))
    return entries


def asked(turns: tuple[Turn, ...], *faults: Fault) -> bool:
    """Whether it is asked why the run began in its last turn."""
    lives = [Life(process=worker, role=Role.WORKER, pid=1, began_ms=START_MS, ended_ms=-1, how="") for worker in ("w0", "w1")]
    entries = ledger(turns)
    effect = Effect(
        job="a", due_ms=after(20), step="send", key="k", run=(entries[0].key or b"").decode(), attempt=len(turns),
        at_ms=after(BEGUN_S), process=turns[-1][0],
    )  # fmt: skip
    history = History(
        title="made by hand", seed=0, prefix=PREFIX, began_ms=START_MS, judged_ms=after(30), bounds=BOUNDS,
        log={(VERSIONS, 0): (version(1, Change.DEFINED, 1), version(2, Change.PAUSED, MADE_S)), (RUNS, 0): tuple(entries)},
        noted=Noted(effects=(effect,), faults=faults, lives=tuple(lives)),
    )  # fmt: skip
    found = [violation.what for violation in check_holding(read(history))]
    assert found in ([], [f"begun {round((BEGUN_S - MADE_S) * 1000)} ms after version 2 (paused) was made, under version 1"])
    return bool(found)


def cut(target: str, began_s: float, ended_s: float) -> Fault:
    return Fault(kind="cut", target=target, began_ms=after(began_s), ended_ms=after(ended_s))


LOST = (("w0", 5.0, 13.0), ("w1", 16.0, 21.0))
GIVEN_BACK = (("w0", 5.0, 7.0), ("w1", 8.0, 21.0))
WENT_ON = (("w1", 5.0, 13.0), ("w0", 14.0, 15.0), ("w1", 16.0, 21.0))


@pytest.mark.parametrize(
    ("turns", "target", "began_s", "ended_s", "excused"),
    [
        (LOST, "w0>b1", 9, 12, True),  # it was cut off, never heard that it was asked back, and was lost
        (LOST, "w0>b1", 6, 8, False),  # that was over
        (LOST, "w1>b1", 15, 17, True),  # who has it now
        (GIVEN_BACK, "w0>b1", 9, 12, False),  # it had nothing any more that could be asked back
        (GIVEN_BACK, "w1>b1", 9, 12, True),
        (WENT_ON, "w0>b1", 14, 15, False),  # it had it only later
        (WENT_ON, "w1>b1", 9, 12, True),
    ],
)
def test_a_fault_on_a_worker_excuses_it_that_had_the_run_when_the_version_was_made_or_has_it_now(
    turns: tuple[Turn, ...], target: str, began_s: float, ended_s: float, excused: bool
) -> None:
    assert asked(turns, cut(target, began_s, ended_s)) is not excused


def test_in_peace_nothing_does() -> None:
    assert asked(LOST)


@pytest.mark.parametrize(("left_s", "excused"), [(MADE_S - 0.1, True), (MADE_S - 0.101, False)])
def test_who_had_given_it_back_more_than_the_skew_before_excuses_nothing(left_s: float, excused: bool) -> None:
    assert asked((("w0", 5.0, left_s), ("w1", 16.0, 21.0)), cut("w0", 9, 12)) is not excused


@pytest.mark.parametrize(("granted_s", "excused"), [(MADE_S + 0.1, True), (MADE_S + 0.101, False)])
def test_who_was_granted_it_more_than_the_skew_later_excuses_nothing(granted_s: float, excused: bool) -> None:
    assert asked((("w0", granted_s, 13.0), ("w1", 16.0, 21.0)), cut("w0", 9, 12)) is not excused
