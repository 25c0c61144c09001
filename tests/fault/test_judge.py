"""Negative controls: the judge finds what it looks for, and nothing in a world where all is well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dueline.schemas.job import Job, JobVersion
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, RunJob, RunState, Summary
from dueline.schemas.work import Step
from tests.fault.judge import Placed, World, judge
from tests.fault.outbox import Effect

BEGAN = 1_800_000_000_000
DUES = [BEGAN + second * 1000 for second in range(1, 6)]
VERSION = JobVersion(
    job="j", version=1, change="defined", effective_ms=BEGAN + 1, paused=False, source_topic="t", source_partition=0,
    source_offset=0, source_ms=BEGAN, definition=Job(id="j", schedule='{"every":"1s"}', handler="tick"),
)  # fmt: skip


FIRST = Barrier(id="b", process="p:1", generation=1)


def run(due_ms: int, state: RunState = RunState.DISPATCHED, **fields: Any) -> Run:
    job = RunJob(id="j", version=1, queue="default", handler="tick", payload="null")
    given = {"attempt": 1, "created_ms": due_ms, "term": 0, **fields}
    return Run(job=job, due_ms=due_ms, state=state, **given)


def life(due_ms: int) -> list[Run]:
    """Its records, as a leader writes them."""
    granted = run(due_ms, RunState.RUNNING, incarnation="w.1", claim=7)
    return [run(due_ms), granted, replace(granted, state=RunState.SUCCEEDED)]


def placed(records: Sequence[object]) -> list[Placed]:
    """In a ledger that begins with a barrier, each record a moment after it was decided."""
    times = [BEGAN] + [getattr(record, "due_ms", BEGAN) + 5 for record in records]
    return [
        Placed(record=record, offset=offset, append_ms=append_ms)
        for offset, (record, append_ms) in enumerate(zip([FIRST, *records], times, strict=True))
    ]


def effect(due_ms: int, attempt: int = 1, **fields: Any) -> Effect:
    key = run(due_ms).key
    given = {"run": key, "attempt": attempt, "step": "send", "key": f"{key}/send", "pid": 1, "at_ms": due_ms + 10, **fields}
    return Effect(**given)


def step(due_ms: int, attempt: int = 1) -> Step:
    return Step(
        run=run(due_ms).key, attempt=attempt, claim=7, incarnation="w.1", name="send", encoding="json", result=b"1",
        started_ms=due_ms, finished_ms=due_ms,
    )  # fmt: skip


def good() -> World:
    return World(
        ledger=placed([record for due in DUES for record in life(due)]),
        versions=[VERSION],
        steps=[step(due) for due in DUES],
        effects=[effect(due) for due in DUES],
        audit={"totals": {"ran": 5, "missed": 0}, "explained": True, "findings": []},
    )


def told(world: World) -> list[str]:
    return judge(world, until_ms=DUES[-1])


def test_a_world_where_all_is_well() -> None:
    assert told(good()) == []


def test_an_effect_in_flight_at_a_kill_may_happen_twice() -> None:
    """The first attempt recorded nothing, the second one did."""
    world = good()
    resumed = [
        run(DUES[0]), run(DUES[0], RunState.RUNNING, incarnation="w.1", claim=7),
        run(DUES[0], attempt=2), run(DUES[0], RunState.RUNNING, attempt=2, incarnation="w.2", claim=1),
        run(DUES[0], RunState.SUCCEEDED, attempt=2, incarnation="w.2", claim=1),
    ]  # fmt: skip
    world = replace(
        world,
        ledger=placed([*resumed, *(record for due in DUES[1:] for record in life(due))]),
        effects=[*world.effects, effect(DUES[0], attempt=2)],
        steps=[step(DUES[0], attempt=2), *world.steps[1:]],
    )
    assert told(world) == []
    # But not when the first one had recorded the step.
    [fault] = told(replace(world, steps=[*world.steps, step(DUES[0])]))
    assert "one of them had recorded it" in fault


def without(world: World, due_ms: int) -> World:
    return replace(world, ledger=[one for one in world.ledger if getattr(one.record, "due_ms", 0) != due_ms])


def reworked(change: Callable[[Run], Run], due_ms: int = DUES[2]) -> World:
    """The world with every record of one run changed."""
    world = good()
    changed = [
        replace(one, record=change(one.record)) if isinstance(one.record, Run) and one.record.due_ms == due_ms else one
        for one in world.ledger
    ]
    return replace(world, ledger=changed)


def appended(record: object) -> World:
    world = good()
    last = world.ledger[-1]
    return replace(world, ledger=[*world.ledger, Placed(record=record, offset=last.offset + 1, append_ms=last.append_ms)])


def summary(first: int, last: int, count: int) -> Summary:
    return Summary(job="j", version=1, reason="late", first_ms=first, last_ms=last, count=count, term=0)


WRONG: dict[str, tuple[World, str]] = {
    "a dropped due time": (without(good(), DUES[2]), "no record"),
    "a due time in a run and in a summary": (appended(summary(DUES[0], DUES[1], 2)), "2 records"),
    "a summary that counts wrong": (appended(summary(DUES[0], DUES[1], 3)), "says 3 due times, there are 2"),
    "a due time that never was": (appended(run(DUES[0] + 500)), "a record, but no due time"),
    "a run created twice": (appended(run(DUES[4], RunState.SUCCEEDED, created_ms=1)), "created 2 times"),
    "a run that ended begins again": (appended(run(DUES[4], RunState.WAITING)), "succeeded is followed by waiting"),
    "an attempt number that falls": (
        appended(run(DUES[4], RunState.SUCCEEDED, attempt=0)), "attempt 1 is followed by attempt 0"),
    "an attempt granted twice": (
        appended(run(DUES[4], RunState.RUNNING, incarnation="w.2", claim=1)), "attempt 1 was granted to"),
    "a stale leader's record": (appended(run(DUES[4], RunState.SUCCEEDED, term=-1)), "of term -1, while term 0 holds"),
    "an early record": (
        replace(good(), ledger=[replace(one, append_ms=one.append_ms - 6) for one in good().ledger]),
        "1 ms before its due time"),
    "an early effect": (
        replace(good(), effects=[*good().effects[1:], effect(DUES[0], at_ms=DUES[0] - 300)]), "happened 300 ms before"),
    "an effect twice in one attempt": (
        replace(good(), effects=[*good().effects, effect(DUES[0])]), "happened twice in one attempt"),
    "an effect without a grant": (
        replace(good(), effects=[*good().effects, effect(DUES[0], attempt=2)]), "which was never granted"),
    "an effect that is missing": (replace(good(), effects=good().effects[1:]), "never happened"),
    "a run that succeeded without its step": (
        replace(good(), effects=good().effects[1:], steps=good().steps[1:]), "succeeded without it"),
    "a key that changed": (
        replace(good(), effects=[*good().effects, effect(DUES[0], attempt=2, key="other")]), "its key changed"),
    "what the audit says": (
        replace(good(), audit={"totals": {"missed": 2}, "explained": False, "findings": []}), "2 missed"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_judge_finds(name: str) -> None:
    world, words = WRONG[name]
    assert any(words in fault for fault in told(world)), told(world)
