"""Histories made by hand, for reports: no scheduler and no checker had a part in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dueline.schemas.codec import Record, encode
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, RunJob, RunState, Summary
from proof.history.acts import Bounds, Fault, Noted
from proof.history.entry import Entry
from proof.history.history import History
from proof.history.verdict import Kind, TakeOver, Verdict, Violation
from proof.report.setting import Setting

BEGAN = 1_796_023_200_000
BOUNDS = Bounds(lateness_ms=10_000, skew_ms=50, worker_timeout_ms=4_000, session_ms=1_000)
SETTING = Setting(replay="make faults SEED={seed}", versions={"Apache Kafka": "4.3.1", "Python": "3.11"}, machine="two cores")


def run(job: str, due_ms: int, state: RunState, command: str = "") -> Run:
    about = RunJob(id=job, version=1, queue="default", handler="h", payload="null")
    return Run(job=about, due_ms=due_ms, state=state, command=command, created_ms=due_ms)


def fault(kind: str, began_ms: int, length_ms: int = 0, target: str = "s1", detail: str = "") -> Fault:
    return Fault(kind=kind, target=target, began_ms=began_ms, ended_ms=began_ms + length_ms, detail=detail)


def history(
    records: Sequence[tuple[int, Record | None]] = (), faults: Sequence[Fault] = (), *, judged_ms: int = BEGAN + 60_000,
    title: str = "by hand", seed: int = 7, bounds: Bounds = BOUNDS,
) -> History:  # fmt: skip
    """`records` of the ledger: (append time, record); None: bytes that nobody can decode."""
    log = [
        Entry(topic="t.runs", partition=0, offset=offset, append_ms=at_ms, key=b"k", value=encode(record) if record else b"?")
        for offset, (at_ms, record) in enumerate(records)
    ]
    return History(
        title=title, seed=seed, prefix="t", began_ms=BEGAN, judged_ms=judged_ms, log={("t.runs", 0): log},
        noted=Noted(faults=tuple(faults)), bounds=bounds,
    )  # fmt: skip


def verdict(**fields: Any) -> Verdict:
    return Verdict(**{"violations": (), "due_times": 1, "runs": 1, **fields})


def take_over(cause: str, at_ms: int, took_ms: int) -> TakeOver:
    return TakeOver(cause=cause, at_ms=at_ms, took_ms=took_ms)


def violation(kind: Kind = Kind.MISSED, subject: str = "tick@2026-11-30T06:00:05Z", what: str = "no record") -> Violation:
    return Violation(kind=kind, subject=subject, what=what, evidence="t.runs-0@12")


def small() -> tuple[History, Verdict]:
    """Two leaders, a kill, two jobs; of one run the end is missing."""
    records: list[tuple[int, Record | None]] = [
        (BEGAN + 10, Barrier(id="a", process="one:1", generation=1)),
        (BEGAN + 1_005, run("tick", BEGAN + 1_000, RunState.DISPATCHED)),
        (BEGAN + 1_200, run("tick", BEGAN + 1_000, RunState.SUCCEEDED)),
        (BEGAN + 5_300, Barrier(id="b", process="two:2", generation=1)),
        (BEGAN + 5_310, run("tick", BEGAN + 4_000, RunState.DISPATCHED)),
        (BEGAN + 5_320, Summary(job="old", version=1, reason="late", first_ms=BEGAN, last_ms=BEGAN + 3_000, count=3)),
        (BEGAN + 9_000, run("hand", BEGAN + 8_000, RunState.DISPATCHED, command="c1")),
        (BEGAN + 9_500, run("hand", BEGAN + 8_000, RunState.FAILED, command="c1")),
        (BEGAN + 9_600, None),
    ]
    kill = fault("kill-leader", BEGAN + 4_000)
    told = verdict(
        due_times=5, runs=3, runs_by_state={"succeeded": 1, "failed": 1, "dispatched": 1}, lateness_ms=(5, 1_310, 12),
        steps_executed=4, steps_again=(("kill-leader", 1),), kills_in_flight=1,
        take_overs=(take_over("kill-leader", BEGAN + 4_000, 1_300),), leaderless_ms=1_300,
    )  # fmt: skip
    return history(records, [kill]), told


def huge() -> tuple[History, Verdict]:
    """1,000 faults, 10,000 runs of 12 jobs, 400 take-overs, in 80 minutes."""
    span_ms = 80 * 60_000
    records: list[tuple[int, Record | None]] = []
    for number in range(10_000):
        due_ms = BEGAN + number * span_ms // 10_000
        job = f"job-{number % 12}"
        records.append((due_ms + 5, run(job, due_ms, RunState.DISPATCHED)))
        records.append((due_ms + 300 + number % 700, run(job, due_ms, RunState.SUCCEEDED)))
    for number in range(400):
        records.append((BEGAN + number * 12_000 + 1_300, Barrier(id=f"b{number}", process="host:1", generation=1)))
    records.sort(key=lambda placed: placed[0])
    kinds = ("kill-leader", "kill-worker", "stop-worker-longer", "broker-cut", "clock-step")
    faults = [
        fault(kinds[number % 5], BEGAN + number * 4_800, (number % 5) * 1_500, detail="pid 12345 in some state " * 3)
        for number in range(1_000)
    ]
    took = tuple(take_over("kill-leader", BEGAN + number * 12_000, 1_000 + number * 5) for number in range(400))
    told = verdict(
        due_times=10_000, runs=10_000, runs_by_state={"succeeded": 10_000}, lateness_ms=tuple(range(10_000)),
        take_overs=took, leaderless_ms=600_000,
    )  # fmt: skip
    return history(records, faults, judged_ms=BEGAN + span_ms), told
