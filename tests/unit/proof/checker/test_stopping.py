"""A worker's last word: who says that it stopped holds nothing, writes nothing more, and told the end of all it was granted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.schemas.run import Run
from dueline.schemas.work import AttemptEvent, WorkerState
from proof.checker.check import check
from proof.history.acts import Fault
from proof.history.history import History
from tests.unit.proof.checker.crew import ATTEMPTS, STEPS
from tests.unit.proof.checker.edit import LEDGER, chains, changed, of_topic, record_of, without
from tests.unit.proof.checker.last_words import saying
from tests.unit.proof.checker.world import BOUNDS, START_MS, World, job

LATER_MS = BOUNDS.skew_ms + 1


def once() -> History:
    """One run of five steps, and all is over."""
    return World(1).at(0.1, job("once", handler="walk", schedule={"at": "2026-11-30T00:53:23Z"})).history(9)


def work(history: History) -> tuple[Run, int, int]:
    """The run as it was granted, and when; and when its worker told of its end."""
    [chain] = chains(history).values()
    place, run = next((place, run) for place, run in chain if run.state == "running")
    return run, history.log[LEDGER][place].append_ms, history.log[ATTEMPTS, run.home][-1].append_ms


def said(history: History) -> str:
    return " | ".join(violation.what for violation in check(history).violations)


@pytest.mark.parametrize("early_ms", [0, BOUNDS.skew_ms])
def test_one_that_told_all_may_say_that_it_stopped(early_ms: int) -> None:
    history = once()
    run, _, told_ms = work(history)
    assert check(saying(history, run.incarnation, told_ms - early_ms)).violations == ()


def test_it_names_no_claims() -> None:
    history = once()
    run, _, told_ms = work(history)
    assert said(saying(history, run.incarnation, told_ms, claims=True)) == "it said that it stopped, and names 1 claims"


@pytest.mark.parametrize("state", list(WorkerState))
def test_it_sends_no_heartbeat_any_more(state: str) -> None:
    history = once()
    run, _, told_ms = work(history)
    more = saying(saying(history, run.incarnation, told_ms), run.incarnation, told_ms, state=state)
    assert said(more) == f"it said that it stopped, and then sent another heartbeat ({state})"


@pytest.mark.parametrize("topic", [STEPS, ATTEMPTS])
def test_it_writes_nothing_any_more(topic: str) -> None:
    history = once()
    run, _, told_ms = work(history)
    places = [place for partition, place in of_topic(history, topic) if partition == (topic, run.home)]
    entries = history.log[topic, run.home]
    late = changed(history, (topic, run.home), places[-1], append_ms=max(told_ms, entries[-1].append_ms) + LATER_MS)
    assert f"written by {run.incarnation} {LATER_MS} ms after it had said that it stopped" in said(
        saying(late, run.incarnation, told_ms)
    )


def _untold(history: History) -> History:
    """Nobody told of the attempt's end."""
    places = [
        (partition, place)
        for partition, place in of_topic(history, ATTEMPTS)
        if isinstance(event := record_of(history.log[partition][place]), AttemptEvent) and event.outcome
    ]
    [(partition, place)] = places
    return without(history, partition, place)


UNTOLD = "said that it stopped, and had not told the end of attempt 1"


@pytest.mark.parametrize(("after_grant_ms", "asked"), [(BOUNDS.skew_ms, False), (LATER_MS, True)])
def test_it_has_told_the_end_of_what_it_was_granted_before(after_grant_ms: int, asked: bool) -> None:
    history = once()
    run, granted_ms, _ = work(history)
    assert (UNTOLD in said(saying(_untold(history), run.incarnation, granted_ms + after_grant_ms))) is asked


def test_the_end_that_another_claim_told_is_not_its_own() -> None:
    history = once()
    run, _, told_ms = work(history)
    places = [place for partition, place in of_topic(history, ATTEMPTS) if partition == (ATTEMPTS, run.home)]
    event = record_of(history.log[ATTEMPTS, run.home][places[-1]])
    assert isinstance(event, AttemptEvent)
    other = changed(history, (ATTEMPTS, run.home), places[-1], replace(event, claim=event.claim + 1))
    assert UNTOLD in said(saying(other, run.incarnation, told_ms))


@pytest.mark.parametrize("state", ["lost", "draining"])
def test_no_other_word_says_so(state: str) -> None:
    history = once()
    run, granted_ms, _ = work(history)
    assert "said that it stopped" not in said(saying(_untold(history), run.incarnation, granted_ms + LATER_MS, state=state))


def test_ends_that_have_expired_are_not_asked_for() -> None:
    history = once()
    run, granted_ms, _ = work(history)
    expired = Fault(kind="retention-over", target="attempts", began_ms=START_MS, ended_ms=START_MS)
    gone = _untold(replace(history, noted=replace(history.noted, faults=(expired,))))
    assert UNTOLD not in said(saying(gone, run.incarnation, granted_ms + LATER_MS))
