"""Mutations that double something, and such that move it early or late."""

from __future__ import annotations

from dataclasses import replace

from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, Summary
from proof.history.history import History
from tests.unit.proof.checker.edit import (
    HOUR_MS,
    LEDGER,
    Broken,
    chains,
    changed,
    doubled,
    effects_changed,
    is_judged,
    of_topic,
    places_of,
    record_of,
    steps_of,
    with_effects,
)
from tests.unit.proof.checker.honest import VERSIONS
from tests.unit.proof.checker.world import BOUNDS, POSTS


def double_record(history: History) -> Broken:
    for place, entry in enumerate(history.log[LEDGER]):
        record = record_of(entry)
        if isinstance(record, Run | Summary) and is_judged(history, record):
            yield f"{record.key} {place}", doubled(history, LEDGER, place)


def double_barrier(history: History) -> Broken:
    for place, _ in places_of(history, LEDGER, Barrier):
        yield f"barrier {place}", doubled(history, LEDGER, place)


def double_version(history: History) -> Broken:
    for place, _ in places_of(history, (VERSIONS, 0), JobVersion):
        yield f"version {place}", doubled(history, (VERSIONS, 0), place)


def double_effect(history: History) -> Broken:
    effects = history.noted.effects
    for place, effect in enumerate(effects):
        if effect.due_ms <= history.judged_ms:
            yield f"effect {place}", with_effects(history, [*effects, replace(effect, at_ms=effect.at_ms + 1)])


def double_step(history: History) -> Broken:
    for partition, place, run in steps_of(history):
        yield f"{run} {place}", doubled(history, partition, place)


def double_produced(history: History) -> Broken:
    judged = chains(history)
    for partition, place in of_topic(history, POSTS):
        if (history.log[partition][place].key or b"").decode().rpartition("/")[0] in judged:
            yield f"{partition} {place}", doubled(history, partition, place)


def double_grant(history: History) -> Broken:
    for key, chain in chains(history).items():
        for place, run in chain:
            if run.state == "running":
                broken = doubled(history, LEDGER, place)
                twin = place + 1 if record_of(broken.log[LEDGER][place + 1]) == run else len(broken.log[LEDGER]) - 1
                yield key, changed(broken, LEDGER, twin, replace(run, claim=run.claim + 1, recall="again"))


# --- shift --------------------------------------------------------------------------------------------------------


def early_record(history: History) -> Broken:
    """The first record a millisecond before its time: the due time, or as long before it as may be offered ahead."""
    for key, chain in chains(history).items():
        place, run = chain[0]
        ahead = 10_000 + BOUNDS.skew_ms if run.ahead else BOUNDS.skew_ms if run.command else 0
        yield key, changed(history, LEDGER, place, append_ms=run.due_ms - ahead - 1)


def early_summary(history: History) -> Broken:
    for place, record in places_of(history, LEDGER, Summary):
        assert isinstance(record, Summary)
        yield record.key, changed(history, LEDGER, place, append_ms=record.last_ms - 1)


def early_effect(history: History) -> Broken:
    yield from effects_changed(history, lambda effect: replace(effect, at_ms=effect.due_ms - BOUNDS.skew_ms - 1))


def early_version(history: History) -> Broken:
    for place, record in places_of(history, (VERSIONS, 0), JobVersion):
        assert isinstance(record, JobVersion)
        yield f"version {place}", changed(history, (VERSIONS, 0), place, replace(record, effective_ms=record.effective_ms - 1))


def late_version(history: History) -> Broken:
    for place, record in places_of(history, (VERSIONS, 0), JobVersion):
        assert isinstance(record, JobVersion)
        moved = replace(record, effective_ms=record.effective_ms + 1)
        yield f"version {place}", changed(history, (VERSIONS, 0), place, moved)


def late_record(history: History) -> Broken:
    for key, chain in chains(history).items():
        yield key, changed(history, LEDGER, chain[0][0], append_ms=chain[0][1].due_ms + HOUR_MS)


def late_summary(history: History) -> Broken:
    for place, record in places_of(history, LEDGER, Summary):
        assert isinstance(record, Summary)
        yield record.key, changed(history, LEDGER, place, append_ms=record.first_ms + HOUR_MS)


def late_effect(history: History) -> Broken:
    """After the end of its run, of those that succeeded in one attempt."""
    ends = {}
    for key, chain in chains(history).items():
        if chain[-1][1].state == "succeeded" and chain[-1][1].attempt == 1:
            ends[key] = history.log[LEDGER][chain[-1][0]].append_ms
    effects = history.noted.effects
    for place, effect in enumerate(effects):
        if effect.run in ends:
            moved = replace(effect, at_ms=ends[effect.run] + BOUNDS.skew_ms + 1)
            yield f"effect {place}", with_effects(history, [*effects[:place], moved, *effects[place + 1 :]])
