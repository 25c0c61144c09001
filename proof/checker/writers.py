"""(d) Who wrote steps and events, and when: only the incarnation that was granted the attempt, and nothing after its fence.

- A step record is of the incarnation and the claim that were granted its attempt, in the home partition of that worker.
- A fence says where `steps` and `attempts` ended when it had been done: what its incarnation has there from then on got past it.
- In an attempt a step's effect comes before its record, and both before its worker tells that the attempt is over (more than the
  skew later they are an order of events that cannot be). What is cut off or timed out may have its effect later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dueline.schemas.ledger import Fence, FencePhase
from dueline.schemas.run import Run
from dueline.schemas.work import AttemptEvent, Outcome, Step
from proof.checker.attempts import attempts_of
from proof.checker.reading import Log, Placed
from proof.history.acts import Effect
from proof.history.verdict import Kind, Violation

Turn = tuple[str, int]
"""A run and the number of an attempt."""


def check_writers(log: Log) -> Iterator[Violation]:
    """Every step record, every event, every effect."""
    turns = {(key, attempt.number): attempt for key, chain in log.runs.items() for attempt in attempts_of(log, key, chain)}
    yield from _strangers(log, {turn: attempt.grant.record for turn, attempt in turns.items()})
    yield from _past_the_fence(log)
    yield from _too_late(log, {turn: attempt.told for turn, attempt in turns.items() if attempt.told is not None})


def _strangers(log: Log, grants: dict[Turn, Run]) -> Iterator[Violation]:
    for placed in log.steps:
        step = placed.record
        grant = grants.get((step.run, step.attempt))
        if grant is None or grant.due_ms > log.history.judged_ms:
            continue  # said among the steps
        writer = (step.incarnation, step.claim, placed.entry.partition)
        if writer != (grant.incarnation, grant.claim, grant.home):
            what = f"step {step.name!r} is of {writer}, its attempt was granted to {(grant.incarnation, grant.claim, grant.home)}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=step.run, what=what, evidence=placed.where)


def _past_the_fence(log: Log) -> Iterator[Violation]:
    done: dict[str, Fence] = {}
    for placed in log.ledger:
        if isinstance(placed.record, Fence) and placed.record.phase == FencePhase.DONE:
            done.setdefault(placed.record.incarnation, placed.record)
    everything: list[Placed[Step] | Placed[AttemptEvent]] = [*log.steps, *log.events]
    for written in everything:
        fence = done.get(written.record.incarnation)
        if fence is None or written.entry.partition != fence.home:
            continue
        end = fence.attempts_end if isinstance(written.record, AttemptEvent) else fence.steps_end
        if 0 <= end <= written.entry.offset:
            what = f"written by {fence.incarnation}, whose fence was done when its log ended at {end}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=written.record.run, what=what, evidence=written.where)


def _too_late(log: Log, told: dict[Turn, Placed[AttemptEvent]]) -> Iterator[Violation]:
    effects: defaultdict[tuple[str, int, str], list[Effect]] = defaultdict(list)
    for effect in log.history.noted.effects:
        effects[effect.run, effect.attempt, effect.step].append(effect)
        end = told.get((effect.run, effect.attempt))
        if end is not None and _by_itself(end.record) and _after(log, effect.at_ms, end.entry.append_ms):
            late = effect.at_ms - end.entry.append_ms
            what = f"an effect of attempt {effect.attempt} {late} ms after its worker had told of its end"
            yield Violation(kind=Kind.ORDER, subject=effect.run, what=what, evidence=f"effect at {effect.at_ms}, {end.where}")
    for placed in log.steps:
        step, at = placed.record, placed.entry.append_ms
        end = told.get((step.run, step.attempt))
        if end is not None and _after(log, at, end.entry.append_ms):
            what = f"step {step.name!r} was recorded after its worker had told of the attempt's end"
            yield Violation(kind=Kind.ORDER, subject=step.run, what=what, evidence=f"{placed.where}, {end.where}")
        for effect in effects[step.run, step.attempt, step.name]:
            if _after(log, effect.at_ms, at):
                what = f"step {step.name!r} happened {effect.at_ms - at} ms after it was recorded"
                evidence = f"effect at {effect.at_ms}, {placed.where}"
                yield Violation(kind=Kind.ORDER, subject=step.run, what=what, evidence=evidence)


def _by_itself(event: AttemptEvent) -> bool:
    """Whether the handler had returned or raised: a handler that is cut off or timed out may go on for a moment."""
    return event.outcome in (Outcome.SUCCESS, Outcome.SNOOZE) or (event.outcome == Outcome.FAILURE and event.reason != "timeout")


def _after(log: Log, at_ms: int, other_ms: int) -> bool:
    return at_ms > other_ms + log.skew.at(at_ms, other_ms)
