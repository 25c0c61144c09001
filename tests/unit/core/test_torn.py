"""L5, L6: the order inside a transaction, and what every prefix of one leaves to the next leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dueline.scheduler.core.decision import Decision
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Positions
from dueline.schemas.run import Run, Summary
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, busy, fold, snapshot


def test_the_order_inside_a_transaction() -> None:
    """L5: then a job's runs stand in due-time order and the positions record last, as far as everything was read (L6)."""
    world = busy()
    decision = world.round(read_jobs_ms=at(330))
    assert len(decision.versions) == 2
    dues: dict[str, list[int]] = {}
    for record in decision.ledger[:-1]:
        assert isinstance(record, Run | Summary)
        name = record.job.id if isinstance(record, Run) else record.job
        dues.setdefault(name, []).append(record.due_ms if isinstance(record, Run) else record.first_ms)
    assert set(dues) == {"a", "b", "c"}
    assert all(instants == sorted(instants) for instants in dues.values())
    positions = decision.ledger[-1]
    assert isinstance(positions, Positions)
    assert {(p.topic, p.topic_id, p.offset) for p in positions.positions} == {
        ("jobs", "jobs-id", 4),
        ("control", "control-id", 3),
        ("attempts", "attempts-id", 0),
    }
    assert (positions.jobs_read_ms, positions.leader_ms, positions.term) == (at(330), at(330), world.state.term)


def test_every_prefix_leads_to_the_same_due_times() -> None:
    """Given any prefix of that transaction, then the next leader decides each due time once, and the same way."""
    decision = busy().plan()
    size = len(decision.versions) + len(decision.ledger)
    assert size > 15
    outcomes = []
    for keep in range(size + 1):
        world = busy()
        world.crash(keep=keep)
        world.rounds()
        assert faults(world.versions, world.runs, world.now) == []
        assert snapshot(fold(world.versions, world.runs)) == snapshot(world.state)
        outcomes.append((_dues(world), [(v.key, v.effective_ms, v.taken) for v in world.versions]))
    assert outcomes == [outcomes[0]] * (size + 1)


def _dues(world: World) -> dict[str, tuple[object, ...]]:
    last: dict[str, tuple[object, ...]] = {}
    for record in world.runs:
        if isinstance(record, Run):
            last[record.key] = (record.job.version, record.reason if record.state == "skipped" else "runs")
        elif isinstance(record, Summary):
            last[record.key] = (record.version, record.count, record.reason)
    return last


def test_prefix_after_prefix() -> None:
    """Given leaders that all die at their first record, one after the other, then still nothing is lost or doubled."""
    world = busy()
    for _ in range(40):
        world.crash(keep=1)
    world.rounds()
    assert faults(world.versions, world.runs, world.now) == []


def _shuffled(decision: Decision) -> list[object]:
    return [*decision.versions, *reversed(decision.ledger)]


def _runs_before_versions(decision: Decision) -> list[object]:
    return [*decision.ledger, *decision.versions]


@pytest.mark.parametrize("order", [_shuffled, _runs_before_versions])
def test_control_another_order_loses_due_times_or_inputs(order: Callable[[Decision], list[object]]) -> None:
    """Negative control of L5: given the records in another order, then some prefix loses or doubles, and the check sees it."""
    size = len(busy().plan().ledger) + 2
    whole = busy()
    whole.rounds()
    seen = []
    for keep in range(1, size):
        world = busy()
        for record in order(world.plan())[:keep]:
            if isinstance(record, JobVersion):
                world.versions.append(record)
            else:
                world.runs.append(record)  # type: ignore[arg-type]
        world.take_over()
        world.rounds()
        wrong = faults(world.versions, world.runs, world.now)
        seen += wrong or (["a version is lost"] if len(world.versions) < len(whole.versions) else [])
    assert seen


@pytest.mark.parametrize("drop", range(4))
def test_control_the_checker_sees_a_dropped_and_a_doubled_record(drop: int) -> None:
    """Given a good ledger, then it is a fault to take any decided due time out, or to decide one again."""
    world = busy()
    world.rounds()
    assert faults(world.versions, world.runs, world.now) == []
    decided = [r for r in world.runs if isinstance(r, Summary) or (isinstance(r, Run) and r.previous_due_ms > 0)]
    victim = decided[drop * (len(decided) - 1) // 3]
    without = [record for record in world.runs if getattr(record, "key", "") != victim.key]
    assert any("lost" in fault for fault in faults(world.versions, without, world.now))
    if isinstance(victim, Summary):
        doubled = [*world.runs, _again(world, victim)]
        assert any("2 records" in fault for fault in faults(world.versions, doubled, world.now))


def _again(world: World, summary: Summary) -> Run:
    template = next(record for record in world.runs if isinstance(record, Run))
    constants = replace(template.job, id=summary.job, version=summary.version)
    return replace(template, job=constants, due_ms=summary.first_ms, previous_due_ms=summary.previous_due_ms)
