"""Each end has its ground, and the right rule finds the one that has none; and what conducts allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dueline.schemas.run import Run
from dueline.schemas.work import AttemptEvent
from proof.checker.check import check
from proof.checker.limits import under_way
from proof.checker.waits import back_off_ms
from proof.history.acts import STARVED, Conduct, Fault
from proof.history.history import History
from tests.unit.proof.checker import spite, untruth
from tests.unit.proof.checker.crew import ATTEMPTS
from tests.unit.proof.checker.edit import LEDGER, Broken, chains, changed, of_topic, record_of
from tests.unit.proof.checker.histories import calm, squall
from tests.unit.proof.checker.whereabouts import end_its_life_before
from tests.unit.proof.checker.world import START_MS

ALWAYS = Fault(kind="cut", target="s1", began_ms=START_MS, ended_ms=START_MS + 60_000)
"""On a scheduler, all the time: no excuse for what a worker tells."""


def under(history: History, *faults: Fault) -> History:
    return replace(history, noted=replace(history.noted, faults=(*history.noted.faults, *faults)))


def said(broken: Broken) -> Iterator[tuple[str, str]]:
    for place, history in broken:
        yield place, " | ".join(violation.what for violation in check(under(history, ALWAYS)).violations)


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (untruth.cancelled_by_nobody(calm(1)), "no command had asked for it"),
        (untruth.cancelled_for_another_reason(calm(1)), "cancelled as 'by somebody else'"),
        (untruth.lost_too_early(squall(1)), "5 are allowed"),
        (untruth.interrupted_by_nobody(calm(1)), "its process was not ended"),
        (untruth.snoozed_by_nobody(calm(1)), "its handler does not ask for that"),
        (end_its_life_before(calm(1)), "outside the life"),
        (spite.run_outside_the_window(squall(1)), "the catch-up window is"),
        (spite.run_what_was_overtaken(squall(1)), "the policy is to run the latest"),
        (spite.run_too_many(squall(1)), "may run"),
        (spite.go_on_after_the_last_loss(squall(1)), "in a run that goes on"),
        (spite.outlast_its_timeout(calm(1)), "its time-out is 1000 ms"),
        (spite.start_without_jitter(calm(1)), "to which jitter puts it off"),
        (spite.end_a_wait_early(calm(1)), "before the end of its wait"),
    ],
    ids=[
        "cancelled", "cancelled as", "lost", "interrupted", "snoozed", "life", "window", "overtaken", "too many", "losses",
        "time-out", "jitter", "wait",
    ],
)
def test_the_right_rule_finds_it(broken: Broken, words: str) -> None:
    found = list(said(broken))
    assert found
    assert [place for place, what in found if words not in what] == []


@pytest.mark.usefixtures("quick_reading")
def test_a_standstill_is_why_an_attempt_outlasted_its_timeout() -> None:
    starved = replace(ALWAYS, kind=STARVED, target="machine")
    for place, broken in spite.outlast_its_timeout(calm(1)):
        for fault, excused in ((starved, True), (ALWAYS, False)):
            found = " | ".join(violation.what for violation in check(under(broken, fault)).violations)
            assert ("its time-out is" not in found) is excused, place


def test_what_met_a_bug_of_the_leader_counts_as_under_way() -> None:
    run = next(run for chain in chains(calm(1)).values() for _, run in chain if run.state == "waiting")
    assert under_way(replace(run, reason="internal-error")) and not under_way(replace(run, reason="overlap"))


@pytest.mark.usefixtures("quick_reading")
def test_a_failure_needs_its_ground_whatever_happens_to_schedulers() -> None:
    grounds = {
        "failed": "which its handler never does", "retry": "which its handler never does", "result": "which its handler never",
        "steps_expired": "nothing of `steps` had expired", "timeout": "its limit is 3600000",
    }  # fmt: skip
    found = list(said(untruth.failed_for_no_reason(calm(1))))
    assert {place.rpartition(" ")[2] for place, _ in found} == set(grounds)
    assert [place for place, what in found if grounds[place.rpartition(" ")[2]] not in what] == []


def failing(word: str, conduct: Conduct, *faults: Fault) -> str:
    """What is said of an attempt of `tick` on w0 or w1 that told of such a failure, if its handler were like this."""
    history = calm(1)
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        assert isinstance(event, AttemptEvent)
        if event.outcome == "success" and event.run.startswith("b@"):
            told = replace(event, outcome="failure", reason=word)
            noted = replace(history.noted, conducts={**history.noted.conducts, "tick": conduct})
            broken = under(replace(changed(history, partition, place, told), noted=noted), *faults)
            what = (violation.what for violation in check(broken).violations if violation.subject == event.run)
            return " | ".join(each for each in what if each.startswith("attempt "))
    raise AssertionError("no such attempt")


ON_WORKERS = replace(ALWAYS, target="w0,w1")
TICK = Conduct(steps=("send",))


@pytest.mark.parametrize(
    ("word", "conduct", "faults", "allowed"),
    [
        ("exception", TICK, (), False),
        ("exception", TICK, (ON_WORKERS,), True),
        ("exception", TICK, (replace(ON_WORKERS, struck=False),), False),
        ("exception", TICK, (replace(ON_WORKERS, target="b1"),), True),
        ("failed", TICK, (ON_WORKERS,), False),
        ("failed", replace(TICK, flaky=1), (), True),
        ("failed", replace(TICK, flaky=1, failure="failed"), (), True),
        ("exception", replace(TICK, flaky=1, failure="failed"), (), False),
        ("exception", replace(TICK, flaky=1, failure="failed"), (ON_WORKERS,), True),
        ("timeout", replace(TICK, hangs=True), (), False),
    ],
)
def test_an_attempt_may_fail_as_its_handler_does_or_with_a_fault_on_its_process_or_a_broker(
    word: str, conduct: Conduct, faults: tuple[Fault, ...], allowed: bool
) -> None:
    assert (failing(word, conduct, *faults) == "") is allowed


@pytest.mark.parametrize("conduct", [replace(TICK, hangs=True), replace(TICK, flaky=1), replace(TICK, snoozes=1)])
def test_a_handler_that_does_not_succeed_then_never_does(conduct: Conduct) -> None:
    history = calm(1)
    broken = replace(history, noted=replace(history.noted, conducts={**history.noted.conducts, "tick": conduct}))
    assert any("though the handler 'tick' does not" in violation.what for violation in check(broken).violations)


def snoozing(told_after_ms: int, until_after_ms: int) -> str:
    """What is said of the wait of a run of `b` whose worker told of a snooze up to so long after it was read, three seconds
    later, if it waits up to so long after that. Its handler asks for no more than 1 ms."""
    history = calm(1)
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        assert isinstance(event, AttemptEvent)
        if event.outcome == "success" and event.run.startswith("b@"):
            end, run = chains(history)[event.run][-1]
            told = replace(event, outcome="snooze", until_ms=run.leader_ms + told_after_ms)
            waits = replace(
                run, state="waiting", outcome="snooze", reason="snooze", result="", finished_ms=-1,
                until_ms=run.leader_ms + until_after_ms,
            )  # fmt: skip
            conducts = {**history.noted.conducts, "tick": replace(TICK, snoozes=1, snooze_ms=1)}
            broken = replace(
                changed(changed(history, partition, place, told), LEDGER, end, waits),
                noted=replace(history.noted, conducts=conducts),
            )
            entries = list(broken.log[partition])
            entries[place] = replace(entries[place], append_ms=run.leader_ms - 3_000)
            late = replace(broken, log={**broken.log, partition: entries})
            found = (violation.what for violation in check(late).violations if violation.subject == event.run)
            return " | ".join(what for what in found if " until " in f" {what}")
    raise AssertionError("no such attempt")


@pytest.mark.parametrize(
    ("told_after_ms", "until_after_ms", "words"),
    [
        (-50, 0, ""),
        (-700, 0, ""),  # over when the leader read of it: the run goes on at once
        (-700, 300, "its worker told of"),
        (500, 0, "its worker told of"),  # shorter than was asked for
        (5_000, 5_000, "its handler asks for 1 ms"),
    ],
)
def test_a_snooze_lasts_as_its_worker_told_or_until_the_leader_read_of_it(
    told_after_ms: int, until_after_ms: int, words: str
) -> None:
    found = snoozing(told_after_ms, until_after_ms)
    assert (words in found) if words else (found == "")


def test_back_offs_grow_by_their_factor_up_to_their_limit(run: Run) -> None:
    waits = [back_off_ms(replace(run, failures=failures)) for failures in (1, 2, 3, 4, 500)]
    assert waits == [1_000, 3_000, 9_000, 10_000, 10_000]


@pytest.fixture
def run() -> Run:
    history = calm(1)
    found = next(record for record in map(record_of, history.log["proof.runs", 0]) if isinstance(record, Run))
    job = replace(found.job, retry_backoff_ms=1_000, retry_backoff_factor=3.0, retry_backoff_max_ms=10_000)
    return replace(found, job=job)
