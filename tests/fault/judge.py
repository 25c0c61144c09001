"""The judge of the fault tests: from what stands in the log and what happened outside, what promise was broken.

Pure. It shares no code with the scheduler but the records: due times are recomputed here, from the few schedules that the
fault tests use (`{"every": "<n>s"}`; anything else has no due time within a test).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, RunState, Summary, iso
from dueline.schemas.work import Step
from tests.fault.outbox import Effect

CLOCK_MS: Final = 250
"""How much earlier than its due time an effect may seem: the worker carries the broker's clock forward by its own."""
ENDS: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A committed record of `runs`: its offset, and the broker's time."""

    record: Run | Summary | Barrier | object
    offset: int
    append_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All there is to know. `ledger` in the order of the log."""

    ledger: Sequence[Placed]
    versions: Sequence[JobVersion] = ()
    steps: Sequence[Step] = ()
    effects: Sequence[Effect] = ()
    audit: dict[str, object] = field(default_factory=dict)


def judge(world: World, *, until_ms: int) -> list[str]:
    """Every broken promise, a line each. Due times up to `until_ms` must have a record; runs due later may be under way, so
    that what happened in them is not judged yet."""
    world = _up_to(world, until_ms)
    return [
        *_due_times(world, until_ms),
        *_early(world),
        *_lives(world),
        *_terms(world),
        *_effects(world, until_ms),
        *_audit(world.audit),
    ]


def _up_to(world: World, until_ms: int) -> World:
    """Effects were read before the ledger, so each must have its run there; steps after it, so some have not."""
    due = {key: _run_of(records[0]).due_ms for key, records in _runs(world).items()}
    return replace(
        world,
        steps=[step for step in world.steps if due.get(step.run, until_ms + 1) <= until_ms],
        effects=[effect for effect in world.effects if due.get(effect.run, 0) <= until_ms],
    )


# --- due times --------------------------------------------------------------------------------------------------------


def _due_times(world: World, until_ms: int) -> Iterator[str]:
    """Exactly one record for each: a run, or a summary that covers it."""
    scheduled: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for key, records in _runs(world).items():
        run = records[0].record
        assert isinstance(run, Run)
        if not run.command:
            scheduled[run.job.id][run.due_ms] += 1
        if key != run.key:
            yield f"{key}: holds the record of {run.key}"
    for job, expected in _expected(world, until_ms).items():
        found = scheduled[job]
        for summary in _summaries(world, job):
            covered = [due for due in expected if summary.first_ms <= due <= summary.last_ms]
            found.update(covered)
            if len(covered) != summary.count:
                yield f"{summary.key}: says {summary.count} due times, there are {len(covered)}"
        for due in expected:
            if not found[due]:
                yield f"{job}@{iso(due)}: no record"
            elif found[due] > 1:
                yield f"{job}@{iso(due)}: {found[due]} records"
        for due in sorted(set(found) - set(expected)):
            if due <= until_ms:
                yield f"{job}@{iso(due)}: a record, but no due time"


def _expected(world: World, until_ms: int) -> dict[str, list[int]]:
    """Due times by job, each by the version that held then."""
    expected: dict[str, list[int]] = {}
    by_job: defaultdict[str, list[JobVersion]] = defaultdict(list)
    for version in world.versions:
        by_job[version.job].append(version)
    for job, versions in by_job.items():
        ends = [version.effective_ms for version in versions[1:]] + [until_ms + 1]
        dues: list[int] = []
        for version, end in zip(versions, ends, strict=True):
            every = _every_ms(version.definition.schedule)
            if every and version.change != "deleted":
                first = -(-version.effective_ms // every) * every
                dues += range(first, min(end, until_ms + 1), every)
        expected[job] = dues
    return expected


def _every_ms(schedule: str) -> int:
    value = json.loads(schedule)
    return int(value["every"].removesuffix("s")) * 1000 if isinstance(value, dict) and "every" in value else 0


def _summaries(world: World, job: str) -> list[Summary]:
    found = {placed.record.key: placed.record for placed in world.ledger if isinstance(placed.record, Summary)}
    return [summary for summary in found.values() if summary.job == job]


def _early(world: World) -> Iterator[str]:
    """Nothing begins before its time: no record of a run that is not ahead, no effect."""
    for key, records in _runs(world).items():
        first, run = records[0], records[0].record
        assert isinstance(run, Run)
        if not run.ahead and first.append_ms < run.due_ms:
            yield f"{key}: its record stands {run.due_ms - first.append_ms} ms before its due time"
    due = {key: _run_of(records[0]).due_ms for key, records in _runs(world).items()}
    for effect in world.effects:
        if effect.run in due and effect.at_ms < due[effect.run] - CLOCK_MS:
            yield f"{effect.key}: happened {due[effect.run] - effect.at_ms} ms before its due time"


# --- runs -------------------------------------------------------------------------------------------------------------


def _runs(world: World) -> dict[str, list[Placed]]:
    """Each run's records, in order."""
    found: defaultdict[str, list[Placed]] = defaultdict(list)
    for placed in world.ledger:
        if isinstance(placed.record, Run):
            found[placed.record.key].append(placed)
    return found


