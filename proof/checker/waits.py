"""(a) What runs waited for: each reason is one that the definition knows, and puts a run off for as long as that says.

Only four reasons name an instant (`until_ms`); all others wait for something that must come before the history ends:

| reason | not before |
| --- | --- |
| `retry` | the decision and the back-off of so many failures, less up to a fifth of it |
| `snooze` | the instant that the worker told, which is what the handler asks for (`Conduct`) |
| `declined` | a second after the decision |
| `jitter` | the start of the due time (`jitter.py`), and only between the two |

`overlap` needs a job that must not overlap, or a manual run; `limit` a `max_concurrent`; `catch-up-rate` a `catch_up_every` with
`misfire: all`; `recalled` a later version than the run's own, unless one had come when it was decided again. `internal-error`
says that the leader could not decide what a worker told: always a bug of the leader.

Nothing is offered before the instant that it waited for, nor before the start of its due time by the version that it belongs to:
only what had waited for others (PUT_OFF) starts when those let it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dueline.schemas.base import NONE
from dueline.schemas.job import Misfire, Overlap
from dueline.schemas.run import Run, RunState, Trigger
from dueline.schemas.work import Outcome
from proof.checker.expected import Expected
from proof.checker.jitter import offset_ms
from proof.checker.reading import Log, Placed
from proof.history.acts import Conduct
from proof.history.verdict import Kind, Violation

PLAIN: Final = frozenset({"no-worker", "overlap", "limit", "interrupted", "worker-lost", "catch-up-rate", "recalled"})
SHORTER: Final = 0.2
"""A back-off is shortened by up to this share, so that what failed together does not come back together."""
REST_MS: Final = 1_000
BUG: Final = "internal-error"
"""How a run says that the leader met a bug with what its worker told."""
PUT_OFF: Final = frozenset({"overlap", "limit", "catch-up-rate"})


def check_waits(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Every record of a run that waits, and every offer."""
    for key, chain in log.runs.items():
        known = expected.get(chain[0].record.job.id)
        yield from _left_early(known, key, chain)
        for placed in chain:
            if placed.record.state != RunState.WAITING:
                continue
            wrong = _wrong_instant(log, placed, known) or _wrong_reason(placed.record, known)
            if wrong:
                what = f"waits as {placed.record.reason!r} {wrong}"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)


def _wrong_instant(log: Log, placed: Placed[Run], known: Expected | None) -> str:
    run = placed.record
    until, now = run.until_ms, run.leader_ms
    match run.reason:
        case "retry":
            full = back_off_ms(run)
            low, high = now + int(full * (1 - SHORTER)) - 1, now + full
        case "declined":
            if until == NONE:
                return ""
            low, high = now, now + REST_MS
        case "snooze":
            return _wrong_snooze(log, run)
        case "jitter":
            low = high = max(start_ms(known, run), run.due_ms + 1)
            if not run.due_ms <= now < until:
                return f"at {now}, and its start is put off from {run.due_ms} to {until}"
        case reason if reason == BUG:
            return "for a bug of the leader"
        case reason if reason in PLAIN:
            return "" if until == NONE else f"until {until}, an instant that it does not know"
        case _:
            return "which no rule knows"
    return "" if low <= until <= high else f"until {until}, {until - now} ms after its decision, not from {low} to {high}"


def back_off_ms(run: Run) -> int:
    """How long a run waits at most after as many failures as it has."""
    full, most = float(run.job.retry_backoff_ms), float(run.job.retry_backoff_max_ms)
    for _ in range(run.failures - 1):
        if full >= most:
            break
        full *= run.job.retry_backoff_factor
    return int(min(full, most))


def _wrong_snooze(log: Log, run: Run) -> str:
    told = [each for each in log.finishes.get((run.key, run.attempt), ()) if each.record.outcome == Outcome.SNOOZE]
    if not told:
        return ""  # said among the states
    if run.until_ms not in {max(each.record.until_ms, run.leader_ms) for each in told}:
        return f"until {run.until_ms}, its worker told of {told[-1].record.until_ms}"
    conduct = log.history.noted.conducts.get(run.job.handler, Conduct())
    latest = max(each.entry.append_ms + log.skew.at(each.entry.append_ms) for each in told) + conduct.snooze_ms
    latest = max(latest, run.leader_ms)  # read when it was over already
    return f"until {run.until_ms}, its handler asks for {conduct.snooze_ms} ms" if run.until_ms > latest else ""


def _wrong_reason(run: Run, known: Expected | None) -> str:
    if known is None:
        return ""
    jobs = [span.version.definition for span in known.spans if span.version.version >= run.job.version]
    match run.reason:
        case "overlap":
            fits = run.trigger == Trigger.MANUAL or any(job.overlap == Overlap.SKIP for job in jobs)
        case "limit":
            fits = any(job.overlap == Overlap.ALLOW and job.max_concurrent for job in jobs)
        case "catch-up-rate":
            fits = any(job.misfire == Misfire.ALL and job.catch_up_every_ms for job in jobs)
        case "recalled":
            fits = any(span.version.version > run.job.version for span in known.spans)
        case _:
            fits = True
    return "" if fits else "which none of its versions allows"


def start_ms(known: Expected | None, run: Run) -> int:
    """The start of its due time by the version that it belongs to: the due time itself, but for `jitter`."""
    span = known.number(run.job.version) if known is not None and not run.command else None
    return run.due_ms + (offset_ms(run.job.id, span.dues, run.due_ms) if span is not None else 0)


def _left_early(known: Expected | None, key: str, chain: list[Placed[Run]]) -> Iterator[Violation]:
    waited: Run | None = None
    put_off = False
    for placed in chain:
        run = placed.record
        if run.state == RunState.DISPATCHED:
            wrong, start = "", start_ms(known, run)
            if waited is not None and run.leader_ms < waited.until_ms:
                wrong = f"{waited.until_ms - run.leader_ms} ms before the end of its wait ({waited.reason})"
            elif not put_off and start > run.due_ms and run.leader_ms < start:
                wrong = f"{start - run.leader_ms} ms before the start to which jitter puts it off"
            if wrong:
                yield Violation(kind=Kind.EARLY, subject=key, what=f"offered {wrong}", evidence=placed.where)
        waited = run if run.state == RunState.WAITING else None
        if waited is not None:
            put_off = waited.reason in PUT_OFF or (put_off and waited.reason != "recalled")
