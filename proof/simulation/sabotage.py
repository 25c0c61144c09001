"""Controls: one rule of the design taken out of the real code at a time. A simulation that finds nothing then proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proof.simulation.controls.leader import LEADER
from proof.simulation.controls.workers import WORKERS
from proof.simulation.world import HONEST, Sabotage

SABOTAGES: Final[Mapping[str, Sabotage]] = {**LEADER, **WORKERS}


def sabotage_of(rule: str) -> Sabotage:
    """By the rule's name; "" takes nothing out. Raises KeyError."""
    return SABOTAGES[rule] if rule else HONEST
