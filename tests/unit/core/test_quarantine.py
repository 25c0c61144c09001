"""Poison: what a bug keeps from being decided is refused or set aside, with its name, and all else goes on."""

from __future__ import annotations

import pytest

from dueline.schemas.command import CommandKind
from dueline.schemas.ledger import Fence, FencePhase
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import Outcome
from tests.unit.core.quarantined import (
    Plant,
    QuarantinedWorld,
    in_its_admission,
    in_its_commands,
    in_its_due_times,
    in_its_ends,
    in_its_losses,
    in_its_records,
)
from tests.unit.core.world import at, job, worker


def world_of(*jobs: str) -> QuarantinedWorld:
    """A world with these jobs, each due once a minute."""
    world = QuarantinedWorld(worker(slots=8))
    for name in jobs:
        world.publish(job(name))
    world.round()
    return world


def test_a_command_that_cannot_be_decided_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given two commands of which one meets a bug; then it is a dead letter that names place and error, the other applies."""
    world = world_of("ill", "well")
    in_its_commands(monkeypatch, "ill")
    world.send(CommandKind.PAUSE, "ill")
    world.send(CommandKind.PAUSE, "well")
    decision = world.round()
    (letter,) = decision.rejected
    assert (letter.topic, letter.partition, letter.offset, letter.error) == ("control", 0, 0, "internal-error")
    assert "Bug: planted" in letter.detail
    assert [version.job for version in decision.versions] == ["well"]
    assert world.round().rejected == []


def test_a_definition_whose_record_cannot_be_encoded_is_refused() -> None:
    """Given a payload that is no text in UTF-8, then its definition is refused and the one behind it holds."""
    world = world_of()
    world.publish(job("ill", payload='"\ud800"'))
    world.publish(job("well"))
    decision = world.round()
    assert [(letter.offset, letter.error) for letter in decision.rejected] == [(0, "internal-error")]
    assert [version.job for version in decision.versions] == ["well"]


@pytest.mark.parametrize("plant", [in_its_due_times, in_its_admission, in_its_records], ids=lambda plant: plant.__name__)
def test_a_job_that_cannot_be_decided_is_set_aside_and_loses_nothing(monkeypatch: pytest.MonkeyPatch, plant: Plant) -> None:
    """Given a bug that its due times meet for a while; then others fire, it keeps no round awake, and the next term finds
    all that is due."""
    world = world_of("ill", "well")
    with monkeypatch.context() as patch:
        plant(patch, "ill")
        if plant is in_its_due_times:
            world.take_over()
        world.round(at(60))
        assert {run.job.id for run in world.round(at(120)).ledger if isinstance(run, Run)} == {"well"}
        assert list(world.state.aside) == ["ill"]
        assert world.state.next_wake(world.now) == at(180)
        world.take_over()
        world.round()
        assert list(world.state.aside) == ["ill"]
    world.take_over()
    world.rounds()
    assert world.state.aside == {}
    assert [world.due(seconds, "ill").state for seconds in (60, 120)] == [RunState.DISPATCHED, RunState.SKIPPED]


def test_a_new_version_is_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a job set aside, then mended; then its new version needs no new term."""
    world = world_of("ill", "well")
    with monkeypatch.context() as patch:
        in_its_admission(patch, "ill")
        world.round(at(60))
        assert list(world.state.aside) == ["ill"]
    world.publish(job("ill", payload='"mended"'), when=at(65))
    world.round(at(70))
    world.round(at(120))
    assert [world.due(seconds, "ill").job.version for seconds in (60, 120)] == [1, 2]


