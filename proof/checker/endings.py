"""(a) How runs and attempts ended, and why: each end has its ground in the definition, in the handler and in the history.

| end | its ground |
| --- | --- |
| `cancelled` | a command to cancel this run was published before; the reason is the command's |
| `failed`, `worker-lost` | more incarnations were fenced under its attempts than `max_worker_losses` allows |
| `failed` as its worker told | more failures than `max_retries`, or one that no retry follows (NO_RETRY) |
| `succeeded` | the handler (`Conduct`) succeeds at such an attempt |

A retry follows a failure that allows one, and no more of them than `max_retries`; nothing follows an accepted cancel.

And so each failure of an attempt, whatever became of the run: `timeout` only if the definition has one and the attempt lasted so
long; `steps_expired` only if the retention of `steps` ran out; the others only of a handler that fails then, or, for an exception
in one that does not, with a fault on its process or on a broker in the time of the attempt (`blame.py`). An `interrupted` attempt
needs a process that was ended or (a lapsed lease) such a fault, a `snooze` a handler that asks for it. An incarnation is fenced
only if it had said that it stopped, its process ended, or a fault was on it, on a broker or on a scheduler in the time before; or
if it gave up (`giving_up.py`), and a fault on it or on a broker may have kept the answer away.

No attempt outlasts its `timeout`: the worker ends one that has not ended so long after it began, by its own clock. From its begin
to its end as the worker tells, and from the call of its first step to the effect of its last by the harness's clock, it takes no
more than that, the skew and TURN_MS in which the worker had no turn; unless a fault was on its process or on a broker, since a
process that stands still ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dueline.schemas.command import Command, CommandKind
from dueline.schemas.ledger import Fence
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import Outcome, WorkerState
from proof.checker.attempts import Attempt, attempts_of, fences_of, was_lost
from proof.checker.giving_up import givings_up, kept_waiting
from proof.checker.processes import of_worker
from proof.checker.reading import Letter, Log, Placed
from proof.checker.waits import BUG
from proof.history.acts import STARVED, Conduct, Effect, Role
from proof.history.verdict import Kind, Violation

S = RunState
HELD_RUNS: Final = "it stopped and held runs"
"""The ground of a fence of an incarnation that said its last word before the leader read its last events."""
NO_RETRY: Final = frozenset({"failed", "result", "steps_expired"})
"""Words of failures that no retry follows, whatever the definition says."""
TURN_MS: Final = 1_000
"""How late a worker may be that ends an attempt: longer standstills of the machine are noted as such (STARVED)."""
DRAIN: Final = "drain"
"""Why an attempt is interrupted by a worker that was asked to stop; else its lease had lapsed."""
PLANNED: Final = frozenset({"failed", "retry"})
"""Words that only a handler says: no fault makes one."""


def check_endings(log: Log) -> Iterator[Violation]:
    """Every run's end, every attempt's end, every fence."""
    cancels = _cancels(log)
    fences = fences_of(log)
    for key, chain in log.runs.items():
        last = chain[-1]
        run = last.record
        if run.due_ms > log.history.judged_ms:
            continue
        attempts = list(attempts_of(log, key, chain))
        conduct = log.history.noted.conducts.get(run.job.handler)
        wrong = ""
        if conduct is None and run.state in (S.SUCCEEDED, S.FAILED):
            wrong = f"{run.state}, and nothing is known of what the handler {run.job.handler!r} does"
        elif run.state == S.CANCELLED and log.whole("control"):
            wrong = _cancelled(log, last, cancels.get(key, []))
        elif run.state == S.FAILED:
            wrong = _failed(log, run, attempts, fences)
        elif run.state == S.SUCCEEDED and conduct is not None and _ends_otherwise(conduct, run.attempt):
            wrong = f"succeeded in attempt {run.attempt}, though the handler {run.job.handler!r} does not"
        if wrong:
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=wrong, evidence=last.where)
        yield from _attempts(log, key, attempts, conduct, log.effects.get(key, []))
        yield from _counted(log, key, chain, attempts)
        yield from _after_cancel(key, chain)
    yield from _fences(log, fences)


# --- runs -------------------------------------------------------------------------------------------------------------


def _cancels(log: Log) -> dict[str, list[Letter]]:
    found: dict[str, list[Letter]] = {}
    for letter in log.commands:
        if isinstance(letter.value, Command) and letter.value.kind == CommandKind.CANCEL:
            found.setdefault(letter.value.run, []).append(letter)
    return found


def _cancelled(log: Log, last: Placed[Run], commands: list[Letter]) -> str:
    ended = last.entry.append_ms
    before = [each for each in commands if each.entry.append_ms <= ended + log.skew.at(ended, each.entry.append_ms)]
    if not before:
        return "cancelled, though no command had asked for it"
    words = {_reason(each.value) for each in before if isinstance(each.value, Command)}
    if last.record.reason not in words:
        return f"cancelled as {last.record.reason!r}, the commands say {', '.join(sorted(words))}"
    return ""


def _reason(command: Command) -> str:
    return command.reason or (f"by {command.by}" if command.by else "by command")


def _failed(log: Log, run: Run, attempts: list[Attempt], fences: dict[str, Placed[Fence]]) -> str:
    if run.reason == BUG:
        return "failed for a bug of the leader"
    if run.reason == "worker-lost":
        lost = sum(was_lost(attempt, fences) for attempt in attempts)
        if log.whole("attempts") and (lost <= run.job.max_worker_losses or run.losses <= run.job.max_worker_losses):
            return f"failed with {run.losses} lost workers, {lost} by the ledger; {run.job.max_worker_losses} are allowed"
        return ""
    told = attempts[-1].told if attempts else None
    if told is None or not log.whole("attempts"):
        return ""  # who told so is looked at among the states
    event = told.record
    if run.reason != (event.reason or "failure"):
        return f"failed as {run.reason!r}, its worker told of {event.reason!r}"
    failures = sum(attempt.failed for attempt in attempts)
    if event.retryable and min(failures, run.failures) <= run.job.max_retries:
        return f"failed after {failures} failures, {run.failures} by its own count; {run.job.max_retries} retries are allowed"
    if not event.retryable and run.reason not in NO_RETRY:
        return f"failed as {run.reason!r} without a retry, which that does not stop"
    return ""


def _ends_otherwise(conduct: Conduct, attempt: int) -> bool:
    return conduct.fails or conduct.hangs or attempt <= max(conduct.flaky, conduct.snoozes)


def _counted(log: Log, key: str, chain: list[Placed[Run]], attempts: list[Attempt]) -> Iterator[Violation]:
    """No record counts more failures than its workers had told of by then."""
    if not log.whole("attempts"):
        return
    for placed in chain:
        run = placed.record
        told = sum(attempt.failed for attempt in attempts if attempt.number <= run.attempt)
        if run.failures > told:
            what = f"counts {run.failures} failures, its workers told of {told}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)


def _after_cancel(key: str, chain: list[Placed[Run]]) -> Iterator[Violation]:
    """Once a cancel was accepted no further attempt is offered."""
    attempt = -1
    for placed in chain:
        run = placed.record
        if 0 <= attempt < run.attempt:
            what = f"attempt {run.attempt} was offered after a cancel had been accepted in attempt {attempt}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)
            return
        if run.recall.startswith("cancel:"):
            attempt = run.attempt


# --- attempts ---------------------------------------------------------------------------------------------------------


def _attempts(
    log: Log, key: str, attempts: list[Attempt], conduct: Conduct | None, effects: list[Effect]
) -> Iterator[Violation]:
    for attempt in attempts if conduct is not None else ():
        assert conduct is not None, "asked of known handlers only"
        if attempt.told is None:
            continue
        outcome, wrong = attempt.told.record.outcome, ""
        if outcome == Outcome.FAILURE:
            wrong = _failure(log, attempt, conduct)
        elif outcome == Outcome.SNOOZE and attempt.number > conduct.snoozes:
            wrong = "snoozed, and its handler does not ask for that"
        elif outcome == Outcome.INTERRUPTED and not _interrupted(log, attempt):
            wrong = "interrupted, and its process was not ended"
        wrong = wrong or _tried_again(attempt, attempts) or _outlasted(log, attempt, effects)
        if wrong:
            what = f"attempt {attempt.number} {wrong}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=attempt.told.where)


def _tried_again(attempt: Attempt, attempts: list[Attempt]) -> str:
    """What is wrong with a retry that followed: the job allows so many, and its worker may have ruled it out."""
    assert attempt.told is not None, "asked of attempts that told of an end"
    after = attempt.after.record if attempt.after is not None else None
    if not attempt.failed or after is None or (after.state, after.reason) != (S.WAITING, "retry"):
        return ""
    failures = sum(each.failed for each in attempts if each.number <= attempt.number)
    allowed = after.job.max_retries
    if failures > allowed:
        return f"was the failure number {failures}, and was tried again; {allowed} retries are allowed"
    ruled_out = f"failed as {attempt.told.record.reason!r} and ruled out a retry, and was tried again"
    return "" if attempt.told.record.retryable else ruled_out


def _failure(log: Log, attempt: Attempt, conduct: Conduct) -> str:
    """What is wrong with the attempt's failure; "" if it has its ground."""
    assert attempt.told is not None, "asked of attempts that told of one"
    event, job = attempt.told.record, attempt.grant.record.job
    if event.reason == "steps_expired":
        return "" if log.was_cut("steps") else "failed as steps_expired, and nothing of `steps` had expired"
    if event.reason == "timeout":
        lasted = attempt.told.entry.append_ms - attempt.grant.entry.append_ms
        skew = log.skew.at(attempt.told.entry.append_ms, attempt.grant.entry.append_ms)
        if not job.timeout_ms or lasted < job.timeout_ms - skew:
            return f"timed out {lasted} ms after its grant, its limit is {job.timeout_ms or 'none'}"
        slow = conduct.hangs or not 0 <= conduct.takes_ms < job.timeout_ms
        return "" if slow or _disturbed(log, attempt) else f"timed out, and its handler takes {conduct.takes_ms} ms"
    if conduct.fails or attempt.number <= conduct.flaky:
        known = not conduct.failure or event.reason == conduct.failure or _disturbed(log, attempt)
        return "" if known else f"failed as {event.reason!r}, its handler fails as {conduct.failure!r}"
    if event.reason in PLANNED or event.reason == "result":
        return f"failed as {event.reason!r}, which its handler never does"
    return "" if _disturbed(log, attempt) else f"failed ({event.reason}), though its handler does not and no fault hit it"


