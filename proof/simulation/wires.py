"""Faults of the network: links that are cut, lose one way or delay; requests that are held back, repeated or never answered."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proof.simulation.kernel import Host
from proof.simulation.network import Meddling, Network
from proof.simulation.plan import FaultKind, Planned
from proof.simulation.protocol import AddOffsets, EndTxn, Request

LINKS: Final = frozenset({FaultKind.CUT, FaultKind.LOSE_REQUESTS, FaultKind.LOSE_ANSWERS, FaultKind.DELAY})
MEDDLING: Final = frozenset({
    FaultKind.END_HELD, FaultKind.END_REPEATED, FaultKind.END_ANSWER_LOST, FaultKind.END_RETRIED, FaultKind.OFFSETS_HELD,
})  # fmt: skip
SHARE: Final = 0.5
"""Of the requests of a meddling fault's target that are meddled with, ..."""
EVERY: Final = "every"
"""... or all of them, if this is how it acts: for a plan that means one request."""


@dataclass(frozen=True, slots=True)
class _Wire:
    process: str
    node: int


class Wires:
    """What is wrong with the network now. Faults may overlap on one link: it is as bad as all of them together."""

    def __init__(self, network: Network, nodes: Sequence[int], seed: int) -> None:
        self._network, self._nodes = network, nodes
        self._dice = random.Random(f"meddlers of {seed}")
        self._links: dict[_Wire, list[Planned]] = {}
        self._meddling: list[Planned] = []
        network.meddlers.append(self._meddle)

    def begin(self, fault: Planned) -> None:
        """It holds from now on."""
        if fault.kind in MEDDLING:
            self._meddling.append(fault)
            return
        for wire in self._wires(fault):
            self._links.setdefault(wire, []).append(fault)
            self._set(wire)
            if fault.kind is FaultKind.CUT:
                self._network.broke(Host(wire.process), wire.node)

    def end(self, fault: Planned) -> None:
        """It holds no more."""
        if fault.kind in MEDDLING:
            self._meddling.remove(fault)
            return
        for wire in self._wires(fault):
            self._links[wire].remove(fault)
            self._set(wire)

    def _wires(self, fault: Planned) -> Iterable[_Wire]:
        process, _, node = fault.target.partition(">")
        return [_Wire(process, number) for number in (self._nodes if node == "*" else [int(node)])]

    def _set(self, wire: _Wire) -> None:
        link, faults = self._network.link(Host(wire.process), wire.node), self._links[wire]
        kinds = {fault.kind for fault in faults}
        link.cut = FaultKind.CUT in kinds
        link.lose_requests = FaultKind.LOSE_REQUESTS in kinds
        link.lose_answers = FaultKind.LOSE_ANSWERS in kinds
        link.delay_s = max((fault.value for fault in faults if fault.kind is FaultKind.DELAY), default=0.0)

    def _meddle(self, host: Host, _node: int, request: Request) -> Meddling | None:
        if not self._meddling or not isinstance(request, EndTxn | AddOffsets):
            return None
        for fault in self._meddling:
            wanted = AddOffsets if fault.kind is FaultKind.OFFSETS_HELD else EndTxn
            meant = fault.target == host.name and isinstance(request, wanted)
            if meant and (fault.act == EVERY or self._dice.random() < SHARE):
                return _meddling(fault)
        return None


def _meddling(fault: Planned) -> Meddling:
    match fault.kind:
        case FaultKind.END_REPEATED:
            return Meddling(copy_after_s=fault.value)
        case FaultKind.END_ANSWER_LOST:
            return Meddling(lose_answer=True)
        case FaultKind.END_RETRIED:
            return Meddling(hold_s=fault.value, break_after_s=min(0.02, fault.value / 2))
    return Meddling(hold_s=fault.value)
