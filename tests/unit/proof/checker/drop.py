"""Mutations that drop something. Each yields (place, broken history) for every place where it can be done."""

from __future__ import annotations

from typing import TypeGuard

from dueline.schemas.codec import Record
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier, Fence
from dueline.schemas.run import Summary
from dueline.schemas.work import AttemptEvent
from proof.history.history import History
from tests.unit.proof.checker.crew import ATTEMPTS
from tests.unit.proof.checker.edit import (
    LEDGER,
    Broken,
    chains,
    is_judged,
    of_topic,
    places_of,
    record_of,
    steps_of,
    with_effects,
    without,
)
from tests.unit.proof.checker.honest import CONTROL, JOBS, REJECTED, VERSIONS
from tests.unit.proof.checker.world import POSTS


def drop_run(history: History) -> Broken:
    for key, chain in chains(history).items():
        yield key, without(history, LEDGER, *(place for place, _ in chain))


def drop_first_record(history: History) -> Broken:
    for key, chain in chains(history).items():
        if len(chain) > 1:
            yield key, without(history, LEDGER, chain[0][0])


def drop_end(history: History) -> Broken:
    for key, chain in chains(history).items():
        if len(chain) > 1:
            yield key, without(history, LEDGER, chain[-1][0])


def drop_grant(history: History) -> Broken:
    """Of an attempt that did something."""
    did = {(effect.run, effect.attempt) for effect in history.noted.effects}
    for key, chain in chains(history).items():
        for place, run in chain:
            grants = [other for other, each in chain if each.state == "running" and each.attempt == run.attempt]
            if run.state == "running" and len(grants) == 1 and (key, run.attempt) in did:
                yield f"{key} attempt {run.attempt}", without(history, LEDGER, place)


def drop_barrier(history: History) -> Broken:
    for partition in (LEDGER, (VERSIONS, 0)):
        for place, _ in places_of(history, partition, Barrier):
            yield f"{partition} {place}", without(history, partition, place)


def drop_version(history: History) -> Broken:
    for place, _ in places_of(history, (VERSIONS, 0), JobVersion):
        yield f"version {place}", without(history, (VERSIONS, 0), place)


def drop_summary(history: History) -> Broken:
    for place, record in places_of(history, LEDGER, Summary):
        if is_judged(history, record):
            yield f"summary {place}", without(history, LEDGER, place)


def drop_fence(history: History) -> Broken:
    """The whole of it, where it took a run from its worker."""
    told = {(r.run, r.attempt) for p, n in of_topic(history, ATTEMPTS) for r in [record_of(history.log[p][n])] if _ends(r)}
    granted = {(key, run.attempt): run for key, chain in chains(history).items() for _, run in chain if run.state == "running"}
    for incarnation in {run.incarnation for key, run in granted.items() if key not in told}:
        fences = places_of(history, LEDGER, Fence)
        mine = [place for place, record in fences if getattr(record, "incarnation", "") == incarnation]
        yield incarnation, without(history, LEDGER, *mine)


def _ends(record: Record) -> TypeGuard[AttemptEvent]:
    return isinstance(record, AttemptEvent) and record.kind != "claimed"


def drop_effect(history: History) -> Broken:
    """Of a step that was recorded: nobody can know of the effect of one in flight."""
    effects = history.noted.effects
    recorded = {(r.run, r.attempt, r.name) for p, n, _ in steps_of(history) for r in [record_of(history.log[p][n])]}  # type: ignore[union-attr]
    for place, effect in enumerate(effects):
        if (effect.run, effect.attempt, effect.step) in recorded:
            yield f"effect {place}", with_effects(history, [*effects[:place], *effects[place + 1 :]])


def drop_step(history: History) -> Broken:
    for partition, place, run in steps_of(history):
        yield f"{run} {place}", without(history, partition, place)


def drop_produced(history: History) -> Broken:
    judged = chains(history)
    for partition, place in of_topic(history, POSTS):
        if (history.log[partition][place].key or b"").decode().rpartition("/")[0] in judged:
            yield f"{partition} {place}", without(history, partition, place)


def drop_event(history: History) -> Broken:
    """A claim that was granted, an end that was heard."""
    judged = chains(history)
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        assert isinstance(event, AttemptEvent)
        granted = any(run.state == "running" and run.attempt == event.attempt for _, run in judged.get(event.run, ()))
        if granted and event.outcome != "cancelled" and event.reason != "recalled":
            yield f"{event.run} {event.kind}", without(history, partition, place)


def drop_input(history: History) -> Broken:
    for topic in (JOBS, CONTROL):
        for partition, place in of_topic(history, topic):
            yield f"{topic} {place}", without(history, partition, place)


def drop_rejected(history: History) -> Broken:
    for partition, place in of_topic(history, REJECTED):
        yield f"rejected {place}", without(history, partition, place)
