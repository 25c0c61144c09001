"""A hundred hours of a cluster, half of them under all kinds of faults: the promise holds in every one."""

from __future__ import annotations

import json

import pytest

from tests.simulation.hours import Hours


@pytest.mark.slow
@pytest.mark.timeout(2400)  # about five minutes on two free processors; they are seldom free
def test_a_hundred_hours_hold(hours: Hours) -> None:
    found = json.loads(hours.report())
    assert found["broken"] == {}
    assert found["virtual_hours"] >= 100
    assert found["runs"] > 25_000
    assert sum(found["faults"].values()) > 4_000
