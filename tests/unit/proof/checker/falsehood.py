"""Mutations of what a record of a run says beside its state: each field by itself, in one record, or in all of a run."""

from __future__ import annotations

from dataclasses import replace

from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Fence, Positions
from dueline.schemas.run import Run, RunState, StepRange, Summary
from dueline.schemas.work import Dispatch, Signal
from proof.history.history import History
from tests.unit.proof.checker.edit import LEDGER, Broken, chains, changed, of_topic, places_of, record_of
from tests.unit.proof.checker.honest import VERSIONS
from tests.unit.proof.checker.redefine import run_mapped
from tests.unit.proof.checker.whispers import DISPATCH, SIGNALS

FAR = 1_000_007
FIELDS: dict[str, object] = {
    "previous_due_ms": FAR, "trigger": "backfill", "until_ms": FAR, "failures": 9, "losses": 9, "ahead": None, "begun": None,
    "recall": "cancel:a whim", "partition": 77, "dispatch_term": FAR, "worker": "w9", "home": 77, "steps_from": FAR,
    "deadline_ms": FAR, "dispatched_ms": FAR, "granted_ms": FAR, "started_ms": FAR, "finished_ms": FAR, "outcome": "whim",
    "error": "boom", "result": '"x"', "generation": 77, "incarnation": "w9.00000000", "claim": 77,
    "earlier": [StepRange(attempt=1, home=3, start=0, end=FAR)],
}  # fmt: skip
"""What each is changed to; None: to its opposite."""


def _changed(run: Run, name: str) -> Run:
    value = FIELDS[name] if FIELDS[name] is not None else not getattr(run, name)
    return replace(run, **{name: value})  # type: ignore[arg-type]


def change_field(history: History) -> Broken:
    """In one record, another field each time, so that every field has its turn at every state."""
    names, seen = sorted(FIELDS), dict.fromkeys(RunState, 0)
    for key, chain in chains(history).items():
        for place, run in chain:
            for _ in range(2):
                name = names[seen[RunState(run.state)] % len(names)]
                seen[RunState(run.state)] += 1
                yield f"{key} {place} {run.state} {name}", changed(history, LEDGER, place, _changed(run, name))


def change_field_throughout(history: History) -> Broken:
    """In all records of a run, another field for each run."""
    names = sorted(FIELDS)
    for number, key in enumerate(chains(history)):
        for name in (names[number % len(names)], names[(number + len(names) // 2) % len(names)]):
            yield f"{key} {name}", run_mapped(history, key, lambda run, name=name: _changed(run, name))  # type: ignore[misc]


def change_reason_of_going_on(history: History) -> Broken:
    """What is offered, runs or has succeeded needs no reason, and has none."""
    for key, chain in chains(history).items():
        place, run = chain[len(chain) // 2]
        if run.state in ("dispatched", "running", "succeeded"):
            yield key, changed(history, LEDGER, place, replace(run, reason="retry"))


def write_again_for_nothing(history: History) -> Broken:
    """A granted run once more, asked back by nobody."""
    for key, chain in chains(history).items():
        for place, run in chain:
            if run.recall:
                yield f"{key} {place}", changed(history, LEDGER, place, replace(run, recall=""))


def skip_a_predecessor(history: History) -> Broken:
    for place, record in places_of(history, LEDGER, Summary):
        assert isinstance(record, Summary)
        yield record.key, changed(history, LEDGER, place, replace(record, previous_due_ms=record.previous_due_ms - 1_000))


def wrong_generation(history: History) -> Broken:
    for partition in (LEDGER, (VERSIONS, 0)):
        for place, entry in enumerate(history.log[partition]):
            record = record_of(entry)
            if isinstance(record, Summary | Positions | Fence | JobVersion):
                other = replace(record, generation=record.generation + 1)
                yield f"{partition} {place}", changed(history, partition, place, other)


def tell_another_deadline(history: History) -> Broken:
    for partition, place in of_topic(history, SIGNALS):
        signal = record_of(history.log[partition][place])
        assert isinstance(signal, Signal)
        yield signal.run, changed(history, partition, place, replace(signal, deadline_ms=signal.deadline_ms + 1_000))


def offer_for_another_trigger(history: History) -> Broken:
    for partition, place in of_topic(history, DISPATCH):
        offer = record_of(history.log[partition][place])
        assert isinstance(offer, Dispatch)
        yield offer.run, changed(history, partition, place, replace(offer, trigger="backfill"))
