"""Makes a failing plan smaller: as few faults as still make it fail, in as short a time (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from proof.simulation.setup import Setup

T = TypeVar("T")
SLACK_S = 60.0
SHORTEST_H = 120 / 3600


def shrunk(setup: Setup, fails: Callable[[Setup], bool], *, tries: int = 200) -> Setup:
    """A setup that still fails, with no fault that could be left out alone. `fails` is asked `tries` times at most."""
    left = [tries]

    def still(candidate: Setup) -> bool:
        if left[0] <= 0:
            return False
        left[0] -= 1
        return fails(candidate)

    best = replace(setup, plan=setup.faults())
    best = _shorter(best, still)
    plan = minimal(best.faults(), lambda faults: still(replace(best, plan=tuple(faults))))
    best = replace(best, plan=tuple(plan))
    return _shorter(best, still)


def _shorter(setup: Setup, fails: Callable[[Setup], bool]) -> Setup:
    """The shortest of a few times that still fails; faults after it fall away."""
    last_s = max((one.at_s + one.for_s for one in setup.faults()), default=0.0) + SLACK_S
    tried = (last_s / 3600, setup.hours / 2, setup.hours / 4, setup.hours / 8)
    for hours in sorted({hours for hours in tried if hours < setup.hours}):
        hours = max(round(hours, 4), SHORTEST_H)
        plan = tuple(one for one in setup.faults() if one.at_s < hours * 3600)
        candidate = replace(setup, hours=hours, plan=plan)
        if hours < setup.hours and fails(candidate):
            return candidate
    return setup


def minimal(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Zeller's ddmin: no chunk of the result can be left out. The whole is known to fail."""
    rest = list(items)
    chunks = 2
    while rest:
        size = max(1, len(rest) // chunks)
        for start in range(0, len(rest), size):
            candidate = rest[:start] + rest[start + size :]
            if fails(candidate):
                rest, chunks = candidate, max(2, chunks - 1)
                break
        else:
            if size == 1:
                return rest
            chunks = min(len(rest), chunks * 2)
    return rest
