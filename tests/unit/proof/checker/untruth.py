"""Mutations that give an untrue reason: for an end, for waiting, for a refusal, or for what a run carries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from dueline.schemas.command import Rejected
from dueline.schemas.definition import parse_command
from dueline.schemas.errors import ContractError
from dueline.schemas.job import JobVersion
from dueline.schemas.run import Run, run_key
from dueline.schemas.work import AttemptEvent
from proof.history.history import History, Partition
from tests.unit.proof.checker.crew import ATTEMPTS
from tests.unit.proof.checker.edit import (
    HOUR_MS,
    LEDGER,
    Broken,
    chains,
    changed,
    cut_short,
    forgotten,
    of_topic,
    places_of,
    record_of,
    refusing,
)
from tests.unit.proof.checker.honest import CONTROL, REJECTED, VERSIONS

WORDS = (
    "undecodable", "invalid-job", "invalid-command", "empty", "key-mismatch", "unknown-queue", "invalid-schedule", "never-due",
    "unknown-job", "no-change", "version-changed", "not-active", "invalid-event", "whim",
)  # fmt: skip


# --- ends -------------------------------------------------------------------------------------------------------------


def cancelled_by_nobody(history: History) -> Broken:
    """A run that was not going to succeed, as if its handler had ended it itself."""
    for key, chain in chains(history).items():
        place, run = chain[-1]
        if run.state in ("failed", "skipped"):
            broken = replace(run, state="cancelled", outcome="cancelled", reason="by command")
            yield key, changed(history, LEDGER, place, broken)


def cancelled_for_another_reason(history: History) -> Broken:
    for key, chain in chains(history).items():
        place, run = chain[-1]
        if run.state == "cancelled":
            yield key, changed(history, LEDGER, place, replace(run, reason="by somebody else"))


def lost_too_early(history: History) -> Broken:
    """Failed with the first worker that was lost, or as if six had been."""
    for key, chain in chains(history).items():
        for (_, held), (place, run) in pairwise(chain):
            if held.state == "running" and run.losses > held.losses:
                for losses in (run.losses, 6):
                    broken = replace(held, state="failed", reason="worker-lost", losses=losses, finished_ms=run.leader_ms)
                    yield f"{key} {losses}", cut_short(history, key, place, broken)


def failed_for_no_reason(history: History) -> Broken:
    """A handler that succeeds, as if its worker had told of a failure: each word, in a fault's time too."""
    for partition, place, event in _successes(history):
        for word in ("failed", "result", "steps_expired", "timeout", "retry"):
            again = word in ("timeout", "retry")
            yield f"{event.run} {word}", _failed(history, partition, place, event, word, retryable=again, failures=4)


def failed_before_its_retries(history: History) -> Broken:
    for partition, place, event in _successes(history):
        for retryable, failures in ((True, 1), (True, 4), (False, 1)):
            broken = _failed(history, partition, place, event, "exception", retryable=retryable, failures=failures)
            yield f"{event.run} {retryable} {failures}", broken


def _successes(history: History) -> Iterator[tuple[Partition, int, AttemptEvent]]:
    judged = chains(history)
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        assert isinstance(event, AttemptEvent)
        if event.outcome == "success" and event.run in judged:
            yield partition, place, event


def _failed(
    history: History, partition: Partition, place: int, event: AttemptEvent, word: str, *, retryable: bool, failures: int
) -> History:
    told = replace(event, outcome="failure", reason=word, retryable=retryable)
    end, run = chains(history)[event.run][-1]
    ended = replace(run, state="failed", outcome="failure", reason=word, failures=failures)
    return changed(changed(history, partition, place, told), LEDGER, end, ended)