def _outlasted(log: Log, attempt: Attempt, effects: list[Effect]) -> str:
    assert attempt.told is not None, "asked of attempts that told of an end"
    event, limit = attempt.told.record, attempt.grant.record.job.timeout_ms
    mine = [effect for effect in effects if effect.attempt == attempt.number]
    begun = min((effect.began_ms if effect.began_ms >= 0 else effect.at_ms for effect in mine), default=0)
    lasted = max((effect.at_ms for effect in mine), default=0) - begun
    if min(event.started_ms, event.finished_ms) >= 0:
        lasted = max(lasted, event.finished_ms - event.started_ms)
    since, until = attempt.grant.entry.append_ms, attempt.told.entry.append_ms
    skew = log.skew.at(since, until)
    if not limit or lasted <= limit + TURN_MS + skew or _disturbed(log, attempt):
        return ""
    starved = (fault for fault in log.history.noted.struck if fault.kind == STARVED)
    if any(fault.began_ms <= until + skew and fault.ended_ms >= since - skew for fault in starved):
        return ""
    return f"lasted {lasted} ms and ended as {event.outcome or event.kind!r}, its time-out is {limit} ms"


def _disturbed(log: Log, attempt: Attempt) -> bool:
    """Whether a fault on its process or on a broker came in its time."""
    assert attempt.told is not None, "asked of attempts that told of an end"
    begin, end = attempt.grant.entry.append_ms, attempt.told.entry.append_ms
    skew = log.skew.at(begin, end)
    processes = of_worker(log.history, attempt.grant.record.worker)
    return log.blame.explains(processes, begin - log.history.bounds.worker_timeout_ms - skew, end + skew)


