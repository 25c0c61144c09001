"""Mutations of where and when work was done, and of what it left: another process, another life, an offer, a grant, a content."""

from __future__ import annotations

from dataclasses import replace

from dueline.schemas.codec import Record
from dueline.schemas.ledger import Fence, Positions
from dueline.schemas.run import Run, Summary
from dueline.schemas.work import Dispatch, Heartbeat, Signal, Step
from proof.history.history import History
from tests.unit.proof.checker.edit import (
    HOUR_MS,
    LEDGER,
    Broken,
    chains,
    changed,
    effects_changed,
    of_topic,
    record_of,
    steps_of,
    with_entries,
    without,
)
from tests.unit.proof.checker.whispers import DISPATCH, SIGNALS, WORKERS
from tests.unit.proof.checker.world import BOUNDS, POSTS


def change_process(history: History) -> Broken:
    """Another process that lives."""
    others = {"w0": "w1"}
    yield from effects_changed(history, lambda effect: replace(effect, process=others.get(effect.process, "w0")))


def end_its_life_before(history: History) -> Broken:
    """The process had ended when it did that."""
    for place, effect in enumerate(history.noted.effects):
        if effect.due_ms <= history.judged_ms:
            ended = effect.at_ms - BOUNDS.skew_ms - 1
            lives = [replace(life, ended_ms=ended) if life.process == effect.process else life for life in history.noted.lives]
            yield f"effect {place}", replace(history, noted=replace(history.noted, lives=tuple(lives)))


def grant_late(history: History) -> Broken:
    """The first grant of a run that waited for nothing, an hour late."""
    put_off = ("overlap", "limit", "recalled", "jitter")
    for key, chain in chains(history).items():
        grants = [number for number, (_, run) in enumerate(chain) if run.state == "running"]
        before = [run for _, run in chain[: grants[0]]] if grants else []
        free = not any(run.reason in put_off for run in before)
        if grants and free and chain[0][1].trigger == "schedule":
            place, run = chain[grants[0]]
            yield key, changed(history, LEDGER, place, append_ms=run.due_ms + HOUR_MS)


def decide_ahead(history: History) -> Broken:
    """Leader time is so far ahead of the append times, all along."""
    for ahead_ms in (BOUNDS.skew_ms + 1, 10_000):
        broken = history
        for place, entry in enumerate(history.log[LEDGER]):
            record = record_of(entry)
            ahead: Record
            if isinstance(record, Run):
                ahead = replace(record, leader_ms=record.leader_ms + ahead_ms, created_ms=record.created_ms + ahead_ms)
            elif isinstance(record, Summary | Positions | Fence):
                ahead = replace(record, leader_ms=record.leader_ms + ahead_ms)
            else:
                continue
            broken = changed(broken, LEDGER, place, ahead)
        yield f"by {ahead_ms}", broken


# --- offers, signals, heartbeats --------------------------------------------------------------------------------------


def drop_offer(history: History) -> Broken:
    """Of an attempt that was granted."""
    granted = {(key, run.attempt) for key, chain in chains(history).items() for _, run in chain if run.state == "running"}
    for partition, place in of_topic(history, DISPATCH):
        offer = record_of(history.log[partition][place])
        assert isinstance(offer, Dispatch)
        if (offer.run, offer.attempt) in granted:
            yield f"{offer.run} {offer.attempt}", without(history, partition, place)


def change_offer(history: History) -> Broken:
    for partition, place in of_topic(history, DISPATCH):
        offer = record_of(history.log[partition][place])
        assert isinstance(offer, Dispatch)
        job = replace(offer.job, payload='"other"')
        for broken in (replace(offer, job=job), replace(offer, seq=offer.seq + 10_000), replace(offer, due_ms=offer.due_ms + 1)):
            yield f"{offer.run} {offer.attempt}", changed(history, partition, place, broken)


def drop_signal(history: History) -> Broken:
    """Of an attempt that did something."""
    did = {(effect.run, effect.attempt) for effect in history.noted.effects}
    for partition, place in of_topic(history, SIGNALS):
        signal = record_of(history.log[partition][place])
        assert isinstance(signal, Signal)
        twins = [n for n in range(len(history.log[partition])) if record_of(history.log[partition][n]) == signal]
        if (signal.run, signal.attempt) in did:
            yield f"{signal.run} {signal.attempt}", without(history, partition, *twins)


def grant_to_another(history: History) -> Broken:
    for partition, place in of_topic(history, SIGNALS):
        signal = record_of(history.log[partition][place])
        assert isinstance(signal, Signal)
        stray = replace(history.log[partition][place], offset=history.log[partition][-1].offset + 1)
        more = with_entries(history, partition, [*history.log[partition], stray])
        yield f"{signal.run}", changed(more, partition, -1, replace(signal, incarnation="w9.00000000"))


def change_worker(history: History) -> Broken:
    """A worker that never told of itself, or of another queue, home or handler."""
    granted = {run.incarnation for chain in chains(history).values() for _, run in chain if run.state == "running"}
    for partition, place in of_topic(history, WORKERS):
        beat = record_of(history.log[partition][place])
        assert isinstance(beat, Heartbeat)
        if beat.incarnation not in granted:
            continue
        for fields in ({"incarnation": "w9.0"}, {"queue": "other"}, {"home": beat.home + 1}, {"handlers": ["other"]}):
            yield f"{beat.incarnation} {fields}", changed(history, partition, place, replace(beat, **fields))


# --- contents ---------------------------------------------------------------------------------------------------------


def change_result(history: History) -> Broken:
    stated = {"tick", "walk"}
    judged = chains(history)
    for partition, place, run in steps_of(history):
        step = record_of(history.log[partition][place])
        assert isinstance(step, Step)
        if judged[run][-1][1].job.handler in stated:
            for broken in (replace(step, result=b'"other"'), replace(step, encoding="bytes")):
                yield f"{run} {place}", changed(history, partition, place, broken)


def change_produced(history: History) -> Broken:
    judged = chains(history)
    for partition, place in of_topic(history, POSTS):
        if (history.log[partition][place].key or b"").decode().rpartition("/")[0] in judged:
            yield f"{partition} {place}", changed(history, partition, place, value=b"other")
