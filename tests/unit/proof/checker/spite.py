"""Mutations in which something ran, or went on, although the definition says that it must not; and in which nothing waited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from dueline.schemas.codec import Record
from dueline.schemas.run import Run, Summary
from dueline.schemas.work import AttemptEvent, Dispatch
from proof.history.history import History
from tests.unit.proof.checker.crew import ATTEMPTS
from tests.unit.proof.checker.edit import LEDGER, Broken, chains, changed, with_effects, without
from tests.unit.proof.checker.honest import RUNS
from tests.unit.proof.checker.redefine import mapped, redefined, run_mapped
from tests.unit.proof.checker.whispers import DISPATCH

LONG_MS = 4_000


def _caught_up(history: History) -> Iterator[tuple[str, Run]]:
    for key, chain in chains(history).items():
        if chain[0][1].trigger == "catch-up":
            yield key, chain[0][1]


def run_outside_the_window(history: History) -> Broken:
    """The window was shorter than a late run was late."""
    for key, run in _caught_up(history):
        window = run.leader_ms - run.due_ms - 1
        yield key, redefined(history, run.job.id, {"catch_up_window": f"{window}ms"}, catch_up_window_ms=window)


def run_what_was_overtaken(history: History) -> Broken:
    """The user wanted the latest one only, and what was passed over says so."""
    for job in sorted({run.job.id for _, run in _caught_up(history)}):
        late = sorted(run.due_ms for _, run in _caught_up(history) if run.job.id == job)
        if len(late) > 1:
            broken = redefined(history, job, {"misfire": "latest"}, misfire="latest")
            yield job, mapped(broken, {RUNS}, _overtaken)


def _overtaken(found: Record) -> Record:
    if isinstance(found, Run | Summary) and found.reason == "catch-up-max":
        return replace(found, reason="later-due-time")
    return found


def run_too_many(history: History) -> Broken:
    """More late ones than `catch_up_max`."""
    for job in sorted({run.job.id for _, run in _caught_up(history)}):
        late = [run for _, run in _caught_up(history) if run.job.id == job]
        for most in range(1, len(late)):
            yield f"{job} {most}", redefined(history, job, {"catch_up_max": most}, catch_up_max=most)


def call_it_another_trigger(history: History) -> Broken:
    """In the ledger and in all offers."""
    for number, (key, chain) in enumerate(chains(history).items()):
        words = sorted({"schedule", "catch-up", "manual", "backfill"} - {chain[0][1].trigger})
        word = words[number % len(words)]
        broken = run_mapped(history, key, lambda run, word=word: replace(run, trigger=word))  # type: ignore[misc]

        def told(found: Record, key: str = key, word: str = word) -> Record:
            return replace(found, trigger=word) if isinstance(found, Dispatch) and found.run == key else found

        yield f"{key} {word}", mapped(broken, {DISPATCH}, told)


def go_on_after_the_last_loss(history: History) -> Broken:
    """The user wanted it not to be run again."""
    for key, chain in chains(history).items():
        most = max(run.losses for _, run in chain) - 1
        if most >= 0:
            job = chain[0][1].job.id
            yield key, redefined(history, job, {"max_worker_losses": most}, max_worker_losses=most)


def count_no_loss(history: History) -> Broken:
    """Nor that the attempt began."""
    for key, chain in chains(history).items():
        if chain[-1][1].losses:
            yield key, run_mapped(history, key, lambda run: replace(run, losses=0))


def outlast_its_timeout(history: History) -> Broken:
    """By what the worker tells, and by what was seen of it, each alone; without a fault that could have stopped it."""
    asked: dict[str, object] = {"timeout": "1s"}
    for key, chain in chains(history).items() if not history.noted.faults else ():
        _, run = chain[-1]
        if run.state != "succeeded":
            continue
        known = redefined(history, run.job.id, asked, timeout_ms=1_000)
        end = run.finished_ms + LONG_MS

        def told(found: Record, key: str = key, end: int = end) -> Record:
            if isinstance(found, AttemptEvent) and found.run == key and found.outcome == "success":
                return replace(found, finished_ms=end)
            return found

        broken = run_mapped(known, key, lambda run, end=end: replace(  # type: ignore[misc]
            run, finished_ms=end) if run.state == "succeeded" else run)  # fmt: skip
        place, last = chains(broken)[key][-1]
        broken = changed(broken, LEDGER, place, replace(last, leader_ms=last.leader_ms + LONG_MS))
        yield f"{key} told", mapped(broken, {ATTEMPTS}, told)
        mine = [n for n, effect in enumerate(history.noted.effects) if effect.run == key]
        effects = list(history.noted.effects)
        if mine:
            effects[mine[-1]] = replace(effects[mine[-1]], at_ms=effects[mine[0]].at_ms + LONG_MS)
            effects[mine[0]] = replace(effects[mine[0]], began_ms=history.noted.effects[mine[0]].at_ms - 1)
            yield f"{key} seen", with_effects(known, effects)


# --- waiting ----------------------------------------------------------------------------------------------------------


def _jittered(history: History) -> Iterator[tuple[str, list[tuple[int, Run]]]]:
    for key, chain in chains(history).items():
        if chain[0][1].reason == "jitter" and len(chain) > 1 and chain[1][1].state == "dispatched":
            yield key, chain


def start_without_jitter(history: History) -> Broken:
    """Offered at its due time, as far as the ledger says."""
    for key, chain in _jittered(history):
        (place, first), (other, offer) = chain[:2]
        broken = run_mapped(history, key, lambda run, at=first.leader_ms: replace(run, dispatched_ms=at))  # type: ignore[misc]
        at_once = replace(offer, leader_ms=first.leader_ms, dispatched_ms=first.leader_ms)
        yield key, without(changed(broken, LEDGER, place, at_once), LEDGER, other)


def jitter_to_another_instant(history: History) -> Broken:
    for key, chain in _jittered(history):
        place, run = chain[0]
        for by in (-1, 1):
            yield f"{key} {by:+}", changed(history, LEDGER, place, replace(run, until_ms=run.until_ms + by))


def promise_another_jitter(history: History) -> Broken:
    """What started at once by a schedule with jitter, and what was spread by one without."""
    jobs = {chain[0][1].job.id for _, chain in _jittered(history)}
    for job in sorted(jobs):
        for schedule in ({"every": "2s"}, {"every": "2s", "jitter": "900ms"}):
            text = json.dumps(schedule, separators=(",", ":"))
            yield f"{job} {schedule}", redefined(history, job, {"schedule": schedule}, schedule=text)


def end_a_wait_early(history: History) -> Broken:
    """The offer stands where it stood, and says that it was decided a millisecond before the wait was over."""
    for key, chain in chains(history).items():
        for (_, waits), (place, offer) in pairwise(chain):
            if waits.state == "waiting" and waits.until_ms >= 0 and offer.state == "dispatched":
                early = replace(offer, leader_ms=waits.until_ms - 1, dispatched_ms=waits.until_ms - 1)
                yield f"{key} {waits.reason}", changed(history, LEDGER, place, early)


# --- bugs -------------------------------------------------------------------------------------------------------------


def meet_a_bug(history: History) -> Broken:
    """The leader could not decide what a worker told: it waits, or failed, for that."""
    for key, chain in chains(history).items():
        for place, run in chain:
            if run.state == "waiting" or (run.state == "failed" and run is chain[-1][1]):
                yield f"{key} {run.state}", changed(history, LEDGER, place, replace(run, reason="internal-error", until_ms=-1))
