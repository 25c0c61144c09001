"""What ended a leader, and which barriers never led."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.schemas.ledger import Barrier
from proof.checker.check import check
from proof.history.acts import Fault, Life, Role
from proof.history.history import History
from tests.unit.proof.checker.edit import LEDGER, doubled, places_of
from tests.unit.proof.checker.world import START_MS, World, job, kill_leader, lead

KILLED_MS, TOOK_MS = START_MS + 3_000, 5_000


def killed() -> History:
    """One leader, killed after three seconds; the next barrier five seconds later."""
    return World(3).at(0.1, job("a", "1s")).at(0, lead).at(3, kill_leader).at(8, lead).history(10)


def with_faults(*faults: Fault) -> History:
    made = killed()
    return replace(made, noted=replace(made.noted, faults=(*made.noted.faults, *faults)))


def cut(target: str, after_ms: int, for_ms: int = 0, *, struck: bool = True) -> Fault:
    began = KILLED_MS + after_ms
    return Fault(kind="cut", target=target, began_ms=began, ended_ms=began + for_ms, struck=struck)


def told(history: History) -> list[tuple[str, int]]:
    return [(one.cause, one.took_ms) for one in check(history).take_overs]


@pytest.mark.parametrize("later", [cut("s1", 2_000), cut("b1", 1_000), cut("s2", 500)])
def test_a_take_over_is_measured_from_the_first_fault_on_the_leader_that_it_did_not_survive(later: Fault) -> None:
    assert told(with_faults(later)) == [("kill", TOOK_MS)]


def test_a_fault_that_the_leader_survived_did_not_end_it() -> None:
    assert told(with_faults(cut("s1", -1_800, 50))) == [("kill", TOOK_MS)]


def test_a_fault_that_was_on_before_the_last_record_ends_it_from_there() -> None:
    made = with_faults(cut("s1", -1_500, 4_000))
    last = max(entry.append_ms for entry in made.log[LEDGER] if entry.append_ms <= KILLED_MS)
    assert told(made) == [("cut", KILLED_MS + TOOK_MS - last)]


def test_what_did_not_strike_ended_nobody() -> None:
    assert told(with_faults(cut("s1", -100, 4_000, struck=False))) == [("kill", TOOK_MS)]


def test_without_any_fault_it_is_measured_from_the_last_record() -> None:
    made = killed()
    bare = replace(made, noted=replace(made.noted, faults=()))
    assert [one.cause for one in check(bare).take_overs] == ["none"]


def test_barriers_in_whose_term_nothing_was_decided_are_counted() -> None:
    made = killed()
    assert (check(made).terms, check(made).terms_unled) == (2, 0)
    place = [place for place, _ in places_of(made, LEDGER, Barrier)][-1]
    twice = check(doubled(made, LEDGER, place))
    assert (twice.terms, twice.terms_unled) == (3, 1)


@pytest.mark.parametrize(("target", "measured"), [("s1", True), ("b1", False)])
def test_while_a_brokers_clock_is_wrong_none_is_measured(target: str, measured: bool) -> None:
    fault = Fault(kind="clock-step", target=target, began_ms=START_MS + 500, ended_ms=START_MS + 900, shift_ms=3_000)
    life = Life(process="b1", role=Role.BROKER, pid=99, began_ms=START_MS, ended_ms=-1, how="")
    made = with_faults(fault)
    made = replace(made, noted=replace(made.noted, lives=(*made.noted.lives, life)))
    verdict = check(made)
    assert (len(verdict.take_overs), verdict.unmeasured) == ((1, 0) if measured else (0, 1))
