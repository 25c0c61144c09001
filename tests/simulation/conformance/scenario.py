"""A scenario: a function of a bench that returns what it observed, and what that must be on any broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.conformance.bench import Bench

Outcome = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OneOf:
    """An observation that depends on who is faster, on the real broker too."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def __eq__(self, other: object) -> bool:
        return other in self.values

    def __hash__(self) -> int:
        return hash(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`restarts`: it stops the broker. `meddles`: it needs something between clients and broker."""

    name: str
    run: Callable[[Bench], Outcome]
    expected: Outcome
    restarts: bool = False
    meddles: bool = False


SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(
    *, restarts: bool = False, meddles: bool = False, **expected: Any
) -> Callable[[Callable[[Bench], Outcome]], Callable[[Bench], Outcome]]:
    """Register the function under its name, with what it must observe."""

    def register(run: Callable[[Bench], Outcome]) -> Callable[[Bench], Outcome]:
        name = run.__name__
        assert name not in SCENARIOS, f"two scenarios are called {name}"
        SCENARIOS[name] = Scenario(name=name, run=run, expected=expected, restarts=restarts, meddles=meddles)
        return run

    return register
