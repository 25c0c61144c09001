"""Who leads which partition, and who coordinates which group or transactional id, as one client knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.errors import NO_ERROR
from proof.simulation.client.wire import Wire
from proof.simulation.protocol import CoordinatorAnswer, FindCoordinator, Metadata, MetadataAnswer, Partition

FIRST_S: Final = 0.1  # between two looks for a leader, doubled up to
LONGEST_S: Final = 1.0
COORDINATOR_S: Final = 0.5

Found = Callable[[int], None]
OnMetadata = Callable[[int, MetadataAnswer | None], None]
Key = tuple[str, bool]
"""Name; whether it is a transactional id."""


@dataclass(slots=True, eq=False)
class _Sought:
    partition: Partition
    found: Found
    missing: Found
    since_s: float


class Map:
    """One client's knowledge; wrong until a broker says so, as in life."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._leaders: dict[Partition, int] = {}
        self._counts: dict[str, int] = {}
        self._sought: list[_Sought] = []
        self._looking = False
        self._wait_s = FIRST_S
        self._settle_s = wire.settings.seconds("topic.metadata.propagation.max.ms", 30_000)
        self._coordinators: dict[Key, int] = {}
        self._askers: dict[Key, list[Found]] = {}
        self._not_before_s: dict[Key, float] = {}
        wire.on_node_down.append(self._node_down)

    # -- leaders -----------------------------------------------------------------------------------------------------

    def leader(self, partition: Partition) -> int | None:
        """As known; None when it must be asked for."""
        return self._leaders.get(partition)

    def count(self, topic: str) -> int:
        """Partitions of a topic as known, 0 when it is not."""
        return self._counts.get(topic, 0)

    def lacks(self, partition: Partition) -> bool:
        """Whether the topic is known, and known not to have this partition."""
        return partition[1] >= self._counts.get(partition[0], partition[1] + 1)

    def seek_leader(self, partition: Partition, found: Found, missing: Found) -> None:
        """Call `found` with the node, at once when it is known; `missing` with a code when topic or partition do not exist."""
        node = self._leaders.get(partition)
        if node is not None:
            found(node)
            return
        self._sought.append(_Sought(partition, found, missing, self._wire.kernel.now_s))
        if not self._looking:
            self._looking, self._wait_s = True, FIRST_S
            self._look()

    def forget_leader(self, partition: Partition) -> None:
        """It does not lead any more, or its node does not answer."""
        self._leaders.pop(partition, None)

    def ask_metadata(self, topics: tuple[str, ...], on_end: OnMetadata, timeout_s: float | None = None) -> None:
        """Any broker's answer; it is learnt from as well."""

        def end(code: int, answer: MetadataAnswer | None) -> None:
            if code == NO_ERROR and answer is not None:
                self.learn(answer)
            on_end(code, answer)

        self._wire.ask(self._wire.any_node(), Metadata(topics=topics), end, timeout_s)

    def learn(self, answer: MetadataAnswer) -> None:
        """What a broker told."""
        for partition, node in answer.leaders.items():
            self._counts[partition[0]] = max(self._counts.get(partition[0], 0), partition[1] + 1)
            if node >= 0:
                self._leaders[partition] = node
            else:
                self._leaders.pop(partition, None)
        for node in answer.nodes:
            if node not in self._wire.nodes:
                self._wire.nodes.append(node)

    def _look(self) -> None:
        topics = tuple(sorted({one.partition[0] for one in self._sought}))
        self.ask_metadata(topics, self._looked)

    def _looked(self, code: int, answer: MetadataAnswer | None) -> None:
        sought, self._sought = self._sought, []
        if code != NO_ERROR or answer is None:
            self._sought = sought + self._sought
        else:
            for one in sought:
                self._settle(one, answer)
        if not self._sought:
            self._looking = False
            return
        self._wire.after(self._wait_s, self._look)
        self._wait_s = min(self._wait_s * 2, LONGEST_S)

    def _settle(self, one: _Sought, answer: MetadataAnswer) -> None:
        node = self._leaders.get(one.partition)
        if node is not None:
            one.found(node)
        elif one.partition[0] in answer.ids and one.partition not in answer.leaders:
            one.missing(KafkaError._UNKNOWN_PARTITION)
        elif one.partition[0] not in answer.ids and self._wire.kernel.now_s - one.since_s >= self._settle_s:
            one.missing(KafkaError.UNKNOWN_TOPIC_OR_PART)
        else:
            self._sought.append(one)

    def _node_down(self, node: int) -> None:
        for partition in [partition for partition, leader in self._leaders.items() if leader == node]:
            del self._leaders[partition]

    # -- coordinators ------------------------------------------------------------------------------------------------

    def coordinator(self, name: str, *, transactional: bool) -> int | None:
        """As known."""
        return self._coordinators.get((name, transactional))

    def seek_coordinator(self, name: str, found: Found, *, transactional: bool) -> None:
        """Call `found` with the node once it is known. Asks for as long as it takes."""
        key = (name, transactional)
        node = self._coordinators.get(key)
        if node is not None:
            found(node)
            return
        askers = self._askers.setdefault(key, [])
        askers.append(found)
        if len(askers) == 1:
            wait_s = self._not_before_s.get(key, 0.0) - self._wire.kernel.now_s
            self._wire.after(wait_s, lambda: self._find(key)) if wait_s > 0 else self._find(key)

    def forget_coordinator(self, name: str, *, transactional: bool, wait_s: float = COORDINATOR_S) -> None:
        """It is another one, or does not answer; ask again, not before `wait_s`."""
        key = (name, transactional)
        if self._coordinators.pop(key, None) is not None:
            self._not_before_s[key] = self._wire.kernel.now_s + wait_s

    def _find(self, key: Key) -> None:
        def end(code: int, answer: CoordinatorAnswer | None) -> None:
            if code != NO_ERROR or answer is None or answer.node < 0:
                self._wire.after(COORDINATOR_S, lambda: self._find(key))
                return
            self._coordinators[key] = answer.node
            for found in self._askers.pop(key, []):
                found(answer.node)

        self._wire.ask(self._wire.any_node(), FindCoordinator(key=key[0], transactional=key[1]), end)