def _interrupted(log: Log, attempt: Attempt) -> bool:
    """Whether the life of its process in which it ran has ended; or, but for a drain, a fault may have made its lease lapse."""
    assert attempt.told is not None, "asked of attempts that told of an end"
    if attempt.told.record.reason != DRAIN and _disturbed(log, attempt):
        return True
    told_ms = attempt.told.entry.append_ms
    skew = log.skew.at(told_ms)
    processes = of_worker(log.history, attempt.grant.record.worker)
    lives = [life for life in log.history.noted.lives if life.process in processes and life.began_ms <= told_ms + skew]
    return any(life.ended_ms >= told_ms - skew for life in lives)


# --- fences -----------------------------------------------------------------------------------------------------------


def _fences(log: Log, fences: dict[str, Placed[Fence]]) -> Iterator[Violation]:
    """Nobody is fenced in peace. The end of a process counts from its last heartbeat on, however late a leader noticed."""
    bounds, lives = log.history.bounds, log.history.noted.lives
    schedulers = {life.process for life in lives if life.role == Role.SCHEDULER}
    heard = {beat.record.incarnation: beat for beat in log.beats}
    givings = givings_up(log)
    for incarnation, placed in fences.items():
        at = placed.entry.append_ms
        if at > log.history.judged_ms:
            continue
        skew = log.skew.at(at)
        processes = of_worker(log.history, placed.record.worker)
        last = heard.get(incarnation)
        stopped = last is not None and last.record.state == WorkerState.STOPPED and last.entry.append_ms <= at + skew
        if stopped and placed.record.reason == HELD_RUNS:
            continue  # whether it held none any more, as that word says, is asked there: `stopping.py`
        since = at - 2 * bounds.worker_timeout_ms - max([bounds.session_ms, *(life.session_ms for life in lives)]) - skew
        quiet = min(since, last.entry.append_ms - skew) if last is not None else since
        ended = any(life.process in processes and quiet <= life.ended_ms <= at + skew for life in lives)
        began = any(life.role == Role.SCHEDULER and since <= life.began_ms <= at for life in lives)
        given = givings.get(incarnation)
        waited = given is not None and kept_waiting(log, processes, given, skew)
        if not ended and not began and not waited and not log.blame.explains({*processes, *schedulers}, since, at + skew):
            what = f"the incarnation {incarnation} was fenced ({placed.record.reason}), and nothing had happened to its process"
            yield Violation(kind=Kind.UNEXPLAINED, subject=incarnation, what=what, evidence=placed.where)
