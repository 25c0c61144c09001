"""Mutations that swap, falsify or crowd: another order, another term, too many at a time, another content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from dueline.schemas.command import Rejected
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier, Fence, Positions
from dueline.schemas.run import Run, Summary
from proof.history.history import History, Partition
from tests.unit.proof.checker.edit import (
    LEDGER,
    Broken,
    chains,
    changed,
    effects_changed,
    of_topic,
    places_of,
    record_of,
    steps_of,
    swapped,
    with_effects,
)
from tests.unit.proof.checker.honest import REJECTED, VERSIONS


def reorder_life(history: History) -> Broken:
    for key, chain in chains(history).items():
        for (one, _), (other, _) in pairwise(chain):
            yield f"{key} {one}", swapped(history, LEDGER, one, other)


def reorder_due_times(history: History) -> Broken:
    """First records of neighbours among the due times of one version."""
    firsts: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for chain in chains(history).values():
        place, run = chain[0]
        if not run.command:
            firsts[run.job.id, run.job.version].append(place)
    for places in firsts.values():
        for one, other in pairwise(sorted(places)):
            yield f"{one} {other}", swapped(history, LEDGER, one, other)


def reorder_barrier(history: History) -> Broken:
    for place, _ in places_of(history, LEDGER, Barrier):
        for other in (place - 1, place + 1):
            if 0 <= other < len(history.log[LEDGER]):
                yield f"{place} {other}", swapped(history, LEDGER, place, other)


def reorder_versions(history: History) -> Broken:
    by_job: defaultdict[str, list[int]] = defaultdict(list)
    for place, record in places_of(history, (VERSIONS, 0), JobVersion):
        by_job[getattr(record, "job", "")].append(place)
    for places in by_job.values():
        for one, other in pairwise(places):
            yield f"{one} {other}", swapped(history, (VERSIONS, 0), one, other)


def reorder_steps(history: History) -> Broken:
    """Neighbouring records of one attempt, on their partition."""
    last: dict[tuple[Partition, str, int], int] = {}
    for partition, place, run in steps_of(history):
        attempt = getattr(record_of(history.log[partition][place]), "attempt", 0)
        before = last.get((partition, run, attempt))
        if before is not None:
            yield f"{run} {place}", swapped(history, partition, before, place)
        last[partition, run, attempt] = place


def reorder_effects(history: History) -> Broken:
    """Neighbouring effects of one attempt."""
    effects = list(history.noted.effects)
    last: dict[tuple[str, int], int] = {}
    for place, effect in enumerate(effects):
        before = last.get((effect.run, effect.attempt))
        if before is not None and effect.due_ms <= history.judged_ms:
            broken = list(effects)
            broken[before] = replace(effects[before], at_ms=effect.at_ms)
            broken[place] = replace(effect, at_ms=effects[before].at_ms)
            yield f"effect {place}", with_effects(history, broken)
        last[effect.run, effect.attempt] = place


# --- wrong term -------------------------------------------------------------------------------------------------------


def wrong_term(history: History) -> Broken:
    for partition in (LEDGER, (VERSIONS, 0)):
        for place, entry in enumerate(history.log[partition]):
            record = record_of(entry)
            if isinstance(record, Run | Summary | Positions | Fence | JobVersion):
                by = 1 if place % 2 else -1
                yield f"{partition} {place} {by:+}", changed(history, partition, place, replace(record, term=record.term + by))


# --- over limit -------------------------------------------------------------------------------------------------------


def over_limit_in_ledger(history: History) -> Broken:
    """The end of a run of a job that must not overlap, moved behind the beginning of the next one."""
    for (_, one), (_, other) in _neighbours(history):
        end, begin = one[-1][0], next(place for place, run in other if run.state in ("dispatched", "running"))
        between = history.log[LEDGER][end + 1 : begin]
        if any(isinstance(record_of(entry), Positions) for entry in between):
            yield f"{one[0][1].key}", swapped(history, LEDGER, end, begin)


def over_limit_in_effects(history: History) -> Broken:
    """The last effect of a run, moved behind the first one of the next run of a job that must not overlap."""
    effects = history.noted.effects
    for (key, _), (next_key, _) in _neighbours(history):
        mine = [place for place, effect in enumerate(effects) if effect.run == key]
        theirs = [effect.at_ms for effect in effects if effect.run == next_key]
        if len(mine) > 1 and theirs:
            moved = replace(effects[mine[-1]], at_ms=min(theirs) + 1)
            yield key, with_effects(history, [*effects[: mine[-1]], moved, *effects[mine[-1] + 1 :]])


def _neighbours(history: History) -> Iterator[tuple[tuple[str, list[tuple[int, Run]]], tuple[str, list[tuple[int, Run]]]]]:
    """Successful runs in one attempt, one after the other, of jobs that never allow two at a time."""
    by_job: defaultdict[str, list[tuple[str, list[tuple[int, Run]]]]] = defaultdict(list)
    versions = [record for _, record in places_of(history, (VERSIONS, 0), JobVersion) if isinstance(record, JobVersion)]
    allows = {version.job for version in versions if version.definition.overlap == "allow"}
    for key, chain in chains(history).items():
        if chain[-1][1].state == "succeeded" and chain[-1][1].attempt == 1 and chain[0][1].job.id not in allows:
            by_job[chain[0][1].job.id].append((key, chain))
    for found in by_job.values():
        found.sort(key=lambda each: each[1][-1][0])
        yield from pairwise(found)


# --- others -----------------------------------------------------------------------------------------------------------


def repeat_recorded_step(history: History) -> Broken:
    """A later attempt does what an earlier one had recorded."""
    effects = history.noted.effects
    for place, effect in enumerate(effects):
        if effect.due_ms <= history.judged_ms:
            later = replace(effect, attempt=effect.attempt + 1, at_ms=effect.at_ms + 30)
            yield f"effect {place}", with_effects(history, [*effects, later])


def change_key(history: History) -> Broken:
    yield from effects_changed(history, lambda effect: replace(effect, key=f"{effect.key}-2"))


def change_due_time(history: History) -> Broken:
    """A run for an instant that is no due time."""
    for key, chain in chains(history).items():
        if chain[0][1].command:
            continue
        broken = history
        for place, run in chain:
            broken = changed(broken, LEDGER, place, replace(run, due_ms=run.due_ms + 7))
        yield key, broken


def change_end(history: History) -> Broken:
    for key, chain in chains(history).items():
        place, run = chain[-1]
        other = {"succeeded": "failed", "failed": "succeeded"}.get(run.state, "")
        if other:
            yield key, changed(history, LEDGER, place, replace(run, state=other))


def change_reason(history: History) -> Broken:
    for key, chain in chains(history).items():
        place, run = chain[-1]
        if run.state == "skipped":
            for reason in {"paused", "misfire-skip", "later-due-time", "catch-up-max", "deleted", "whim"} - {run.reason}:
                yield f"{key} {reason}", changed(history, LEDGER, place, replace(run, reason=reason))


def change_count(history: History) -> Broken:
    for place, record in places_of(history, LEDGER, Summary):
        assert isinstance(record, Summary)
        for by in (-1, 1):
            yield f"{record.key} {by:+}", changed(history, LEDGER, place, replace(record, count=record.count + by))


def refused_for_a_bug(history: History) -> Broken:
    """A leader that could not decide a record must not pass for one that refused it for what it says."""
    for partition, place in of_topic(history, REJECTED):
        letter = record_of(history.log[partition][place])
        assert isinstance(letter, Rejected)
        yield f"rejected {place}", changed(history, partition, place, replace(letter, error="internal-error"))
