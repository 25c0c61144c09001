"""A broker's wrong clock widens what is allowed only around the fault that moved it; a scheduler's widens nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proof.checker.check import check
from proof.checker.skew import CACHED_MS, NOISE_MS, Skew
from proof.history.acts import Fault
from proof.history.history import History
from proof.history.verdict import Kind
from tests.unit.proof.checker.edit import with_effects
from tests.unit.proof.checker.histories import calm
from tests.unit.proof.checker.world import BOUNDS, START_MS, World, job, kill_leader, lead

SHIFT_MS = 5_000


def moved(began_ms: int, target: str = "b1", shift_ms: int = SHIFT_MS) -> Fault:
    return Fault(kind="clock-step-broker", target=target, began_ms=began_ms, ended_ms=began_ms + 1_000, shift_ms=shift_ms)


def under(history: History, *faults: Fault) -> History:
    return replace(history, noted=replace(history.noted, faults=faults))


def test_a_comparison_is_given_the_shift_while_one_of_its_times_is_near() -> None:
    skew = Skew(under(calm(0), moved(START_MS)))
    last_ms = START_MS + 1_000 + SHIFT_MS + CACHED_MS
    assert skew.at(START_MS - SHIFT_MS - CACHED_MS) == NOISE_MS + SHIFT_MS
    assert skew.at(last_ms, last_ms + 1) == NOISE_MS + SHIFT_MS
    assert skew.at(last_ms + 1) == skew.at(START_MS - SHIFT_MS - CACHED_MS - 1) == BOUNDS.skew_ms


def test_of_several_faults_the_two_that_moved_most_add_up() -> None:
    skew = Skew(under(calm(0), *(moved(START_MS, shift_ms=shift) for shift in (2_000, 7_000, 3_000))))
    assert skew.at(START_MS) == NOISE_MS + 10_000


def test_a_small_shift_takes_nothing_from_the_bounds() -> None:
    assert Skew(under(calm(0), moved(START_MS, shift_ms=10))).at(START_MS) == BOUNDS.skew_ms


@pytest.mark.parametrize(
    ("target", "away_ms", "allowed"), [("b1", 0, True), ("b1,b2", 0, True), ("s1", 0, False), ("b1", 60_000, False)]
)
def test_an_effect_before_its_due_time_needs_a_broker_whose_clock_was_wrong_then(
    target: str, away_ms: int, allowed: bool
) -> None:
    history = calm(0)
    effects = list(history.noted.effects)
    place = len(effects) // 2
    effects[place] = effect = replace(effects[place], at_ms=effects[place].due_ms - SHIFT_MS)
    broken = under(with_effects(history, effects), moved(effect.due_ms + away_ms, target))
    assert (Kind.EARLY in {violation.kind for violation in check(broken).violations}) is not allowed


# --- sessions that are not the run's ----------------------------------------------------------------------------------


def test_a_take_over_says_the_session_of_the_leader_that_ended() -> None:
    history = World(3).at(0.1, job("a", "1s")).at(0, lead).at(3, kill_leader).at(8, lead).history(10)
    lives = tuple(replace(life, session_ms=3_000) if life.ended_ms >= 0 else life for life in history.noted.lives)
    longer = replace(history, noted=replace(history.noted, lives=lives))
    assert [one.session_ms for one in check(history).take_overs] == [0]
    assert [one.session_ms for one in check(longer).take_overs] == [3_000]
    assert check(longer).violations == ()
