"""A failing plan becomes as small as it can be, and still fails."""

from __future__ import annotations

from collections.abc import Sequence

from proof.simulation.plan import FaultKind, Planned, Profile
from proof.simulation.setup import Setup
from proof.simulation.shrink import minimal, shrunk


def test_what_is_not_needed_goes() -> None:
    asked: list[int] = []

    def fails(items: Sequence[int]) -> bool:
        asked.append(len(items))
        return {3, 17} <= set(items)

    assert minimal(range(40), fails) == [3, 17]
    assert len(asked) < 80


def test_a_failure_without_any_fault_leaves_none() -> None:
    assert minimal(range(9), lambda _: True) == []


def test_a_setup_loses_faults_and_time() -> None:
    plan = tuple(Planned(kind=FaultKind.KILL, at_s=float(at), target="s1") for at in range(100, 3000, 100))
    setup = Setup(seed=1, hours=1.0, profile=Profile.ROUGH, plan=plan)

    def fails(candidate: Setup) -> bool:
        return any(fault.at_s == 700 for fault in candidate.faults()) and candidate.heal_s >= 700

    small = shrunk(setup, fails)
    assert [fault.at_s for fault in small.faults()] == [700]
    assert small.hours < 0.3
    assert fails(small)


def test_the_number_of_tries_is_bounded() -> None:
    asked: list[Setup] = []
    plan = tuple(Planned(kind=FaultKind.KILL, at_s=float(at), target="s1") for at in range(100, 3000, 10))

    def fails(candidate: Setup) -> bool:
        asked.append(candidate)
        return len(candidate.faults()) > 100

    small = shrunk(Setup(seed=1, plan=plan), fails, tries=20)
    assert len(asked) == 20
    assert len(small.faults()) > 100


def test_a_setup_is_written_and_read_back() -> None:
    setup = Setup(seed=5, hours=0.5, profile=Profile.BRUTAL)
    again = Setup.from_json(setup.to_json())
    assert again.faults() == setup.faults()
    assert len(again.faults()) > 20
    assert (again.seed, again.hours, again.profile) == (5, 0.5, Profile.BRUTAL)
