"""A bug that one job meets: everybody else's due times are decided on time, and its own once the bug is gone, each once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dueline.schemas.run import Run, Summary
from tests.property.plan_histories import History, Player, histories, replayed, stuck
from tests.property.test_plan_histories import QUICK
from tests.unit.core.checker import faults
from tests.unit.core.quarantined import PLANTS, Bug, Plant, QuarantinedWorld
from tests.unit.core.world import World

SLOW = settings(max_examples=80, deadline=None, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
ILL, WELL = "a", "b"


class Ailing(Player):
    """Plays on, whatever becomes of the job that meets the bug."""

    kind: type[World] = QuarantinedWorld

    def _rounds(self) -> None:
        self.world.rounds()


@SLOW
@given(histories(), st.sampled_from(PLANTS))
def test_a_bug_of_one_job_is_nobody_elses_and_its_due_times_are_kept(history: History, plant: Plant) -> None:
    """Given a bug that a job meets; then the other's are all decided; once the bug is gone, its own are too, each once."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch, ILL)
        world = Ailing(history).play()
        assert faults(*records(world, WELL), world.now) == []
    world.take_over()
    world.rounds()
    world.rounds()
    assert faults(world.versions, world.runs, world.now) == []
    assert stuck(world) == []
    assert replayed(world, history.seed)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_control_without_quarantine_each_bug_ends_the_leader(plant: Plant) -> None:
    """Given the planner that lets exceptions through, then some history meets each bug; else the property proves nothing."""

    @settings(max_examples=200, deadline=None, derandomize=True, database=None, phases=QUICK)
    @given(histories())
    def play(history: History) -> None:
        Unprotected(history).play()

    with pytest.MonkeyPatch.context() as patch:
        plant(patch, ILL)
        with pytest.raises((Bug, ExceptionGroup)):
            play()


class Probing(World):
    """Encodes what was planned, and protects nobody."""

    def plan(self, when: int | None = None, **changes: Any) -> Any:
        from tests.unit.core.quarantined import written

        decision = super().plan(when, **changes)
        written(decision)
        if self.state.aside:
            raise Bug("set aside")  # the fold itself protects due times: there is no planner without that
        return decision


class Unprotected(Ailing):
    """The same histories, with nobody protected."""

    kind: type[World] = Probing


def records(world: World, job: str) -> tuple[list[Any], list[Any]]:
    """One job's versions and ledger records."""
    ledger = [
        record
        for record in world.runs
        if (isinstance(record, Run) and record.job.id == job) or (isinstance(record, Summary) and record.job == job)
    ]
    return [version for version in world.versions if version.job == job], ledger
