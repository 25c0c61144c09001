"""(f) The life of each run along the ledger, held against a table of its own (from docs/states.md) and against `attempts`.

- The first record says that it is the first (`created_ms` is its own leader time), later ones keep what makes the run: job, due
  time, command, `created_ms`. The same record twice is a double.
- Only an offer begins an attempt, and each offer the next one; an offer's (term, number) is given once.
- A grant names a claim that stands in `attempts` and answers the offer; an attempt is granted to one claim. An end of work is
  told by its worker: `succeeded` and `failed` (but for too many lost workers) need the `finished` event of the granted claim, and
  a granted success decides: no later attempt, no other end. So with what sends a run back: `retry`, `snooze`, `interrupted` and
  `declined` need the worker's event, `worker-lost` a fence of the incarnation that stands before it in the ledger.
- Nothing follows an end. A run due up to `judged_ms` has ended, unless it waits for an instant after the end of the ledger or
  behind such a run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dueline.schemas.base import NONE
from dueline.schemas.ledger import Fence
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import EventKind, Outcome
from proof.checker.reading import Log, Placed
from proof.history.verdict import Kind, Violation

S = RunState
ENDS: Final = frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED, S.SKIPPED})
FOLLOWS: Final[dict[str, frozenset[str]]] = {
    "": frozenset({S.SKIPPED, S.WAITING, S.DISPATCHED, S.CANCELLED}),
    S.WAITING: frozenset({S.WAITING, S.DISPATCHED, S.SKIPPED, S.CANCELLED}),
    S.DISPATCHED: frozenset({S.DISPATCHED, S.WAITING, S.RUNNING, S.SKIPPED, S.CANCELLED}),
    S.RUNNING: frozenset({S.RUNNING, S.WAITING, S.DISPATCHED, *ENDS}),
}
RETURNS: Final[dict[str, tuple[str, str]]] = {
    "retry": (EventKind.FINISHED, Outcome.FAILURE), "snooze": (EventKind.FINISHED, Outcome.SNOOZE),
    "interrupted": (EventKind.FINISHED, Outcome.INTERRUPTED), "declined": (EventKind.DECLINED, ""),
}  # fmt: skip
"""What a worker tells of an attempt that a run comes back from: kind and outcome of its event, by the run's reason."""
BLOCKED: Final = frozenset({"overlap", "limit", "catch-up-rate"})


def check_states(log: Log) -> Iterator[Violation]:
    """Every run's life."""
    offers: dict[tuple[int, int], tuple[str, int]] = {}
    fenced = _fenced(log)
    for key, chain in log.runs.items():
        yield from _beginning(key, chain[0])
        yield from _steps_of_life(key, chain)
        yield from _grants(log, key, chain)
        yield from _ends_told(log, key, chain)
        yield from _returns_told(log, key, chain, fenced)
        yield from _offers(key, chain, offers)
    yield from _unended(log)


def _beginning(key: str, first: Placed[Run]) -> Iterator[Violation]:
    run = first.record
    if run.created_ms != run.leader_ms:
        what = f"its first record is gone: this one is of {run.leader_ms}, the run was made at {run.created_ms}"
        yield Violation(kind=Kind.LOST, subject=key, what=what, evidence=first.where)
    if run.state not in FOLLOWS[""]:
        yield Violation(kind=Kind.ORDER, subject=key, what=f"begins as {run.state}", evidence=first.where)
    if run.attempt != (1 if run.state == S.DISPATCHED else 0):
        yield Violation(kind=Kind.ORDER, subject=key, what=f"begins with attempt {run.attempt}", evidence=first.where)


def _steps_of_life(key: str, chain: list[Placed[Run]]) -> Iterator[Violation]:
    before: Run | None = None
    for place, placed in enumerate(chain):
        run = placed.record
        if before is None:
            before = run
            continue
        if any(run.leader_ms == earlier.record.leader_ms and run == earlier.record for earlier in chain[:place]):
            yield Violation(kind=Kind.DOUBLED, subject=key, what="the same record again", evidence=placed.where)
            continue
        if before.created_ms != run.created_ms:
            what = f"made again: at {before.created_ms} and at {run.created_ms}"
            yield Violation(kind=Kind.DOUBLED, subject=key, what=what, evidence=placed.where)
        if (before.job.id, before.due_ms, before.command) != (run.job.id, run.due_ms, run.command):
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what="is another run than before", evidence=placed.where)
        if run.state not in FOLLOWS.get(before.state, frozenset()):
            what = f"{before.state} is followed by {run.state}"
            yield Violation(kind=Kind.ORDER, subject=key, what=what, evidence=placed.where)
        elif run.attempt != before.attempt + (run.state == S.DISPATCHED):
            what = f"{run.state} with attempt {run.attempt}, after {before.state} with attempt {before.attempt}"
            yield Violation(kind=Kind.ORDER, subject=key, what=what, evidence=placed.where)
        before = run


