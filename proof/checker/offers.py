"""(f) What leaders and workers say to each other beside the ledger: offers, signals, heartbeats, each held against the ledger.

- An offer in `dispatch.<queue>` is one that the ledger made: the same run, attempt, term and number, and of it the same
  constants, due time, trigger and ranges of steps, on the partition that the ledger names. Each attempt that was granted had been
  offered there.
- A grant in `signals` is one that the ledger made, with its deadline. Before an attempt's first effect its grant stands there
  (but for the skew).
- An attempt is granted to an incarnation that told of itself in `workers`: the same worker, queue and home, and the handler among
  its handlers.

Each is asked only where the topic is part of the history and nothing of it has expired, by the faults.
"""

from __future__ import annotations

from collections.abc import Iterator

from dueline.schemas.run import Run, RunState
from dueline.schemas.work import Dispatch, Heartbeat, Signal, SignalKind
from proof.checker.reading import Log, Placed, records
from proof.history.verdict import Kind, Violation

Claim = tuple[str, int, str, int]
"""Run, attempt, incarnation and number of a claim."""


def check_offers(log: Log) -> Iterator[Violation]:
    """Offers, signals and heartbeats against the ledger."""
    yield from _offers(log)
    yield from _signals(log)
    yield from _registered(log)


def _offers(log: Log) -> Iterator[Violation]:
    found = records(log, "dispatch.", Dispatch)
    if not found:
        return
    made: dict[tuple[int, int], Placed[Run]] = {}
    for chain in log.runs.values():
        for placed in chain:
            if placed.record.state == RunState.DISPATCHED:
                made.setdefault((placed.record.dispatch_term, placed.record.dispatch_seq), placed)
    seen: set[tuple[str, int]] = set()
    for offer in found:
        said, source = offer.record, made.get((offer.record.term, offer.record.seq))
        seen.add((said.run, said.attempt))
        wrong = "an offer that the ledger did not make" if source is None else _differs(offer, source.record)
        if wrong:
            yield Violation(kind=Kind.UNEXPLAINED, subject=said.run, what=wrong, evidence=offer.where)
    for key, chain in log.runs.items() if log.whole("dispatch") else ():
        for placed in chain:
            if placed.record.state == RunState.RUNNING and (key, placed.record.attempt) not in seen:
                seen.add((key, placed.record.attempt))
                what = f"attempt {placed.record.attempt} was granted, and had never been offered"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)


def _differs(offer: Placed[Dispatch], run: Run) -> str:
    said = offer.record
    pairs = {
        "partition": (offer.entry.partition, run.partition),
        "trigger": (said.trigger, run.trigger),
        "run": (said.run, run.key),
        "attempt": (said.attempt, run.attempt),
        "constants": (said.job, run.job),
        "due time": (said.due_ms, run.due_ms),
        "ahead": (said.ahead, run.ahead),
        "ranges of steps": (said.earlier, run.earlier),
    }
    wrong = [name for name, (one, other) in pairs.items() if one != other]
    return f"offer {said.seq} of term {said.term} says something else than the ledger: {', '.join(wrong)}" if wrong else ""


def _signals(log: Log) -> Iterator[Violation]:
    found = records(log, "signals", Signal)
    if not found:
        return
    granted: dict[Claim, Placed[Run]] = {}
    for key, chain in log.runs.items():
        for placed in chain:
            if placed.record.state == RunState.RUNNING:
                granted.setdefault((key, placed.record.attempt, placed.record.incarnation, placed.record.claim), placed)
    told: dict[Claim, int] = {}
    for said in found:
        signal = said.record
        claim = (signal.run, signal.attempt, signal.incarnation, signal.claim)
        if signal.kind != SignalKind.GRANT:
            continue
        told[claim] = min(said.entry.append_ms, told.get(claim, said.entry.append_ms))
        if claim not in granted:
            what = f"attempt {signal.attempt} was granted to {signal.incarnation} by a signal, and not by the ledger"
            yield Violation(kind=Kind.UNEXPLAINED, subject=signal.run, what=what, evidence=said.where)
        elif signal.deadline_ms != granted[claim].record.deadline_ms:
            what = f"was told the deadline {signal.deadline_ms}, the ledger has {granted[claim].record.deadline_ms}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=signal.run, what=what, evidence=said.where)
    if not log.whole("signals"):
        return
    grants = {claim[:2]: claim for claim in granted}
    for effect in log.history.noted.effects:
        claim = grants.get((effect.run, effect.attempt), ("", 0, "", 0))
        if claim in granted and effect.at_ms + log.skew.at(effect.at_ms) < told.get(claim, effect.at_ms + (1 << 40)):
            what = f"step {effect.step!r} of attempt {effect.attempt} happened before {claim[2]} was told of its grant"
            yield Violation(kind=Kind.EARLY, subject=effect.run, what=what, evidence=f"effect at {effect.at_ms}")


def _registered(log: Log) -> Iterator[Violation]:
    beats: dict[str, Heartbeat] = {placed.record.incarnation: placed.record for placed in log.beats}
    if not beats or not log.whole("workers"):
        return
    for key, chain in log.runs.items():
        for placed in chain:
            run = placed.record
            if run.state != RunState.RUNNING:
                continue
            beat = beats.get(run.incarnation)
            if beat is None:
                wrong = f"granted to {run.incarnation}, which never told of itself"
            elif (beat.worker, beat.queue, beat.home) != (run.worker, run.job.queue, run.home):
                wrong = f"granted to {run.worker}, home {run.home}, queue {run.job.queue}, of which {run.incarnation} is none"
            elif run.job.handler not in beat.handlers:
                wrong = f"granted to {run.incarnation}, which has no handler {run.job.handler!r}"
            else:
                continue
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=wrong, evidence=placed.where)
