"""`confluent_kafka.admin.AdminClient`, simulated: the questions that `scheduler.kafka` asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from dueline.scheduler.kafka.vocabulary import (
    ConfigEntry,
    ConfigResource,
    IsolationLevel,
    KafkaError,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicCollection,
    TopicPartition,
)
from proof.simulation.client.errors import NO_ERROR, failure
from proof.simulation.client.map import Map
from proof.simulation.client.settings import Settings
from proof.simulation.client.wire import Wire
from proof.simulation.futures import Future
from proof.simulation.kernel import Kernel
from proof.simulation.network import Network
from proof.simulation.protocol import (
    Answer,
    ConfigsAnswer,
    CreateTopic,
    DescribeConfigs,
    GrowTopic,
    ListOffset,
    Metadata,
    MetadataAnswer,
    OffsetAnswer,
    Request,
)

REQUEST_S: Final = 60.0
AGAIN_S: Final = 0.1
EARLIEST, LATEST = -2, -1


class SimAdminClient:
    """Any task of its host. Futures, as the real one returns them."""

    def __init__(self, kernel: Kernel, network: Network, settings: dict[str, Any], *, logger: Any = None) -> None:
        self._settings = Settings(settings)
        self._kernel = kernel
        self._wire = Wire(kernel, network, self._settings, logger, f"{self._settings.text('client.id')}#admin-1")
        self._map = Map(self._wire)

    def poll(self, timeout: float = -1) -> int:
        """Serve log lines and error events."""
        served = self._wire.events.serve()
        if not served and timeout:
            self._wire.events.changed.wait(timeout if timeout > 0 else None)
            served = self._wire.events.serve()
        return served

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """`topics`: name -> description; `brokers`: number -> address. Raises KafkaException."""
        future: Future[MetadataAnswer] = Future(self._kernel)
        topics = (topic,) if topic else ()
        self._ask_any(Metadata(topics=topics), timeout if timeout >= 0 else REQUEST_S, future)
        answer = future.result()
        return SimpleNamespace(
            topics={
                name: SimpleNamespace(
                    topic=name,
                    error=None,
                    partitions={one[1]: SimpleNamespace(leader=node) for one, node in answer.leaders.items() if one[0] == name},
                )
                for name in answer.ids
            },
            brokers={node: SimpleNamespace(id=node) for node in answer.nodes},
        )

    def describe_topics(self, topics: TopicCollection, request_timeout: float = REQUEST_S) -> dict[str, Future[Any]]:
        """Partitions, replicas, id."""
        return {name: self._describe(name, request_timeout) for name in topics.topic_names}

    def describe_cluster(self, request_timeout: float = REQUEST_S) -> Future[Any]:
        """`nodes`."""

        def describe(answer: MetadataAnswer) -> Any:
            return SimpleNamespace(nodes=[SimpleNamespace(id=node) for node in sorted(answer.nodes)])

        return self._mapped(Metadata(topics=("",)), describe, request_timeout)

    def describe_configs(
        self, resources: Sequence[ConfigResource], request_timeout: float = REQUEST_S
    ) -> dict[ConfigResource, Future[Any]]:
        """Every setting of a topic or broker."""

        def describe(answer: ConfigsAnswer) -> Any:
            return {name: ConfigEntry(name, value) for name, value in answer.settings.items()}

        return {
            one: self._mapped(
                DescribeConfigs(topic=one.name if one.restype == ResourceType.TOPIC else ""), describe, request_timeout
            )
            for one in resources
        }

    def create_topics(
        self, topics: Sequence[NewTopic], request_timeout: float = REQUEST_S, operation_timeout: float = REQUEST_S
    ) -> dict[str, Future[Any]]:
        """One future a topic."""
        del operation_timeout
        return {
            one.topic: self._mapped(
                CreateTopic(
                    topic=one.topic,
                    partitions=one.num_partitions,
                    replicas=one.replication_factor,
                    settings={name: str(value) for name, value in (one.config or {}).items()},
                ),
                lambda _: None,
                request_timeout,
            )
            for one in topics
        }

    def create_partitions(
        self, new_partitions: Sequence[NewPartitions], request_timeout: float = REQUEST_S, operation_timeout: float = REQUEST_S
    ) -> dict[str, Future[Any]]:
        """One future a topic."""
        del operation_timeout
        return {
            one.topic: self._mapped(
                GrowTopic(topic=one.topic, partitions=one.new_total_count), lambda _: None, request_timeout
            )
            for one in new_partitions
        }

    def list_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetSpec],
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        request_timeout: float = REQUEST_S,
    ) -> dict[TopicPartition, Future[Any]]:
        """Of the start or the end. The leader is the one known so far: a code of the broker that it moved is the answer."""
        committed_only = isolation_level == IsolationLevel.READ_COMMITTED
        return {
            one: self._offset(one, EARLIEST if spec._value == EARLIEST else LATEST, committed_only, request_timeout)
            for one, spec in offsets.items()
        }

    # -- requests ----------------------------------------------------------------------------------------------------

    def _describe(self, name: str, timeout_s: float) -> Future[Any]:
        def describe(answer: MetadataAnswer) -> Any:
            if name not in answer.ids:
                raise failure(KafkaError.UNKNOWN_TOPIC_OR_PART)
            parts = sorted(one for one in answer.leaders if one[0] == name)
            return SimpleNamespace(
                name=name,
                topic_id=answer.ids[name],
                partitions=[SimpleNamespace(id=one[1], replicas=list(answer.replicas.get(one, ()))) for one in parts],
            )

        return self._mapped(Metadata(topics=(name,)), describe, timeout_s)

    def _offset(self, asked: TopicPartition, spec: int, committed_only: bool, timeout_s: float) -> Future[Any]:
        future: Future[Any] = Future(self._kernel)
        one = (asked.topic, asked.partition)
        until_s = self._kernel.now_s + timeout_s

        def end(code: int, answer: OffsetAnswer | None) -> None:
            if future.done():
                return
            if code == NO_ERROR and answer is not None:
                future.set_result(ListOffsetsResultInfo(answer.offset, -1, -1))
            else:
                future.set_exception(failure(code))

        def found(node: int) -> None:
            request = ListOffset(partition=one, spec=spec, committed_only=committed_only)
            if not future.done():
                self._wire.ask(node, request, end, max(0.001, until_s - self._kernel.now_s))

        self._wire.after(timeout_s, lambda: end(KafkaError._TIMED_OUT, None))
        self._map.seek_leader(one, found, lambda code: end(code, None))
        return future

    def _mapped(self, request: Request, make: Callable[[Any], Any], timeout_s: float) -> Future[Any]:
        asked: Future[Any] = Future(self._kernel)
        made: Future[Any] = Future(self._kernel)

        def end(_: Future[Any]) -> None:
            try:
                made.set_result(make(asked.result(0)))
            except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
                made.set_exception(error)

        asked.add_done_callback(end)
        self._ask_any(request, timeout_s, asked)
        return made

    def _ask_any(self, request: Request, timeout_s: float, future: Future[Any]) -> None:
        """Any broker; another try while the time lasts when none could be reached."""
        until_s = self._kernel.now_s + timeout_s

        def end(code: int, answer: Answer | None) -> None:
            if code == NO_ERROR and answer is not None:
                if isinstance(answer, MetadataAnswer):
                    self._map.learn(answer)
                future.set_result(answer)
            elif code == KafkaError._TRANSPORT and self._kernel.now_s + AGAIN_S < until_s:
                self._wire.after(AGAIN_S, send)
            else:
                future.set_exception(failure(code))

        def send() -> None:
            self._wire.ask(self._wire.any_node(), request, end, max(0.001, until_s - self._kernel.now_s))

        send()
