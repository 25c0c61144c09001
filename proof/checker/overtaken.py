"""(d) Nothing begins in an attempt once a later one was granted: a worker that was cut off stopped by itself before (W8).

A step or body that was under way then may still have its effect; one that was called only after the grant stands in the log (and
the skew) may not. A process that was made to stand still, or got no turn from the machine, between the worker time-out before the
grant and the call is not asked: it may have done so between its look at the lease and the call. Only effects that say when they
began are asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dueline.schemas.run import RunState
from proof.checker.reading import Log
from proof.history.acts import STARVED, Effect
from proof.history.verdict import Kind, Violation

STANDSTILLS: Final = frozenset({"freeze", "stick", "failpoint", "hang", "stop-worker-shorter", "stop-worker-longer"})
"""Kinds of faults in which a process, or its Python, stands still and then goes on."""


def check_overtaken(log: Log) -> Iterator[Violation]:
    """Effects of attempts that were over before they began."""
    grants: dict[str, list[tuple[int, int]]] = {}
    for key, chain in log.runs.items():
        running = [placed for placed in chain if placed.record.state == RunState.RUNNING]
        grants[key] = [(placed.record.attempt, placed.entry.append_ms) for placed in running]
    for effect in log.history.noted.effects:
        later = [granted_ms for attempt, granted_ms in grants.get(effect.run, ()) if attempt > effect.attempt]
        if effect.began_ms < 0 or not later:
            continue
        if effect.began_ms <= min(later) + log.skew.at(effect.began_ms, min(later)) or _struck(log, effect, min(later)):
            continue
        after_ms = effect.began_ms - min(later)
        what = f"step {effect.step!r} of attempt {effect.attempt} began {after_ms} ms after a later attempt was granted"
        yield Violation(
            kind=Kind.DOUBLED, subject=effect.run, what=what, evidence=f"effect at {effect.at_ms} in {effect.process}"
        )


def _struck(log: Log, effect: Effect, granted_ms: int) -> bool:
    """Whether the process stood still in the time in question."""
    timeout_ms, skew_ms = log.history.bounds.worker_timeout_ms, log.skew.at(granted_ms, effect.began_ms)
    since_ms, until_ms = granted_ms - timeout_ms - skew_ms, effect.began_ms + skew_ms
    stood = (
        fault
        for fault in log.history.noted.struck
        if fault.kind == STARVED or (fault.target == effect.process and fault.kind in STANDSTILLS)
    )
    return any(fault.began_ms <= until_ms and fault.ended_ms >= since_ms for fault in stood)
