"""When work is late, and when it only waited its turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.schemas.run import Run
from proof.checker.check import check
from proof.checker.starts import QUIET_MS
from proof.history.acts import Fault
from proof.history.history import History
from proof.history.verdict import Kind
from tests.unit.proof.checker.edit import LEDGER, chains, changed, record_of
from tests.unit.proof.checker.world import BOUNDS, START_MS, World, job

KEY = "a@2026-11-30T00:53:25Z"
DUE_MS = START_MS + 5_000


def made() -> History:
    """A due time every second for twenty seconds; nothing goes wrong."""
    return World(1).at(0.1, job("a", "1s", overlap="allow", dispatch_ahead="0s")).history(20)


def grant_of(history: History) -> int:
    return next(place for place, run in chains(history)[KEY] if run.state == "running")


def granted_at(history: History, at_ms: int) -> History:
    return changed(history, LEDGER, grant_of(history), append_ms=at_ms)


def under(history: History, *targets: str, struck: bool = True) -> History:
    """A short fault just before it was due."""
    faults = [
        Fault(kind="cut", target=target, began_ms=DUE_MS - 500, ended_ms=DUE_MS + 100, struck=struck) for target in targets
    ]
    return replace(history, noted=replace(history.noted, faults=tuple(faults)))


def late(history: History) -> str:
    return " | ".join(each.what for each in check(history).violations if (each.kind, each.subject) == (Kind.LATE, KEY))


def test_in_quiet_times_it_has_twenty_five_seconds() -> None:
    allowed = DUE_MS + QUIET_MS + BOUNDS.skew_ms
    assert late(granted_at(made(), allowed)) == ""
    assert "nothing was disturbed" in late(granted_at(made(), allowed + 1))


@pytest.mark.parametrize("target", ["s1", "w0", "w1>b1", "b1"])
def test_a_fault_before_it_makes_the_time_unquiet_if_it_struck(target: str) -> None:
    later = granted_at(made(), DUE_MS + QUIET_MS + BOUNDS.skew_ms + 1)
    assert "nothing was disturbed" not in late(under(later, target))
    assert "nothing was disturbed" in late(under(later, target, struck=False))


def test_it_does_not_wait_while_nothing_is_granted_and_nothing_is_disturbed() -> None:
    disturbed = under(made(), "b1")
    runs = [(entry, record_of(entry)) for entry in disturbed.log[LEDGER]]
    last = max(entry.append_ms for entry, run in runs if isinstance(run, Run) and run.state == "running")
    assert late(granted_at(disturbed, last + QUIET_MS)) == ""
    assert "nothing was granted" in late(granted_at(disturbed, last + QUIET_MS + 1))


def test_figures_of_work() -> None:
    verdict = check(made())
    assert len(verdict.granted_ms) == len(verdict.begun_ms) == verdict.due_times
    assert 0 <= min(verdict.granted_ms) < min(verdict.begun_ms)
    assert max(verdict.begun_ms) < BOUNDS.lateness_ms