def _run_of(placed: Placed) -> Run:
    assert isinstance(placed.record, Run)
    return placed.record


def _lives(world: World) -> Iterator[str]:
    """A run is created once, its attempts grow, each is granted to one claim, and what has ended stays so."""
    for key, records in _runs(world).items():
        runs = [_run_of(placed) for placed in records]
        if len({run.created_ms for run in runs}) > 1:
            yield f"{key}: created {len({run.created_ms for run in runs})} times"
        for before, after in pairwise(runs):
            if after.attempt < before.attempt:
                yield f"{key}: attempt {before.attempt} is followed by attempt {after.attempt}"
            if before.state in ENDS and after.state != before.state:
                yield f"{key}: {before.state} is followed by {after.state}"
        holders: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
        for run in runs:
            if run.state == RunState.RUNNING:
                holders[run.attempt].add((run.incarnation, run.claim))
        yield from (f"{key}: attempt {n} was granted to {sorted(who)}" for n, who in holders.items() if len(who) > 1)


def _terms(world: World) -> Iterator[str]:
    """After a barrier no record of an older term: a stale leader's write would be one."""
    reached = -1
    for placed in world.ledger:
        if isinstance(placed.record, Barrier):
            reached = max(placed.offset, reached + 1)
            continue
        term = getattr(placed.record, "term", reached)
        if term != reached:
            key = getattr(placed.record, "key", "?")
            yield f"{key} at offset {placed.offset}: of term {term}, while term {reached} holds"


# --- effects ----------------------------------------------------------------------------------------------------------


def _effects(world: World, until_ms: int) -> Iterator[str]:
    """A step's effect once; again only by a later attempt, after one that was stopped before it could record the step."""
    recorded = {(step.run, step.name, step.attempt) for step in world.steps}
    done = {(step.run, step.name) for step in world.steps}
    granted = {
        (run.key, run.attempt) for records in _runs(world).values() for run in map(_run_of, records) if run.incarnation
    }
    by_step: defaultdict[tuple[str, str], list[Effect]] = defaultdict(list)
    lost: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for effect in world.effects:
        if (effect.run, effect.attempt) not in granted:
            yield f"{effect.key}: happened in attempt {effect.attempt}, which was never granted"
        if effect.step:
            by_step[effect.run, effect.step].append(effect)
    for (run, step), effects in by_step.items():
        attempts = [effect.attempt for effect in effects]
        if len({effect.key for effect in effects}) > 1:
            yield f"{run}/{step}: its key changed"
        if len(set(attempts)) < len(attempts):
            yield f"{run}/{step}: happened twice in one attempt"
        for attempt in attempts:
            if (run, step, attempt) not in recorded:
                lost[run, attempt].append(step)
        if len(attempts) > 1 and any((run, step, attempt) in recorded for attempt in sorted(attempts)[:-1]):
            yield f"{run}/{step}: happened in attempts {attempts}, though one of them had recorded it"
    for (run, attempt), names in lost.items():
        if len(names) > 1:
            yield f"{run}: attempt {attempt} lost {len(names)} steps, at most one can be in flight: {names[:5]}"
    for run_key, step in sorted(done - set(by_step)):
        yield f"{run_key}/{step}: recorded, but it never happened"
    for key, records in _runs(world).items():
        last = _run_of(records[-1])
        if last.state == RunState.SUCCEEDED and last.due_ms <= until_ms:
            for step in _steps_of(last):
                if (key, step) not in by_step:
                    yield f"{key}/{step}: the run succeeded without it"


def _steps_of(run: Run) -> list[str]:
    """By the handlers of the fault tests."""
    match run.job.handler:
        case "tick":
            return ["send"]
        case "many":
            return [f"item/{number}" for number in range(json.loads(run.job.payload))]
        case "doomed":
            return [f"item/{number}" for number in range(json.loads(run.job.payload)["steps"])]
    return []


def repeated(effects: Sequence[Effect]) -> list[str]:
    """Keys of effects that happened more than once."""
    return sorted(key for key, count in Counter(effect.key for effect in effects).items() if count > 1)


# --- the command's own audit ------------------------------------------------------------------------------------------


def _audit(audit: dict[str, object]) -> Iterator[str]:
    if not audit:
        return
    totals = audit["totals"]
    assert isinstance(totals, dict)
    for verdict in ("missed", "duplicated", "early", "unexplained"):
        if totals.get(verdict):
            findings = audit["findings"]
            assert isinstance(findings, list)
            first = next((f for f in findings if f["verdict"] == verdict), None)
            yield f"dueline audit: {totals[verdict]} {verdict}, e.g. {first}"
    if audit["explained"] is not True:
        yield "dueline audit: not all is explained"
