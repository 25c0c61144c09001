"""(b) How late the *work* was: from the due time to the first grant, and to the first effect.

Asked of runs that nothing but the cluster kept waiting: due by their schedule and found in time, and never put off by another run
(`overlap`, `limit`, `catch-up-rate`), by `jitter`, or by a version that came between (`recalled`). They are figures, with two
bounds on the first grant. A backlog is worked off as fast as the machine does it, in no order that is promised; what is late is:

- *forgotten*: nothing disturbed a scheduler, a broker or a worker from `lateness_ms` before the due time to the grant, and that
  came later than QUIET_MS;
- *stalled*: while it waited, nothing at all was granted for QUIET_MS without a disturbance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dueline.schemas.run import Run, RunState, Trigger
from proof.checker.disturbance import Disturbances
from proof.checker.reading import Log, Placed
from proof.history.verdict import Kind, Violation

QUIET_MS: Final = 25_000
PUT_OFF: Final = frozenset({"overlap", "limit", "catch-up-rate", "jitter", "recalled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The start of one such run. `effect_ms`: its first effect, -1 if it has none that was noted."""

    key: str
    due_ms: int
    grant: Placed[Run]
    effect_ms: int


def starts_of(log: Log) -> list[Start]:
    """Of all such runs that were granted, due up to `judged_ms`."""
    effects: dict[str, int] = {}
    for effect in log.history.noted.effects:
        effects[effect.run] = min(effect.at_ms, effects.get(effect.run, effect.at_ms))
    found = []
    for key, chain in log.runs.items():
        first = chain[0].record
        if first.trigger != Trigger.SCHEDULE or first.due_ms > log.history.judged_ms:
            continue
        grant = next((placed for placed in chain if placed.record.state == RunState.RUNNING), None)
        if grant is None:
            continue
        before = [placed.record for placed in chain if placed.entry.offset < grant.entry.offset]
        if not any(run.state == RunState.WAITING and run.reason in PUT_OFF for run in before):
            found.append(Start(key=key, due_ms=first.due_ms, grant=grant, effect_ms=effects.get(key, -1)))
    return found


def check_starts(log: Log) -> Iterator[Violation]:
    """First grants later than anything explains."""
    disturbances = Disturbances(log.history, workers=True)
    stalls = _stalls(log, disturbances)
    for start in starts_of(log):
        granted_ms = start.grant.entry.append_ms
        late_ms, skew_ms = granted_ms - start.due_ms, log.skew.at(start.due_ms, granted_ms)
        wrong = ""
        if late_ms > QUIET_MS + skew_ms and disturbances.quiet(start.due_ms - disturbances.lateness_ms, granted_ms):
            wrong = "and nothing was disturbed"
        elif any(start.due_ms <= begin and end <= granted_ms for begin, end in stalls):
            wrong = "and nothing was granted for a while before, without a disturbance"
        if wrong:
            what = f"its work was granted {late_ms} ms after its due time, {wrong}"
            yield Violation(kind=Kind.LATE, subject=start.key, what=what, evidence=start.grant.where)


def _stalls(log: Log, disturbances: Disturbances) -> list[tuple[int, int]]:
    """Stretches between two grants of anything that are longer than QUIET_MS and undisturbed."""
    records = (placed for chain in log.runs.values() for placed in chain)
    times = sorted(placed.entry.append_ms for placed in records if placed.record.state == RunState.RUNNING)
    return [(one, other) for one, other in pairwise(times) if other - one > QUIET_MS and disturbances.quiet(one, other)]
