"""(a) What each record of a run says beside its state, worked out from the record before it and from what was read in between.

| field | is |
| --- | --- |
| `dispatch_term`, `dispatched_ms` | term and leader time of the latest offer |
| `ahead` | whether that was offered before the due time |
| `worker`, `home`, `steps_from` | those of the claim that was granted |
| `granted_ms`, `deadline_ms` | leader time of the grant; the later of that and the due time, and the `timeout` |
| `recall` | why a granted attempt was asked back: a cancel that was sent, or the change that a later version is |
| `outcome`, `error`, `result`, `started_ms` | what the worker told of the last attempt that ended |
| `finished_ms` | when the run ended: as the worker told, at most leader time; else leader time |
| `failures`, `losses` | attempts of which their workers told failures; attempts lost with their workers after the due time |
| `begun` | whether an attempt ended, or was lost, after the due time |
| `earlier` | as before, and of an attempt that is over one range more, from its `steps_from` on its home partition |

An offer, its claim and its grant stay with the run until it waits, is passed over or is offered again; an attempt's `outcome` and
times until the next offer; the counts, `begun` and `error` for good. A run whose losses are more than `max_worker_losses` has
ended. A record that is written again says something new. Just before its due time an attempt may or may not count as begun.

Two things happen in one transaction and leave no record: a claim that is granted and given back, and an attempt that ends just
before the run is cancelled. So after an offer `granted_ms` may be that transaction's, and a cancelled run may have let go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dueline.schemas.base import NONE
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.run import Run, RunState, Trigger
from dueline.schemas.work import AttemptEvent, EventKind, Outcome
from proof.checker.attempts import Attempt, attempts_of, fences_of, was_lost
from proof.checker.expected import Expected
from proof.checker.reading import Log
from proof.checker.waits import BUG
from proof.history.verdict import Kind, Violation

S = RunState
NEARLY_MS: Final = 1_000
"""So long before its due time a lost attempt may count as begun: the leader's allowance for clocks that differ."""
MOST_RANGES: Final = 32
"""A run that has so many ranges of steps may put them together."""
MOST_ERROR, MOST_RESULT = 64 * 1024, 512 * 1024
"""Characters that a run keeps of what its worker told."""
HELD: Final[dict[str, object]] = {
    "ahead": False, "partition": NONE, "dispatch_term": NONE, "dispatch_seq": NONE, "incarnation": "", "worker": "",
    "claim": NONE, "home": NONE, "steps_from": NONE, "deadline_ms": NONE, "recall": "",
}  # fmt: skip
"""What a run holds of its offer and grant, and what it says once it has let go."""
OFFER: Final = ("partition", "dispatch_term", "dispatch_seq", "ahead")
CANCEL: Final = "cancel:"

Fields = dict[str, tuple[object, ...]]
"""What each field may say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a granted attempt is over. `told`: its worker's word, None if it was lost with it."""

    told: AttemptEvent | None


