"""The workers as their heartbeats show them, and where an offer can be placed. Not ledger state: a new leader reads it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heapreplace

from dueline.scheduler.core.state import State
from dueline.schemas.work import Heartbeat, WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Workers that may be offered work: running, heard of lately. `queues`: queue -> partitions of its dispatch topic."""

    workers: Mapping[str, Heartbeat] = field(default_factory=dict)  # incarnation -> last heartbeat
    queues: Mapping[str, int] = field(default_factory=dict)


class Placement:
    """Free slots during one round. Each place given lowers what is left."""

    def __init__(self, fleet: Fleet, state: State) -> None:
        self._free: dict[str, int] = {}
        self._partitions: dict[str, list[int]] = {}
        self._heaps: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for incarnation, worker in fleet.workers.items():
            size = fleet.queues.get(worker.queue, 0)
            partitions = [number for number in worker.partitions if 0 <= number < size]  # one that is none would stop the leader
            if worker.state != WorkerState.RUNNING or not partitions or incarnation_ended(state, incarnation):
                continue
            room = worker.slots + worker.prefetch - (state.held.get(incarnation) or 0)
            load = {part: state.offers.get((worker.queue, part)) or 0 for part in partitions}
            self._partitions[incarnation] = [part for _, part in sorted((n, part) for part, n in load.items())]
            self._free[incarnation] = room - sum(load.values())
            for handler in worker.handlers:
                self._heaps.setdefault((worker.queue, handler), []).append((-self._free[incarnation], incarnation))
        for heap in self._heaps.values():
            heapify(heap)

    def handlers(self, queue: str) -> list[str]:
        """The handlers that workers of the queue have, busy or not."""
        return [handler for name, handler in self._heaps if name == queue]

    def has_room(self, queue: str, handler: str) -> bool:
        """Whether an offer could be placed."""
        return self._least_busy(queue, handler) is not None

    def any_room(self) -> bool:
        """Whether any worker has a free slot at all."""
        return any(free > 0 for free in self._free.values())

    def take(self, queue: str, handler: str) -> int | None:
        """A partition whose owner has the handler and a free slot, or None."""
        incarnation = self._least_busy(queue, handler)
        if incarnation is None:
            return None
        self._free[incarnation] -= 1
        parts = self._partitions[incarnation]
        parts.append(parts.pop(0))
        return parts[-1]

    def _least_busy(self, queue: str, handler: str) -> str | None:
        heap = self._heaps.get((queue, handler))
        while heap:
            free, incarnation = heap[0]
            now_free = self._free[incarnation]
            if -free == now_free:
                return incarnation if now_free > 0 else None
            heapreplace(heap, (-now_free, incarnation))
        return None


def incarnation_ended(state: State, incarnation: str) -> bool:
    """Whether a fence was intended or done: nothing more is granted to it."""
    return state.fences.get(incarnation) is not None
