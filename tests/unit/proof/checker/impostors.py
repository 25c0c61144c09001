"""Mutations in which somebody wrote who must not, too late or again; and in which what must not follow followed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from dueline.schemas.codec import encode
from dueline.schemas.ledger import BARRIER_KEY, Barrier, Fence
from dueline.schemas.run import Run, Summary
from dueline.schemas.work import AttemptEvent, Step
from proof.history.acts import Effect
from proof.history.entry import Entry
from proof.history.history import History, Partition
from tests.unit.proof.checker.crew import ATTEMPTS, STEPS
from tests.unit.proof.checker.edit import (
    LEDGER,
    Broken,
    chains,
    changed,
    of_topic,
    places_of,
    record_of,
    steps_of,
    with_effects,
    with_entries,
)
from tests.unit.proof.checker.honest import REJECTED
from tests.unit.proof.checker.redefine import redefined, run_mapped

LATE_MS = 3_000
"""More than any skew."""


def _steps(history: History) -> Iterator[tuple[Partition, int, Step]]:
    for partition, place, _ in steps_of(history):
        step = record_of(history.log[partition][place])
        assert isinstance(step, Step)
        yield partition, place, step


def write_for_another(history: History) -> Broken:
    """A step of another incarnation, or of another claim of the same."""
    for partition, place, step in _steps(history):
        yield f"{partition} {place} claim", changed(history, partition, place, replace(step, claim=step.claim + 7))
        stranger = replace(step, incarnation="w9.deadbeef")
        yield f"{partition} {place} incarnation", changed(history, partition, place, stranger)


def write_past_the_fence(history: History) -> Broken:
    """The fence had been done before what its incarnation wrote last."""
    for place, fence in places_of(history, LEDGER, Fence):
        assert isinstance(fence, Fence)
        if fence.phase != "done":
            continue
        for topic in (STEPS, ATTEMPTS):
            entries = history.log.get((topic, fence.home), ())
            mine = [entry.offset for entry in entries if _writer(entry) == fence.incarnation]
            if mine:
                before = replace(fence, steps_end=mine[-1]) if topic == STEPS else replace(fence, attempts_end=mine[-1])
                yield f"{fence.incarnation} {topic}", changed(history, LEDGER, place, before)


def _writer(entry: Entry) -> str:
    record = record_of(entry)
    assert isinstance(record, Step | AttemptEvent)
    return record.incarnation


def record_after_the_end(history: History) -> Broken:
    """A step of an attempt whose end had been told, as brokers' clocks tell."""
    told = {}
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        if isinstance(event, AttemptEvent) and event.outcome:
            told[event.run, event.attempt] = history.log[partition][place].append_ms
    for partition, place, step in _steps(history):
        end = told.get((step.run, step.attempt))
        if end is not None:
            entries = list(history.log[partition])
            late = [replace(each, append_ms=max(each.append_ms, end + LATE_MS)) for each in entries[place:]]
            yield f"{partition} {place}", with_entries(history, partition, [*entries[:place], *late])


def happen_after_its_record(history: History) -> Broken:
    """An effect of a step that stood in the log already."""
    recorded = {(step.run, step.attempt, step.name): history.log[place][n].append_ms for place, n, step in _steps(history)}
    effects = history.noted.effects
    for place, effect in enumerate(effects):
        at = recorded.get((effect.run, effect.attempt, effect.step))
        if at is not None:
            yield f"effect {place}", _with(history, place, replace(effect, at_ms=at + LATE_MS))


def _with(history: History, place: int, *instead: Effect) -> History:
    effects = history.noted.effects
    return with_effects(history, [*effects[:place], *instead, *effects[place + 1 :]])


def _bodies(history: History) -> Iterator[tuple[int, Effect]]:
    """Effects of handlers without steps, of runs that are judged."""
    judged = chains(history)
    for place, effect in enumerate(history.noted.effects):
        if not effect.step and effect.run in judged:
            yield place, effect