def check_fields(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Every record of every run due up to `judged_ms`."""
    if log.was_cut("attempts"):
        return
    fences, claims, cancels = fences_of(log), _claims(log), _cancels(log)
    for key, chain in log.runs.items():
        if chain[0].record.due_ms > log.history.judged_ms or any(placed.record.reason == BUG for placed in chain):
            continue
        attempts = {attempt.number: attempt for attempt in attempts_of(log, key, chain)}
        before: Run | None = None
        for placed in chain:
            run = placed.record
            attempt = attempts.get(before.attempt) if before is not None and before.state == S.RUNNING else None
            left = attempt is not None and (run.state, run.attempt) != (S.RUNNING, attempt.number)
            cause = _cause(attempt, was_lost(attempt, fences)) if left and attempt is not None else None
            wrong = _recall(run, before, cancels.get(key, set()), expected.get(run.job.id))
            if left and cause is None:
                wrong = f"{run.state}, and its attempt {attempt.number if attempt else 0} neither came back nor was fenced"
            elif not wrong:
                claim = claims.get((key, run.dispatch_term, run.dispatch_seq, run.incarnation, run.claim))
                wrong = ", ".join(_differ(run, _wanted(run, before, cause, claim))) or _ranges(run, before, cause)
            if wrong:
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=f"{run.state}: {wrong}", evidence=placed.where)
            before = run


def _claims(log: Log) -> dict[tuple[str, int, int, str, int], AttemptEvent]:
    events = (placed.record for placed in log.events if placed.record.kind == EventKind.CLAIMED)
    return {(event.run, event.dispatch_term, event.dispatch_seq, event.incarnation, event.claim): event for event in events}


def _cancels(log: Log) -> dict[str, set[str]]:
    """What `recall` says for each command to cancel, by run."""
    found: dict[str, set[str]] = {}
    for letter in log.commands:
        command = letter.value
        if isinstance(command, Command) and command.kind == CommandKind.CANCEL:
            reason = command.reason or (f"by {command.by}" if command.by else "by command")
            found.setdefault(command.run, set()).add(CANCEL + reason)
    return found


def _cause(attempt: Attempt, lost: bool) -> Cause | None:
    return Cause(told=attempt.told.record if attempt.told is not None else None) if attempt.told is not None or lost else None


def _differ(run: Run, wanted: Fields) -> Iterator[str]:
    for name, allowed in wanted.items():
        said = getattr(run, name)
        if said not in allowed:
            yield f"{name} is {said!r:.60}, not {' or '.join(f'{each!r:.60}' for each in dict.fromkeys(allowed))}"


# --- what may stand there ---------------------------------------------------------------------------------------------


def _wanted(run: Run, before: Run | None, cause: Cause | None, claim: AttemptEvent | None) -> Fields:
    old = before if before is not None else Run(job=run.job, due_ms=run.due_ms, trigger=run.trigger)
    wanted = _counts(run, old, cause) | _last_attempt(run, old, cause) | _end(run, cause)
    wanted["trigger"] = (old.trigger,)
    if run.state != S.WAITING:
        wanted["until_ms"] = (NONE,)
    if run.state in (S.DISPATCHED, S.RUNNING, S.SUCCEEDED):
        wanted["reason"] = ("",)
    if run.state == S.DISPATCHED:
        return wanted | _offered(run)
    wanted["dispatched_ms"] = (old.dispatched_ms,)
    wanted["granted_ms"] = (old.granted_ms, run.leader_ms) if old.state == S.DISPATCHED else (old.granted_ms,)
    if run.state == S.RUNNING:
        return wanted | _granted(run, old, claim)
    let_go = run.state in (S.WAITING, S.SKIPPED)
    if run.state == S.CANCELLED and all(getattr(run, name) == value for name, value in HELD.items()):
        let_go = True
    return wanted | {name: (value if let_go else getattr(old, name),) for name, value in HELD.items()}


def _offered(run: Run) -> Fields:
    early = run.leader_ms < run.due_ms and run.trigger in (Trigger.SCHEDULE, Trigger.CATCH_UP)
    nothing: Fields = {name: (value,) for name, value in HELD.items() if name not in OFFER}
    return nothing | {
        "ahead": (early,), "dispatch_term": (run.term,), "dispatched_ms": (run.leader_ms,), "granted_ms": (NONE,),
    }  # fmt: skip


def _granted(run: Run, old: Run, claim: AttemptEvent | None) -> Fields:
    if old.state == S.RUNNING:
        return {name: (getattr(old, name),) for name in HELD if name != "recall"}
    deadline = max(run.leader_ms, run.due_ms) + run.job.timeout_ms if run.job.timeout_ms else NONE
    wanted: Fields = {name: (getattr(old, name),) for name in OFFER}
    wanted |= {"granted_ms": (run.leader_ms,), "deadline_ms": (deadline,)}
    if claim is not None:  # that it stands there is looked at among the states
        wanted |= {"worker": (claim.worker,), "home": (claim.home,), "steps_from": (claim.steps_from,)}
    return wanted


def _counts(run: Run, old: Run, cause: Cause | None) -> Fields:
    """Failures, losses, and whether it began."""
    told = cause.told if cause is not None else None
    failed = int(told is not None and told.outcome == Outcome.FAILURE)
    failures = {old.failures, old.failures + failed} if run.state == S.CANCELLED else {old.failures + failed}
    wanted: Fields = {"failures": tuple(failures), "losses": (old.losses,), "begun": (old.begun,)}
    if told is not None:
        wanted["begun"] = (old.begun or told.kind == EventKind.FINISHED,)
    elif cause is not None:
        began = run.leader_ms >= run.due_ms
        nearly = run.losses > old.losses if run.due_ms - NEARLY_MS <= run.leader_ms < run.due_ms else began
        wanted["losses"], wanted["begun"] = (old.losses + nearly,), (old.begun or nearly,)
    if old.losses > run.job.max_worker_losses or (run.losses > run.job.max_worker_losses and run.state not in _OVER):
        wanted["losses"] = (f"at most {run.job.max_worker_losses} in a run that goes on",)
    return wanted


_OVER: Final = frozenset({S.FAILED, S.CANCELLED})


def _last_attempt(run: Run, old: Run, cause: Cause | None) -> Fields:
    """What the worker told of the last attempt that ended."""
    told = cause.told if cause is not None and cause.told is not None and cause.told.kind == EventKind.FINISHED else None
    won = told is not None and told.outcome == Outcome.SUCCESS
    wanted: Fields = {"outcome": (old.outcome,), "started_ms": (old.started_ms,), "error": (old.error,), "result": ("",)}
    if told is not None:
        wanted |= {"outcome": (told.outcome,), "started_ms": (told.started_ms,), "error": (told.error[:MOST_ERROR],)}
    if told is not None and won:
        wanted |= {"error": ("",), "result": (told.result,) if len(told.result) <= MOST_RESULT else (run.result,)}
    if run.state in (S.DISPATCHED, S.RUNNING):
        wanted |= {"outcome": ("",), "started_ms": (NONE,)}
    return wanted


def _ranges(run: Run, before: Run | None, cause: Cause | None) -> str:
    """What is wrong with the ranges in which earlier attempts recorded their steps."""
    known = before.earlier if before is not None else []
    if run.earlier == known or len(known) >= MOST_RANGES:
        return ""
    if before is None or cause is None or run.earlier[:-1] != known:
        return f"earlier has {len(run.earlier)} ranges of steps, before it had {len(known)}"
    part = run.earlier[-1]
    if (part.attempt, part.home, part.start) == (before.attempt, before.home, before.steps_from) and part.start < part.end:
        return ""
    return f"earlier says {part}, attempt {before.attempt} wrote on {before.home} from {before.steps_from}"


def _end(run: Run, cause: Cause | None) -> Fields:
    if run.state in (S.WAITING, S.DISPATCHED, S.RUNNING):
        return {"finished_ms": (NONE,)}
    told = cause.told if cause is not None and cause.told is not None and cause.told.kind == EventKind.FINISHED else None
    ended = min(told.finished_ms, run.leader_ms) if told is not None and told.finished_ms >= 0 else run.leader_ms
    return {"finished_ms": (ended, run.leader_ms) if run.state == S.CANCELLED else (ended,)}


def _recall(run: Run, before: Run | None, cancels: set[str], known: Expected | None) -> str:
    """What is wrong with a granted attempt's being asked back, or not, in this record."""
    if run.state != S.RUNNING:
        return ""
    again = before is not None and before.state == S.RUNNING
    if again and before is not None and run.recall == before.recall:
        return f"written again, and nothing is new (recall {run.recall!r})"
    if not run.recall or run.recall in cancels:
        return "" if run.recall or not again else "its recall is gone"
    later = known.spans if known is not None and run.ahead and run.leader_ms < run.due_ms else []
    changes = {span.version.change for span in later if span.version.version > run.job.version}
    return "" if run.recall in changes else f"asked back for {run.recall!r}, which nobody had asked for"
