"""Questions about the log. Any thread. Each has a time-out; no answer is Unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    DescribeClusterResult,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from dueline.scheduler.core.ports import Partition, Received, Unavailable
from dueline.schemas.topics import TopicSpec

from . import client
from .clock import monotonic_s
from .config import KafkaConfig
from .errors import ConfigError, NotAuthorized
from .failure import AUTHORIZATION
from .outage import Outage
from .ranges import read_range
from .reader import unavailable

ANSWER_S: Final = 5.0
FIRST_S: Final = 1.0  # for a first answer, where asking anew may help more than waiting
GRACE_S: Final = 1.0  # the client's own time-out comes first and says more
PAUSE_S: Final = 0.1  # between two tries: a broker that is not the leader says so at once
A = TypeVar("A")

MOVED: Final = frozenset({
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
})

REFUSED_SETTINGS: Final = frozenset({
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_REQUEST,
})

_EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call] # the client's own gap
_LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MINIMUM_SESSION: Final = "group.min.session.timeout.ms"


class KafkaAdmin:
    """Port `LogAdmin`, and what `dueline init` asks besides."""

    def __init__(self, config: KafkaConfig, name: str, *, answer_s: float = ANSWER_S) -> None:
        self._config = config
        self._name = name
        self._answer_s = answer_s
        self._outage = Outage(name)
        self.client: AdminClient = client.admin(config, self._outage.note, client_id=name)

    def partitions(self, topic: str) -> int:
        """Number of partitions; 0 when the topic does not exist."""
        return self.shape(topic)[0]

    def shape(self, topic: str) -> tuple[int, int]:
        """Number of partitions, and replicas of the partition that has the fewest; (0, 0) when there is no topic."""
        description = self._describe(topic)
        if description is None:
            return 0, 0
        return len(description.partitions), min(len(one.replicas) for one in description.partitions)

    def leaderless(self, topic: str) -> frozenset[int]:
        """The topic's partitions that have no leader now. Asked of any broker: no controller is needed."""
        try:
            # All topics: asked for one by name, a broker that creates topics by itself would create it.
            found = self.client.list_topics(timeout=self._answer_s).topics.get(topic)
        except KafkaException as exception:
            raise unavailable(f"topic {topic!r}", exception) from None
        partitions = found.partitions if found is not None else {}
        return frozenset(number for number, one in partitions.items() if one.leader < 0)

    def topic_id(self, topic: str) -> str:
        """The topic's id, "" when it does not exist."""
        description = self._describe(topic)
        return str(description.topic_id) if description is not None else ""

    def start_offset(self, partition: Partition) -> int:
        """The first offset that still stands."""
        return self._offset(partition, _EARLIEST)

    def end_offset(self, partition: Partition) -> int:
        """The high watermark, also while a transaction stands open before it."""
        return self._offset(partition, _LATEST)

    def stable_offset(self, partition: Partition) -> int:
        """Where a read-committed reader stops."""
        return self._offset(partition, _LATEST, IsolationLevel.READ_COMMITTED)

    def open_from(self, partition: Partition) -> int | None:
        """Where the first transaction begins that stands open there. Raises Unavailable, nothing else."""
        topic, number = partition
        try:
            # All topics: asked for one by name, a broker that creates topics by itself would create it.
            found = self.client.list_topics(timeout=self._answer_s).topics.get(topic)
            if found is None or number not in found.partitions or found.partitions[number].leader < 0:
                raise Unavailable(f"partition {number} of {topic!r} is missing or has no leader")
            stable = self.stable_offset(partition)
            return stable if stable < self.end_offset(partition) else None
        except KafkaException as exception:
            raise unavailable(f"topic {topic!r}", exception) from None
        except NotAuthorized as error:
            raise Unavailable(str(error)) from None

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:
        """See `ranges.read_range`."""
        return read_range(self._config, f"{self._name}.range", partition, start, end, timeout_s=timeout_s)

    def topics(self, prefix: str, *, bound_s: float | None = None) -> list[str]:
        """Names of the topics that begin so, sorted. Raises Unavailable."""
        try:
            names = self.client.list_topics(timeout=self._answer_s if bound_s is None else bound_s).topics
        except KafkaException as exception:
            raise unavailable("the list of topics", exception) from None
        return sorted(name for name in names if name.startswith(prefix))

    def settings(self, topic: str) -> dict[str, str]:
        """Every setting in effect, defaults included. Raises Unavailable, NotAuthorized."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        asked = self.client.describe_configs([resource], request_timeout=self._answer_s)
        try:
            entries: dict[str, ConfigEntry] = self._ask(f"topic {topic!r}", lambda: asked[resource])
        except KafkaException as exception:
            raise unavailable(f"settings of topic {topic!r}", exception) from None
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def create(self, spec: TopicSpec) -> bool:
        """Whether it was made; False when it was there. Raises Unavailable, NotAuthorized, ConfigError."""
        new = NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=spec.replication_factor,
            config=dict(spec.config),
        )
        asked = self.client.create_topics([new], request_timeout=self._answer_s, operation_timeout=self._answer_s)
        try:
            self._ask(f"topic {spec.name!r}", lambda: asked[spec.name], operation="CREATE")
        except KafkaException as exception:
            error = client.kafka_error(exception)
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            if error.code() in REFUSED_SETTINGS:
                raise ConfigError(f"the cluster refuses to create topic {spec.name!r}: {error.str()}") from None
            raise unavailable(f"creation of topic {spec.name!r}", exception) from None
        return True

    def grow(self, topic: str, partitions: int) -> None:
        """Give an existing topic more partitions. Raises Unavailable, NotAuthorized, ConfigError."""
        asked = self.client.create_partitions(
            [NewPartitions(topic, partitions)], request_timeout=self._answer_s, operation_timeout=self._answer_s
        )
        try:
            self._ask(f"topic {topic!r}", lambda: asked[topic], operation="ALTER")
        except KafkaException as exception:
            error = client.kafka_error(exception)
            if error.code() in REFUSED_SETTINGS:
                raise ConfigError(f"the cluster refuses {partitions} partitions of topic {topic!r}: {error.str()}") from None
            raise unavailable(f"more partitions of topic {topic!r}", exception) from None

    def answers(self) -> bool:
        """Whether a broker does, now."""
        try:
            self._ask("cluster", lambda: self.client.describe_cluster(request_timeout=self._answer_s))
        except (Unavailable, KafkaException):
            return False
        except NotAuthorized:
            return True
        return True

    def minimum_session_s(self) -> float:
        """The shortest session time-out the brokers accept, seconds. Raises Unavailable, NotAuthorized."""
        cluster: DescribeClusterResult = self._ask(
            "cluster", lambda: self.client.describe_cluster(request_timeout=self._answer_s)
        )
        resource = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
        asked = self.client.describe_configs([resource], request_timeout=self._answer_s)
        entries: dict[str, ConfigEntry] = self._ask("cluster", lambda: asked[resource])
        entry = entries.get(MINIMUM_SESSION)
        if entry is None or not entry.value or not entry.value.isdigit():
            raise Unavailable(f"the broker does not tell its {MINIMUM_SESSION}")
        return int(entry.value) / 1000

    def _describe(self, topic: str) -> TopicDescription | None:
        deadline = monotonic_s() + self._answer_s
        try:
            return self._describe_within(min(FIRST_S, self._answer_s), topic)
        except Unavailable:
            # The client may wait for a controller that is gone, until its picture of the cluster is made anew.
            self.topics(topic, bound_s=max(FIRST_S, deadline - FIRST_S - monotonic_s()))
        return self._describe_within(max(FIRST_S, deadline - monotonic_s()), topic)

    def _describe_within(self, bound_s: float, topic: str) -> TopicDescription | None:
        asked = self.client.describe_topics(TopicCollection([topic]), request_timeout=bound_s)
        try:
            description: TopicDescription = self._ask(f"topic {topic!r}", lambda: asked[topic])
        except KafkaException as exception:
            if client.kafka_error(exception).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise unavailable(f"topic {topic!r}", exception) from None
        return description

    def _offset(
        self, partition: Partition, spec: OffsetSpec, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> int:
        deadline = monotonic_s() + self._answer_s
        bound_s = self._answer_s
        while True:
            try:
                offset = self._offset_within(bound_s, partition, spec, level)
                if offset >= 0:
                    return offset
                # When the leader does not answer, the client reports success without an offset (seen with 2.16).
                if monotonic_s() > deadline:
                    raise Unavailable(f"offsets of partition {partition[1]} of {partition[0]!r}: its leader did not answer")
            except KafkaException as exception:
                if client.kafka_error(exception).code() not in MOVED or monotonic_s() > deadline:
                    raise unavailable(f"offsets of partition {partition[1]} of {partition[0]!r}", exception) from None
            self.client.poll(PAUSE_S)
            # The client asks the leader it knew until its picture of the cluster is made anew.
            self.topics(partition[0], bound_s=max(PAUSE_S, deadline - monotonic_s()))
            bound_s = max(PAUSE_S, deadline - monotonic_s())

    def _offset_within(self, bound_s: float, partition: Partition, spec: OffsetSpec, level: IsolationLevel) -> int:
        asked = TopicPartition(*partition)
        answers = self.client.list_offsets({asked: spec}, isolation_level=level, request_timeout=bound_s)
        return int(self._ask(f"topic {partition[0]!r}", lambda: answers[asked]).offset)

    def _ask(self, resource: str, ask: Callable[[], Future[A]], *, operation: str = "DESCRIBE") -> A:
        """The answer. Raises Unavailable, NotAuthorized; KafkaException for what the caller knows better."""
        try:
            answer = ask().result(self._answer_s + GRACE_S)
        except FutureTimeout:
            raise Unavailable(f"{self._name}: no answer about {resource} in {self._answer_s:.0f} s") from None
        except KafkaException as exception:
            error = client.kafka_error(exception)
            if error.code() in AUTHORIZATION:
                raise NotAuthorized(resource, operation) from None
            if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                self._outage.away(error.str())
                raise unavailable(resource, exception) from None
            raise
        finally:
            self.client.poll(0)  # serves log lines and error events, which pile up otherwise
        self._outage.back()
        return answer