def _grants(log: Log, key: str, chain: list[Placed[Run]]) -> Iterator[Violation]:
    held: dict[int, tuple[str, int]] = {}
    for placed in chain:
        run = placed.record
        if run.state != S.RUNNING:
            continue
        claim = (run.incarnation, run.claim)
        known = held.setdefault(run.attempt, claim)
        if known != claim:
            what = f"attempt {run.attempt} was granted to {known} and to {claim}"
            yield Violation(kind=Kind.DOUBLED, subject=key, what=what, evidence=placed.where)
        elif log.whole("attempts") and not _claimed(log, key, run):
            what = f"attempt {run.attempt} was granted to {claim}, which never claimed the offer"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)


def _claimed(log: Log, key: str, run: Run) -> bool:
    wanted = (EventKind.CLAIMED, run.incarnation, run.claim, run.dispatch_term, run.dispatch_seq)
    return any(
        (event.kind, event.incarnation, event.claim, event.dispatch_term, event.dispatch_seq) == wanted
        for event in (placed.record for placed in log.finishes.get((key, run.attempt), ()))
    )


def _ends_told(log: Log, key: str, chain: list[Placed[Run]]) -> Iterator[Violation]:
    last = chain[-1]
    run = last.record
    running = [placed.record for placed in chain if placed.record.state == S.RUNNING]
    granted = {(each.attempt, each.incarnation, each.claim) for each in running}
    told: dict[str, set[int]] = defaultdict(set)
    for attempt, incarnation, claim in granted:
        for placed in log.finishes.get((key, attempt), ()):
            event = placed.record
            if (event.kind, event.incarnation, event.claim) == (EventKind.FINISHED, incarnation, claim):
                told[event.outcome].add(attempt)
    wants = {S.SUCCEEDED: Outcome.SUCCESS, S.FAILED: Outcome.FAILURE}.get(S(run.state)) if run.state in ENDS else None
    if wants is not None and run.reason != "worker-lost" and log.whole("attempts") and run.attempt not in told[wants]:
        what = f"{run.state} in attempt {run.attempt}, but no worker that was granted it told so in `attempts`"
        yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=last.where)
    won = told[Outcome.SUCCESS]
    if won and (run.attempt > min(won) or run.state != S.SUCCEEDED) and run.due_ms <= log.history.judged_ms:
        what = f"attempt {min(won)} told of its success, yet the run is {run.state} in attempt {run.attempt}"
        yield Violation(kind=Kind.LOST, subject=key, what=what, evidence=last.where)


def _returns_told(log: Log, key: str, chain: list[Placed[Run]], fenced: dict[str, int]) -> Iterator[Violation]:
    """A record that sends a run back, or gives it up, names what happened: the event or fence must be there."""
    holder, attempt = "", 0
    for placed in chain:
        run = placed.record
        events = [each.record for each in log.finishes.get((key, run.attempt), ())]
        told = any((event.kind, event.outcome) == RETURNS.get(run.reason) for event in events)
        gone = fenced.get(holder, placed.entry.offset) < placed.entry.offset
        if run.state == S.RUNNING:
            holder, attempt = run.incarnation, run.attempt
        elif run.state == S.DISPATCHED and holder and not gone and log.whole("attempts") and not _returned(log, key, attempt):
            what = f"offered again, but attempt {attempt} neither came back nor was fenced with {holder}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)
        elif run.state == S.WAITING and run.reason in RETURNS and not told and log.whole("attempts"):
            what = f"waits as {run.reason}, but no worker told so of attempt {run.attempt}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)
        elif run.reason == "worker-lost" and not gone:
            what = f"{run.state} as worker-lost, but no fence of {holder} stands before it"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)


def _returned(log: Log, key: str, attempt: int) -> bool:
    return any(placed.record.kind != EventKind.CLAIMED for placed in log.finishes.get((key, attempt), ()))


def _fenced(log: Log) -> dict[str, int]:
    """The offset of each incarnation's first fence."""
    found: dict[str, int] = {}
    for placed in log.ledger:
        if isinstance(placed.record, Fence):
            found.setdefault(placed.record.incarnation, placed.entry.offset)
    return found


def _offers(key: str, chain: list[Placed[Run]], offers: dict[tuple[int, int], tuple[str, int]]) -> Iterator[Violation]:
    for placed in chain:
        run = placed.record
        if run.state != S.DISPATCHED or run.dispatch_seq == NONE:
            continue
        other = offers.setdefault((run.dispatch_term, run.dispatch_seq), (key, run.attempt))
        if other != (key, run.attempt):
            what = f"offer {run.dispatch_seq} of term {run.dispatch_term} stands for {other} too"
            yield Violation(kind=Kind.DOUBLED, subject=key, what=what, evidence=placed.where)


def _unended(log: Log) -> Iterator[Violation]:
    open_runs = {key: chain[-1] for key, chain in log.runs.items() if chain[-1].record.state not in ENDS}
    waiting = {key: placed.record for key, placed in open_runs.items() if placed.record.state == S.WAITING}
    later = {key for key, run in waiting.items() if run.until_ms > log.last_ms}
    held = {open_runs[key].record.job.id for key in later}
    for key, placed in open_runs.items():
        run = placed.record
        behind = run.state == S.WAITING and run.reason in BLOCKED and run.job.id in held
        if run.due_ms <= log.history.judged_ms and key not in later and not behind:
            what = f"has not ended: {run.state}{f' ({run.reason})' if run.reason else ''}, attempt {run.attempt}"
            yield Violation(kind=Kind.MISSED, subject=key, what=what, evidence=placed.where)