def drop_body(history: History) -> Broken:
    for place, effect in _bodies(history):
        if chains(history)[effect.run][-1][1].attempt == effect.attempt:
            yield f"effect {place}", _with(history, place)


def double_body(history: History) -> Broken:
    for place, effect in _bodies(history):
        yield f"effect {place}", _with(history, place, effect, replace(effect, at_ms=effect.at_ms + 1))


def share_a_key(history: History) -> Broken:
    """All bodies under one key."""
    for place, effect in _bodies(history):
        yield f"effect {place}", _with(history, place, replace(effect, key="body"))


def skip_what_may_overlap(history: History) -> Broken:
    """The user allowed it."""
    jobs = {run.job.id for chain in chains(history).values() for _, run in chain if _skipped(run)}
    summaries = [found for _, found in places_of(history, LEDGER, Summary) if isinstance(found, Summary)]
    jobs |= {summary.job for summary in summaries if summary.reason == "overlap"}
    for job in sorted(jobs):
        yield job, redefined(history, job, {"overlap": "allow"}, overlap="allow")


def _skipped(run: Run) -> bool:
    return (run.state, run.reason) == ("skipped", "overlap") and not run.command


def try_too_often(history: History) -> Broken:
    """The user allowed fewer retries."""
    retried: defaultdict[str, int] = defaultdict(int)
    for chain in chains(history).values():
        for _, run in chain:
            if run.reason == "retry" and run.state == "waiting":
                retried[run.job.id] = max(retried[run.job.id], run.failures)
    for job, failures in retried.items():
        retry: dict[str, object] = {"retry": {"max": failures - 1, "backoff": "1s"}}
        yield job, redefined(history, job, retry, max_retries=failures - 1)


def try_what_was_ruled_out(history: History) -> Broken:
    retried = {
        (key, run.attempt)
        for key, chain in chains(history).items()
        for _, run in chain
        if (run.state, run.reason) == ("waiting", "retry")
    }
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        if isinstance(event, AttemptEvent) and event.outcome == "failure" and (event.run, event.attempt) in retried:
            yield event.run, changed(history, partition, place, replace(event, retryable=False))


def run_by_hand_of_another_version(history: History) -> Broken:
    for key, chain in chains(history).items():
        if chain[0][1].command:
            for version in (chain[0][1].job.version - 1, chain[0][1].job.version + 1):
                yield f"{key} {version}", run_mapped(history, key, _of_version(version))


def _of_version(version: int) -> Callable[[Run], Run]:
    return lambda run: replace(run, job=replace(run.job, version=version))


def go_on_after_a_cancel(history: History) -> Broken:
    """The cancel was accepted in the attempt before."""
    for key, chain in chains(history).items():
        for place, run in chain:
            if run.state == "running" and run.attempt < chain[-1][1].attempt:
                yield f"{key} {place}", changed(history, LEDGER, place, replace(run, recall="cancel:by command"))


def ending(history: History, partition: Partition, at_ms: int) -> History:
    """Somebody ends there what a broker forgot to."""
    entries = history.log.get(partition, ())
    barrier = Barrier(id="7:3.1", process="host:1", generation=1)
    key, value = (BARRIER_KEY.encode(), encode(barrier)) if partition[0] == REJECTED else (b"forgotten", None)
    offset = entries[-1].offset + 1 if entries else 0
    entry = Entry(topic=partition[0], partition=partition[1], offset=offset, append_ms=at_ms, key=key, value=value)
    return with_entries(history, partition, [*entries, entry])


def end_what_nobody_forgot(history: History) -> Broken:
    """No fault had come by then."""
    first_ms = min((fault.began_ms for fault in history.noted.faults), default=history.judged_ms)
    for topic in (STEPS, ATTEMPTS, REJECTED):
        for partition in [each for each in history.log if each[0] == topic]:
            yield f"{partition}", ending(history, partition, first_ms - LATE_MS // 2)
