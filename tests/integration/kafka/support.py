"""What the tests of the Kafka layer share: topics, members, writers, raw clients for the negative controls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from dueline.scheduler.core.ports import (
    Assignment,
    GroupOffsets,
    GroupReader,
    LogReader,
    Outgoing,
    Partition,
    Received,
    TransactionWriter,
)
from dueline.scheduler.kafka.client import ClientLog
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.topics import init_topics
from dueline.schemas.topics import Namespace, TopicSpec, catalogue

DEADLINE_S = 30.0
T = TypeVar("T")


@dataclass(kw_only=True)
class Site:
    """One namespace on one broker."""

    bootstrap_servers: str
    ns: Namespace
    cluster: KafkaCluster
    stack: ExitStack
    died: list[str] = field(default_factory=list)

    @property
    def control(self) -> Partition:
        return self.ns.control, 0

    @property
    def runs(self) -> Partition:
        return self.ns.runs, 0

    def member(self, *, max_poll_interval_s: float = 30.0, session_timeout_s: float | None = None) -> GroupReader:
        """A scheduler's membership, not yet joined."""
        reader = self.cluster.group_reader(
            self.ns.scheduler_group,
            self.ns.control,
            session_timeout_s=session_timeout_s,
            max_poll_interval_s=max_poll_interval_s,
        )
        self.stack.callback(reader.close)
        return reader

    def writer(self, *ids: str, **how: Any) -> TransactionWriter:
        """The leader's pair, or a writer under these ids."""
        writer = self.cluster.writers().open(ids or self.ns.leader_ids, **how)
        self.stack.callback(writer.close)
        return writer

    def reader(self, starts: Mapping[Partition, int]) -> LogReader:
        """A log reader of these partitions."""
        reader = self.cluster.log_reader("test")
        self.stack.callback(reader.close)
        reader.assign(starts)
        return reader

    def ledger(self) -> list[bytes]:
        """The values of all committed records of `runs`, once no open transaction stands before its end."""
        end = self.cluster.admin().end_offset(self.runs)
        return [one.value or b"" for one in self.cluster.admin().read_range(self.runs, 0, end, timeout_s=DEADLINE_S)]

    def raw(self, transactional_id: str, **own: Any) -> Producer:
        """A bare transactional client, initialised: what would happen without dueline's guards."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap_servers, "transactional.id": transactional_id, **own},
            logger=ClientLog(),
        )
        producer.init_transactions(DEADLINE_S)
        return producer

    def left_open(self, transactional_id: str, place: Partition | None = None) -> Producer:
        """A bare client with one record in an open transaction there (in `runs`)."""
        producer = self.raw(transactional_id)
        producer.begin_transaction()
        topic, number = place or self.runs
        producer.produce(topic, b"open", b"open", number)
        assert producer.flush(DEADLINE_S) == 0
        return producer

    def raw_consumer(self, group: str, **own: Any) -> Consumer:
        """A bare consumer."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": group, "enable.auto.commit": False, **own},
            logger=ClientLog(),
        )
        self.stack.callback(consumer.close)
        return consumer


@contextmanager
def site_on(bootstrap_servers: str, namespace: str) -> Iterator[Site]:
    """A namespace with its topics, one queue."""
    with ExitStack() as stack:
        died: list[str] = []
        config = KafkaConfig(bootstrap_servers=bootstrap_servers)
        cluster = KafkaCluster(config, client_name=f"{namespace}-test", die=lambda: died.append("died"))
        stack.callback(cluster.close)
        ns = Namespace(namespace)
        report = init_topics(cluster.kafka_admin(), ns, specs(ns))
        assert report.fit, report.problems
        yield Site(bootstrap_servers=bootstrap_servers, ns=ns, cluster=cluster, stack=stack, died=died)
        assert died == []


def specs(ns: Namespace) -> list[TopicSpec]:
    """Small topics for one broker."""
    return catalogue(ns, ["q"], partitions=2, replication_factor=1, min_insync_replicas=1, development=True)


def until(probe: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    """The probe's first value that is not None; the probe waits by itself."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        value = probe()
        if value is not None:
            return value
    raise AssertionError(f"{what}: not within {deadline_s} s")


def returns(call: Callable[[], object], within_s: float) -> bool:
    """Whether it does; what it raises is the test's failure."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the test's thread
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(within_s)
    if raised:
        raise raised[0]
    return not thread.is_alive()


def joined(reader: GroupReader, *, than: Assignment | None = None, partitions: int | None = None) -> Assignment:
    """Poll until an assignment newer than `than`, with so many partitions, was captured."""

    def probe() -> Assignment | None:
        assignment, _ = reader.poll(0.1, 10)
        if assignment is None or (than is not None and assignment.serial == than.serial):
            return None
        return assignment if partitions is None or len(assignment.partitions) == partitions else None

    return until(probe, f"an assignment of {partitions} partitions")


def take(reader: LogReader, count: int) -> list[Received]:
    """Poll until so many records came."""
    records: list[Received] = []

    def probe() -> bool | None:
        records.extend(reader.poll(0.1, 1000))
        return True if len(records) >= count else None

    until(probe, f"{count} records")
    return records


def position_of(reader: LogReader, partition: Partition, at_least: int) -> int:
    """Poll until the position is there."""

    def probe() -> int | None:
        reader.poll(0.05, 1000)
        position = reader.position(partition)
        return position if position >= at_least else None

    return until(probe, f"position {at_least} of {partition}")


def record(topic: str, value: bytes, partition: int = 0) -> Outgoing:
    return Outgoing(topic=topic, key=b"k", value=value, partition=partition)


def fence(assignment: Assignment, partition: Partition, offset: int = 0) -> GroupOffsets:
    return GroupOffsets(assignment=assignment, offsets={partition: offset})


def raw_transaction(producer: Producer, topic: str, value: bytes, offset: TopicPartition, metadata: object) -> int:
    """One transaction of a bare client. The error code that the offsets met; 0: none, and it was committed."""
    producer.begin_transaction()
    producer.produce(topic, value, b"k", partition=0)
    try:
        producer.send_offsets_to_transaction([offset], metadata, DEADLINE_S)
        producer.commit_transaction(DEADLINE_S)
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        producer.abort_transaction(DEADLINE_S)
        return error.code()
    return 0
