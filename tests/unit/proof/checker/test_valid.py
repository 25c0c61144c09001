"""No false alarms: what an honest scheduler leaves behind holds, in calm and in storms, and however answers were lost."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from proof.checker.check import check
from proof.history.acts import Fault
from proof.history.verdict import Kind
from tests.unit.proof.checker.edit import LEDGER, chains, changed, forget_answers, with_entries
from tests.unit.proof.checker.histories import calm, plain, squall, stormy
from tests.unit.proof.checker.world import (
    BOUNDS,
    POSTS,
    START_MS,
    World,
    command,
    in_doubt,
    job,
    kill_leader,
    kill_worker,
    lead,
    new_worker,
)


@pytest.mark.parametrize("seed", range(4))
def test_valid_histories_hold(seed: int) -> None:
    for make in (calm, plain, squall, stormy):
        assert check(make(seed)).violations == (), make.__name__


@pytest.mark.parametrize("seed", range(2))
def test_what_landed_without_an_answer_is_allowed(seed: int) -> None:
    assert check(forget_answers(squall(seed))).violations == ()


def test_figures_of_a_storm() -> None:
    verdict = check(stormy(1))
    assert verdict.due_times > 150 and verdict.runs == sum(verdict.runs_by_state.values())
    assert {"succeeded", "skipped", "failed"} <= set(verdict.runs_by_state)
    assert sum(verdict.ends.values()) == verdict.due_times
    assert {"succeeded", "failed", "passed over"} <= set(verdict.ends)
    assert [(each.cause, each.took_ms) for each in verdict.take_overs] == [("kill", 500), ("kill", 6_000)]
    assert verdict.leaderless_ms == 6_500
    assert 0 < sum(count for _, count in verdict.steps_again) <= verdict.kills_in_flight, "one for each stopped attempt"
    assert {kind for kind, _ in verdict.steps_again} <= {"kill", "freeze"}


def test_a_record_is_late_one_millisecond_after_what_is_allowed() -> None:
    history = calm(0)
    allowed = BOUNDS.lateness_ms + BOUNDS.skew_ms
    tried = 0
    for key, chain in chains(history).items():
        place, run = chain[0]
        if run.due_ms < START_MS + allowed:
            continue  # before that the first scheduler and broker of the history had just begun
        tried += 1
        at = run.due_ms + allowed
        kinds = [{v.kind for v in check(changed(history, LEDGER, place, append_ms=ms)).violations} for ms in (at, at + 1)]
        assert Kind.LATE not in kinds[0] and Kind.LATE in kinds[1], key
    assert tried


def test_a_fault_explains_lateness_until_the_allowance_after_its_end() -> None:
    history = calm(0)
    place, run = list(chains(history).values())[-1][0]
    fault = Fault(kind="freeze", target="s1", began_ms=run.due_ms - 500, ended_ms=run.due_ms + 3_000)
    allowed = fault.ended_ms + BOUNDS.lateness_ms + BOUNDS.skew_ms
    for target, at, late in (("s1", allowed, False), ("s1", allowed + 1, True), ("b1", allowed, False), ("w1", allowed, True)):
        noted = replace(history.noted, faults=(replace(fault, target=target),))
        broken = replace(changed(history, LEDGER, place, append_ms=at), noted=noted)
        assert (Kind.LATE in {violation.kind for violation in check(broken).violations}) is late, (target, at)


def test_time_without_any_scheduler_explains_lateness_and_a_living_spare_does_not() -> None:
    world = World(3).at(0.1, job("a", "1s")).at(0, lead).at(3, kill_leader).at(8, lead)
    history = world.history(10)
    assert check(history).violations == ()
    spare = replace(history.noted.lives[-1], process="spare", pid=77, began_ms=START_MS)
    watched = replace(history, noted=replace(history.noted, lives=(*history.noted.lives, spare)))
    assert {violation.kind for violation in check(watched).violations} == {Kind.LATE}


def test_a_step_done_again_needs_a_fault() -> None:
    for seed in range(20):
        world = World(seed, pace_ms=400).at(0.1, job("a", "2s", "walk")).at(4.7, kill_worker(0)).at(4.9, kill_worker(1))
        history = world.at(7, new_worker(0)).at(7, new_worker(1)).history(8)
        verdict = check(history)
        assert verdict.violations == ()
        if verdict.steps_again:
            forgotten = replace(history, noted=replace(history.noted, faults=()))
            found = check(forgotten).violations
            assert {violation.kind for violation in found if "no fault explains it" in violation.what} == {Kind.DOUBLED}
            return
    pytest.fail("no seed stops a step in flight")


def test_a_trigger_that_nobody_answered_leads_to_one_run_if_it_landed() -> None:
    for lands in (True, False):
        trigger = in_doubt(command("trigger", "t", job="a"), lands=lands)
        verdict = check(World(1).at(0.1, job("a", "5s")).at(2, trigger).history(4))
        assert (verdict.violations, verdict.runs) == ((), int(lands))


def test_a_produced_record_that_no_run_asked_for_is_unexplained() -> None:
    history = squall(1)
    partition = next(partition for partition in history.log if partition[0] == POSTS)
    first = history.log[partition][0]
    stray = replace(first, key=b"c@2026-11-30T00:00:00Z/post", offset=history.log[partition][-1].offset + 1)
    broken = with_entries(history, partition, [*history.log[partition], stray])
    assert [violation.kind for violation in check(broken).violations] == [Kind.UNEXPLAINED]


def test_what_no_publisher_noted_is_unexplained() -> None:
    history = squall(1)
    published = history.noted.published
    for place in range(len(published)):
        if published[place].offset >= 0:
            forgotten = replace(history.noted, published=(*published[:place], *published[place + 1 :]))
            assert {violation.kind for violation in check(replace(history, noted=forgotten)).violations} == {Kind.UNEXPLAINED}


def test_it_is_fast_enough_for_thousands_of_histories() -> None:
    history = stormy(1)
    assert len(history.log[LEDGER]) > 700
    spent = []
    for _ in range(3):
        began = time.process_time()
        check(history)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.5