def interrupted_by_nobody(history: History) -> Broken:
    """A worker that lives on says that it was drained, or, with no fault, that it was cut off; the run waits for another."""
    for partition, place, event in _successes(history):
        reason = "cut off" if history.noted.faults == () else "drain"
        told = replace(event, outcome="interrupted", reason=reason)
        end, run = chains(history)[event.run][-1]
        waits = replace(run, state="waiting", outcome="interrupted", reason="interrupted", result="", finished_ms=-1)
        yield event.run, changed(changed(history, partition, place, told), LEDGER, end, waits)


def snoozed_by_nobody(history: History) -> Broken:
    for partition, place, event in _successes(history):
        until = event.finished_ms + 24 * HOUR_MS if event.finished_ms >= 0 else history.judged_ms + HOUR_MS
        told = replace(event, outcome="snooze", until_ms=until)
        end, run = chains(history)[event.run][-1]
        waits = replace(run, state="waiting", outcome="snooze", reason="snooze", until_ms=until)
        yield event.run, changed(changed(history, partition, place, told), LEDGER, end, waits)


# --- waiting ----------------------------------------------------------------------------------------------------------


def wait_for_long(history: History) -> Broken:
    """Whatever a run waits for, it waits for an hour after the end, and is heard of no more."""
    for key, chain in chains(history).items():
        for place, run in chain:
            if run.state == "waiting":
                late = history.judged_ms + HOUR_MS
                yield f"{key} {run.reason}", cut_short(history, key, place, replace(run, until_ms=late))


def wait_for_a_whim(history: History) -> Broken:
    """For a reason that no rule knows, or that the definition does not give."""
    for key, chain in chains(history).items():
        for place, run in chain:
            for reason in ("whim", "limit", "catch-up-rate", "jitter") if run.state == "waiting" else ():
                known = reason == run.reason or (reason == "limit" and run.job.id == "b")
                if not known:
                    yield f"{key} {reason}", changed(history, LEDGER, place, replace(run, reason=reason))


# --- refusals ---------------------------------------------------------------------------------------------------------


def refuse_for_another_reason(history: History) -> Broken:
    for partition, place in of_topic(history, REJECTED):
        refusal = record_of(history.log[partition][place])
        assert isinstance(refusal, Rejected)
        for word in WORDS:
            if word != refusal.error:
                yield f"{place} {word}", changed(history, partition, place, replace(refusal, error=word))


def refuse_what_was_accepted(history: History) -> Broken:
    for _, version in places_of(history, (VERSIONS, 0), JobVersion):
        assert isinstance(version, JobVersion)
        source = (version.source_topic, version.source_partition, version.source_offset)
        for word in WORDS:
            yield f"{version.key} {word}", refusing(history, source, word, version.leader_ms + 20)


def refuse_a_trigger(history: History) -> Broken:
    """Its run was never made; a refusal stands for it."""
    for entry in history.log[CONTROL, 0]:
        try:
            command = parse_command(entry.value or b"")
        except ContractError:
            continue
        key = run_key(command.job, 0, command.id) if command.kind == "trigger" else ""
        if key in chains(history):
            for word in WORDS:
                decided = chains(history)[key][0][1].leader_ms
                broken = forgotten(history, key)
                yield f"{key} {word}", refusing(broken, (entry.topic, entry.partition, entry.offset), word, decided)


# --- constants --------------------------------------------------------------------------------------------------------


def change_constants(history: History) -> Broken:
    """One of the things that a run carries, another one in each record."""
    fields = {
        "queue": "other", "handler": "tack", "payload": '"other"', "timeout_ms": 7, "misfire_grace_ms": 7, "max_retries": 7,
        "retry_backoff_ms": 7, "retry_backoff_factor": 7.0, "retry_backoff_max_ms": 7, "max_worker_losses": 7, "version": 99,
    }  # fmt: skip
    names = sorted(fields)
    for number, (place, run) in enumerate(places_of(history, LEDGER, Run)):
        assert isinstance(run, Run)
        name = names[number % len(names)]
        job = replace(run.job, **{name: fields[name]})  # type: ignore[arg-type]
        yield f"{run.key} {place} {name}", changed(history, LEDGER, place, replace(run, job=job))
