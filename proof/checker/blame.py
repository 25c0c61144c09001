"""Which faults may be blamed for what happened to a process: those that struck it, its links, or a broker, and in its time.

A fault on other processes is no excuse. One without a target hit the cluster: it counts as one on a broker if its kind is one of
CLUSTER. That the machine gave nobody a turn for the worker time-out (STARVED) is no fault, and explains as much as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from proof.history.acts import STARVED, Fault, Life, Role
from proof.history.history import History

CLUSTER: Final = frozenset({"coordinator-move", "open-transaction"})
"""Kinds that name no target and keep brokers from answering, or readers from reading."""


STOPS: Final = frozenset({"term", "term-worker", "rolling-workers"})
"""Kinds that ask a process to stop: it ends what it does, for as long as it may, and then leaves it. They last until it ended."""


class Blame:
    """The faults of a history that struck."""

    def __init__(self, history: History) -> None:
        lives = history.noted.lives
        self._timeout_ms = history.bounds.worker_timeout_ms
        self._processes = {life.process for life in lives if life.role != Role.BROKER}
        brokers = {life.process for life in lives if life.role == Role.BROKER}
        self._faults = [(lasting(fault, lives), frozenset(ends_of(fault.target))) for fault in history.noted.struck]
        self._around = [fault for fault, ends in self._faults if self._is_around(fault, ends, brokers)]

    def own(self, processes: Iterable[str], begin_ms: int, end_ms: int) -> list[Fault]:
        """Faults on one of these processes or its links that were active, or came, in [begin, end]."""
        names = set(processes)
        return [fault for fault, ends in self._faults if names & ends and _meets(fault, begin_ms, end_ms)]

    def around(self, begin_ms: int, end_ms: int) -> list[Fault]:
        """The same of brokers, where no other process is named."""
        return [fault for fault in self._around if _meets(fault, begin_ms, end_ms)]

    def untargeted(self, begin_ms: int, end_ms: int) -> list[Fault]:
        """The same of those that name nobody: they hit the cluster, or all processes of a kind."""
        return [fault for fault, ends in self._faults if not ends and _meets(fault, begin_ms, end_ms)]

    def explains(self, processes: Iterable[str], begin_ms: int, end_ms: int) -> bool:
        """Whether any of these did."""
        return bool(self.own(processes, begin_ms, end_ms) or self.around(begin_ms, end_ms))

    def _is_around(self, fault: Fault, ends: frozenset[str], brokers: set[str]) -> bool:
        if fault.kind == STARVED:
            return fault.ended_ms - fault.began_ms >= self._timeout_ms
        if self._processes & ends:
            return False
        return bool(ends & brokers) or fault.kind in CLUSTER


def lasting(fault: Fault, lives: Iterable[Life]) -> Fault:
    """The fault, up to the end of the lives that it asked to end."""
    if fault.kind not in STOPS:
        return fault
    asked = set(ends_of(fault.target))
    ends = [life.ended_ms for life in lives if life.process in asked and life.began_ms <= fault.began_ms <= life.ended_ms]
    return replace(fault, ended_ms=max([fault.ended_ms, *ends]))


def latest(faults: Iterable[Fault]) -> str:
    """The kind of the one that began last; "" if there is none."""
    found = list(faults)
    return max(found, key=lambda fault: fault.began_ms).kind if found else ""


def ends_of(target: str) -> list[str]:
    """The processes that a fault's target names: one, several ("b1,b2"), or the two ends of a link ("w1>b2")."""
    return [part.strip() for part in re.split("[<>,]", target) if part.strip()]


def _meets(fault: Fault, begin_ms: int, end_ms: int) -> bool:
    return fault.began_ms <= end_ms and fault.ended_ms >= begin_ms
