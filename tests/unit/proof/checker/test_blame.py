"""Which faults explain what: those that struck the process itself, its links or a broker; no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proof.checker.again import cause
from proof.checker.blame import Blame
from proof.checker.check import check
from proof.history.acts import STARVED, Effect, Fault, Life, Noted, Role
from proof.history.history import History
from tests.unit.proof.checker.histories import calm, squall
from tests.unit.proof.checker.world import BOUNDS, START_MS

PROCESSES = ("w1", "w2", "s1")


def history(*faults: Fault) -> History:
    roles = {"w1": Role.WORKER, "w2": Role.WORKER, "s1": Role.SCHEDULER, "b1": Role.BROKER}
    lives = [Life(process=name, role=role, pid=1, began_ms=START_MS, ended_ms=-1, how="") for name, role in roles.items()]
    return replace(calm(0), noted=Noted(faults=faults, lives=tuple(lives)))


def effect(process: str, at_ms: int, began_ms: int = -1) -> Effect:
    return Effect(
        job="a", due_ms=START_MS, step="s", key="k", run="r", attempt=1, at_ms=at_ms, process=process, began_ms=began_ms
    )


def fault(target: str, kind: str = "cut", *, began_ms: int = START_MS + 1_000, for_ms: int = 0, struck: bool = True) -> Fault:
    return Fault(kind=kind, target=target, began_ms=began_ms, ended_ms=began_ms + for_ms, struck=struck)


def blamed(*faults: Fault) -> str:
    made = history(*faults)
    return cause(made, Blame(made), effect("w1", START_MS + 1_000), effect("w2", START_MS + 4_000))


@pytest.mark.parametrize("target", ["w1", "w2", "w1,s1", "w1>b1", "b1", "b1,b2"])
def test_a_fault_on_either_process_its_links_or_a_broker_explains_a_second_effect(target: str) -> None:
    assert blamed(fault(target)) == "cut"


@pytest.mark.parametrize("began_ms", [START_MS + 1_000, -1])
def test_a_step_that_was_under_way_when_heartbeats_failed_is_explained_from_its_call_on(began_ms: int) -> None:
    made = history(fault("w1"))
    long_ms = START_MS + 1_000 + 2 * BOUNDS.worker_timeout_ms
    found = cause(made, Blame(made), effect("w1", long_ms, began_ms), effect("w2", long_ms + 1_000))
    assert found == ("cut" if began_ms >= 0 else "")


@pytest.mark.parametrize(
    ("target", "waited_ms", "explains"),
    [
        ("w1", 19_000 - BOUNDS.skew_ms, True),
        ("w1", 19_000 - BOUNDS.skew_ms - 1, False),
        ("b1", 19_000 - BOUNDS.skew_ms, True),
        ("w2", 19_000 - BOUNDS.skew_ms, False),  # it missed no answer
    ],
)
def test_an_answer_that_a_fault_kept_away_is_missed_so_much_later(target: str, waited_ms: int, explains: bool) -> None:
    made = history(fault(target))
    first, again = effect("w1", START_MS + 20_000), effect("w2", START_MS + 21_000)
    assert bool(cause(made, Blame(made), first, again, waited_ms=waited_ms)) is explains


@pytest.mark.parametrize("target", ["s1", "w3", "s1>b1", "", "machine"])
def test_a_fault_elsewhere_explains_none(target: str) -> None:
    assert blamed(fault(target)) == ""


def test_its_own_process_comes_before_a_broker_and_the_latest_before_an_earlier_one() -> None:
    faults = (fault("b1", "kill-broker", began_ms=START_MS + 2_000), fault("w1", "first"), fault("w2", "then"))
    assert blamed(*faults, fault("w1", "last", began_ms=START_MS + 1_500)) == "last"


@pytest.mark.parametrize(
    ("began_ms", "explains"),
    [
        (START_MS + 1_000 - BOUNDS.worker_timeout_ms - BOUNDS.skew_ms, True),
        (START_MS + 1_000 - BOUNDS.worker_timeout_ms - BOUNDS.skew_ms - 1, False),
        (START_MS + 4_000 + BOUNDS.skew_ms, True),
        (START_MS + 4_000 + BOUNDS.skew_ms + 1, False),
    ],
)
def test_only_from_the_worker_time_out_before_the_first_to_the_second(began_ms: int, explains: bool) -> None:
    assert bool(blamed(fault("w1", began_ms=began_ms))) is explains


def test_what_did_not_strike_explains_nothing() -> None:
    assert blamed(fault("w1", struck=False)) == ""


@pytest.mark.parametrize(("for_ms", "explains"), [(BOUNDS.worker_timeout_ms, True), (BOUNDS.worker_timeout_ms - 1, False)])
def test_a_standstill_of_the_machine_explains_it_if_it_is_as_long_as_the_worker_time_out(for_ms: int, explains: bool) -> None:
    assert bool(blamed(fault("machine", STARVED, for_ms=for_ms))) is explains


def test_a_fault_of_the_whole_cluster_needs_a_kind_that_keeps_brokers_from_answering() -> None:
    assert blamed(fault("", "coordinator-move")) == "coordinator-move"
    assert blamed(fault("", "group-deleted")) == ""


def test_faults_that_did_not_strike_are_as_if_they_were_not_there_and_are_counted_apart() -> None:
    made = squall(1)
    assert check(made).violations == ()
    missed = replace(made.noted, faults=tuple(replace(each, struck=False) for each in made.noted.faults))
    none = replace(made.noted, faults=())
    verdict = check(replace(made, noted=missed))
    assert verdict.violations == check(replace(made, noted=none)).violations != ()
    assert (verdict.faults, verdict.faults_missed) == (0, len(made.noted.faults))
    assert (check(made).faults, check(made).faults_missed) == (len(made.noted.faults), 0)