def test_a_job_that_stays_ill_keeps_its_new_version_and_is_set_aside_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a new version that meets the bug as well, then it holds, and the round ends."""
    world = world_of("ill")
    in_its_admission(monkeypatch, "ill")
    world.round(at(60))
    world.publish(job("ill", payload='"still ill"'))
    world.round(at(70))
    assert world.state.jobs["ill"].latest.version == 2
    assert list(world.state.aside) == ["ill"]


def ended(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> Run:
    """A run whose attempt ended so, which meets a bug, beside one that meets none."""
    world = world_of("ill", "well")
    world.round(at(60))
    claims = [world.started(world.due(60, name).key) for name in ("ill", "well")]
    with monkeypatch.context() as patch:
        in_its_ends(patch, "ill")
        for claim in claims:
            world.finish(claim, outcome)
        (letter,) = world.round(steps_ends={3: 900}).rejected
    assert (letter.topic, letter.error) == ("attempts", "internal-error")
    assert (world.due(60, "well").state == RunState.SUCCEEDED, world.due(60, "well").losses) == (outcome == Outcome.SUCCESS, 0)
    assert world.state.aside == {}
    return world.due(60, "ill")


def test_a_run_whose_end_cannot_be_decided_is_offered_again_with_what_it_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an interrupted attempt whose end meets a bug; then it is refused, and counts as lost."""
    run = ended(monkeypatch, Outcome.INTERRUPTED)
    assert (run.state, run.attempt, run.losses, "Bug: planted" in run.error) == (RunState.DISPATCHED, 2, 1, True)
    assert [(part.attempt, part.end) for part in run.earlier] == [(1, 900)]


def test_a_run_whose_success_cannot_be_decided_fails_and_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(monkeypatch, Outcome.SUCCESS)
    assert (run.state, run.reason, run.attempt, "Bug: planted" in run.error) == (RunState.FAILED, "internal-error", 1, True)


def test_a_run_that_ends_undecided_again_and_again_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a bug that every end meets, then the run fails once its losses are used up."""
    world = world_of()
    world.publish(job("ill", max_worker_losses=1))
    world.round()
    in_its_ends(monkeypatch, "ill")
    world.round(at(60))
    for _ in range(2):
        world.finish(world.started(world.due(60, "ill").key), Outcome.FAILURE)
        world.rounds()
    run = world.due(60, "ill")
    assert (run.state, run.reason) == (RunState.FAILED, "internal-error")


def test_a_job_whose_runs_cannot_even_be_given_up_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an end that meets a bug, and records of its job that cannot be written; then the round ends, and others go on."""
    world = world_of("ill", "well")
    world.round(at(60))
    claims = {name: world.started(world.due(60, name).key) for name in ("ill", "well")}
    in_its_records(monkeypatch, "ill")
    for claim in claims.values():
        world.finish(claim)
    assert [letter.offset for letter in world.round().rejected] == [2]
    assert list(world.state.aside) == ["ill"]
    assert [world.due(60, name).state for name in ("ill", "well")] == [RunState.RUNNING, RunState.SUCCEEDED]


def test_a_fence_waits_for_the_run_that_cannot_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a fenced worker with a run of a job that meets a bug and another; then the other is given away at once, and the
    fence is done when the job is mended."""
    world = world_of("ill", "well")
    world.round(at(60))
    for name in ("ill", "well"):
        world.started(world.due(60, name).key)
    with monkeypatch.context() as patch:
        in_its_losses(patch, "ill")
        world.fence(worker())
        assert [world.due(60, name).state for name in ("ill", "well")] == [RunState.RUNNING, RunState.WAITING]
        assert phases(world) == [FencePhase.INTENT]
    world.take_over()
    world.fence(worker())
    assert world.due(60, "ill").state == RunState.WAITING
    assert phases(world) == [FencePhase.INTENT, FencePhase.DONE]


def phases(world: QuarantinedWorld) -> list[str]:
    """What the ledger says of fences."""
    return [record.phase for record in world.runs if isinstance(record, Fence)]


def test_a_job_set_aside_that_is_absent_from_jobs_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """L12: given a job set aside whose deletion was missed; then it is found absent once, and must not fire when it is mended."""
    world = world_of("ill", "well")
    world.round(at(30), anchor=True, read_jobs_ms=at(30))
    with monkeypatch.context() as patch:
        in_its_admission(patch, "ill")
        world.round(at(60))
        assert list(world.state.aside) == ["ill"]
        world.round(at(70), absent_jobs=["ill"])
    assert not world.state.jobs["ill"].live
    world.take_over()
    world.rounds()
    assert [run.due_ms for run in world.runs if isinstance(run, Run) and run.job.id == "ill"] == []
