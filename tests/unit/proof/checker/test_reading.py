"""Who ends an open transaction by a record that says nothing had one to end: a fault had left it, at any time before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proof.checker.check import check
from proof.history.acts import STARVED, Fault
from tests.unit.proof.checker.crew import ATTEMPTS, STEPS
from tests.unit.proof.checker.histories import plain
from tests.unit.proof.checker.honest import REJECTED
from tests.unit.proof.checker.impostors import ending
from tests.unit.proof.checker.world import BOUNDS, START_MS

ENDED_MS = START_MS + 8_000


def asked(topic: str, fault: Fault) -> bool:
    history = plain(1)
    noted = replace(history.noted, faults=(fault,))
    found = [each.what for each in check(ending(replace(history, noted=noted), (topic, 0), ENDED_MS)).violations]
    assert found in ([], ["ends an open transaction, and no fault had left one"])
    return bool(found)


@pytest.mark.parametrize(
    ("kind", "target", "worker_s", "leader_s"),
    [
        ("broker-kill", "b1", False, False),
        ("open-transaction", "", False, False),  # a stranger's
        ("records-expired", "", True, True),
        (STARVED, "machine", False, False),
        ("kill", "w1", False, True),
        ("cut", "w1>b1", False, True),
        ("kill", "s1", True, False),
        ("cut", "s1>b1", True, False),
    ],
)
def test_what_may_have_left_a_transaction_open(kind: str, target: str, worker_s: bool, leader_s: bool) -> None:
    """Where workers write, and where the leader does."""
    fault = Fault(kind=kind, target=target, began_ms=START_MS, ended_ms=START_MS + BOUNDS.worker_timeout_ms)
    assert [asked(topic, fault) for topic in (STEPS, ATTEMPTS, REJECTED)] == [worker_s, worker_s, leader_s]
    missed = replace(fault, struck=False)
    assert [asked(topic, missed) for topic in (STEPS, ATTEMPTS, REJECTED)] == [True, True, True]


@pytest.mark.parametrize(("late_ms", "late"), [(BOUNDS.skew_ms, False), (BOUNDS.skew_ms + 1, True)])
def test_it_came_before(late_ms: int, late: bool) -> None:
    began_ms = ENDED_MS + late_ms
    assert asked(STEPS, Fault(kind="broker-kill", target="b1", began_ms=began_ms, ended_ms=began_ms)) is late
