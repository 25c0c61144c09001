"""Topics and partitions that a transaction could not write: left alone, so that everybody else's jobs go on.

What stands in them is derived from the ledger: an offer is made again, on another partition, when nobody answers it, and a
signal is sent again until a heartbeat agrees. So leaving them out loses time and nothing else. Dead letters: `letters.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.core.ports import Clock, LogAdmin, Partition, Unavailable
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

UNUSABLE_S = 30.0
"""How long a topic that could not be written is left alone; a partition that has a leader and fails again and again, too."""

ASK_S = 5.0
"""How often the broker is asked whether a partition has a leader again; how long one that has is left alone at first, since
its broker may only have been slow."""

FORGOTTEN_S = 120.0
"""How long after it was left alone a partition that fails again rests twice as long."""


@dataclass(slots=True)
class _Mark:
    since_s: float
    rest_s: float
    leaderless: bool = False


class Unusable:
    """What could not be written. Outlives the term that it ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._topics: dict[str, float] = {}
        self._partitions: dict[Partition, _Mark] = {}
        self._last: dict[Partition, _Mark] = {}  # also those that are used again
        self._asked_s = float("-inf")

    def mark(self, topic: str) -> None:
        """The topic could not be written just now: it is missing, or a right is."""
        self._topics[topic] = self._clock.monotonic_s()

    def mark_partitions(self, partitions: Iterable[Partition]) -> None:
        """These did not answer in time: they may have no leader, and others with them."""
        self._asked_s = float("-inf")
        now_s = self._clock.monotonic_s()
        for partition in partitions:
            last = self._last.get(partition)
            again = last is not None and now_s - last.since_s < FORGOTTEN_S
            rest_s = min(2 * last.rest_s, UNUSABLE_S) if last is not None and again else ASK_S
            self._partitions[partition] = self._last[partition] = _Mark(now_s, rest_s)

    def __contains__(self, topic: str) -> bool:
        since = self._topics.get(topic)
        if since is not None and self._clock.monotonic_s() - since > UNUSABLE_S:
            del self._topics[topic]
            return False
        return since is not None

    def has_partition(self, topic: str, number: int) -> bool:
        """Whether this partition is left alone."""
        return (topic, number) in self._partitions

    def ask(self, admin: LogAdmin, topics: Iterable[str]) -> None:
        """While something is left alone: ask at once, and then now and then, what of these topics has no leader. A partition
        that has one and still did not take records is tried again after a while."""
        now_s = self._clock.monotonic_s()
        if not self._partitions or now_s - self._asked_s < ASK_S:
            return
        for topic in sorted({*topics, *(topic for topic, _ in self._partitions)}):
            try:
                self._look(topic, admin.leaderless(topic))
            except Unavailable:
                break  # asked again in a moment; what is marked stays so
        self._asked_s = self._clock.monotonic_s()

    def _look(self, topic: str, leaderless: frozenset[int]) -> None:
        now_s = self._clock.monotonic_s()
        self._partitions.update({(topic, number): _Mark(now_s, ASK_S, leaderless=True) for number in leaderless})
        for partition, mark in list(self._partitions.items()):
            if partition[0] != topic or partition[1] in leaderless:
                continue
            if mark.leaderless or now_s - mark.since_s >= mark.rest_s:
                del self._partitions[partition]
                log.info("%s[%d] is written again", *partition, extra={"action": "partition_usable"})

    def takes_letters(self, namespace: Namespace) -> bool:
        """Whether `rejected` can be written."""
        return namespace.rejected not in self and not self.has_partition(namespace.rejected, 0)

    # -- what is done without them ---------------------------------------------------------------------------------------

    def reachable(self, fleet: Fleet, namespace: Namespace) -> Fleet:
        """The workers that can be offered something and told something, with the partitions on which they can be."""
        if not self._partitions:
            return fleet
        workers = {
            incarnation: replace(
                worker,
                partitions=[n for n in worker.partitions if not self.has_partition(namespace.dispatch(worker.queue), n)],
            )
            for incarnation, worker in fleet.workers.items()
            if not self.has_partition(namespace.signals, worker.home)
        }
        return Fleet(workers=workers, queues=fleet.queues)

    def without(self, decision: Decision, namespace: Namespace) -> Decision:
        """The decision without the offers and signals that cannot be written."""
        if not self._partitions:
            return decision
        offers = [
            (record, number)
            for record, number in zip(decision.dispatches, decision.partitions, strict=True)
            if not self.has_partition(namespace.dispatch(record.job.queue), number)
        ]
        words = [
            (word, home)
            for word, home in zip(decision.signals, decision.homes, strict=True)
            if not self.has_partition(namespace.signals, home)
        ]
        return replace(
            decision,
            dispatches=[record for record, _ in offers],
            partitions=[number for _, number in offers],
            signals=[word for word, _ in words],
            homes=[home for _, home in words],
        )
