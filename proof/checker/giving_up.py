"""Incarnations that gave up by themselves: an answer to one of their transactions had not come in time.

Such a one says `lost` in its last heartbeat, and is fenced for that. One that holds nothing by then had said before, when it
began to drain, that it takes no more work: that is when it had missed the answer. What kept the answer away is looked for from
`Life.call_ms` before that on. One that holds runs may say so later, when it has read back in vain, since a killed broker forgot
to end what stands open there: then a fault on a broker is looked for from when it began to drain, but no further back than
reading back in vain can last (READ_BACK_MS); unless a fault on its process came meanwhile, since a try that meets no broker lets
it begin anew. Who says `lost` only after it was fenced, or was fenced for something else, did not give up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dueline.schemas.run import RunState
from dueline.schemas.work import WorkerState
from proof.checker.attempts import fences_of
from proof.checker.processes import of_worker
from proof.checker.reading import Log
from proof.history.acts import Effect

GAVE_UP: Final = "it gave up"
"""The ground of its fence."""
READ_BACK_MS: Final = 90_000
"""How long a worker that meets a broker reads back in vain: four tries in each of two partitions, its home in `attempts` and in
`steps`, of 10 s and a pause of 1 s (STUCK, READ_TIMEOUT_S, RETRY_S in `workers/readback.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivingUp:
    """`missed_ms`: when the answer was missed, at the latest; `call_ms`: how long it had been waited for; `drained_ms`: since
    when it took no more work."""

    missed_ms: int
    call_ms: int
    drained_ms: int


def givings_up(log: Log) -> dict[str, GivingUp]:
    """By incarnation."""
    fences = fences_of(log)
    drains: dict[str, int] = {}
    found: dict[str, GivingUp] = {}
    for placed in log.beats:
        beat, at = placed.record, placed.entry.append_ms
        if beat.state != WorkerState.RUNNING:
            drains.setdefault(beat.incarnation, at)
        fence = fences.get(beat.incarnation)
        if beat.state != WorkerState.LOST or beat.incarnation in found or fence is None or fence.record.reason != GAVE_UP:
            continue
        if at > fence.entry.append_ms + log.skew.at(at, fence.entry.append_ms):
            continue
        processes = of_worker(log.history, beat.worker)
        call_ms = max((life.call_ms for life in log.history.noted.lives if life.process in processes), default=0)
        drained_ms = drains[beat.incarnation]
        missed_ms = at if beat.claims else drained_ms
        found[beat.incarnation] = GivingUp(missed_ms=missed_ms, call_ms=call_ms, drained_ms=drained_ms)
    return found


def kept_waiting(log: Log, processes: set[str], given: GivingUp, skew_ms: int) -> bool:
    """Whether a fault may have kept the answer away. `processes`: of the worker."""
    before_ms, until_ms = given.call_ms + log.history.bounds.worker_timeout_ms + skew_ms, given.missed_ms + skew_ms
    drained_ms = given.drained_ms - before_ms
    reading_ms = max(drained_ms, given.missed_ms - READ_BACK_MS - before_ms)
    since_ms = drained_ms if log.blame.own(processes, reading_ms, until_ms) else reading_ms
    return log.blame.explains(processes, given.missed_ms - before_ms, until_ms) or bool(log.blame.around(since_ms, until_ms))


def waited_ms(log: Log, givings: dict[str, GivingUp], effect: Effect) -> int:
    """How long the incarnation that was granted the effect's attempt waited for an answer before it gave up; 0 if it did not."""
    for placed in log.runs.get(effect.run, ()):
        run = placed.record
        if (run.state, run.attempt) == (RunState.RUNNING, effect.attempt):
            given = givings.get(run.incarnation)
            return given.call_ms if given is not None else 0
    return 0
