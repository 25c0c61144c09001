"""A simulated cluster, hosts, and dueline's own Kafka layer on simulated clients: what these tests run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dueline.scheduler.core.ports import Assignment, GroupOffsets, GroupReader, LogReader, Outgoing, Partition, Received
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.schemas.topics import Cleanup, TopicSpec
from proof.simulation.broker.cluster import Cluster
from proof.simulation.broker.settings import Settings
from proof.simulation.client.clients import constructors
from proof.simulation.kernel import Host, Kernel
from proof.simulation.network import Network
from proof.simulation.substitution import KAFKA, substituted, virtual

T = TypeVar("T")
RUN_S = 600.0
CONTROL = ("control", 0)
RUNS = ("runs", 0)


class Stage:
    """`hosts` are made with their first use; `run` carries out one function as a task of host "a" and returns what it did."""

    def __init__(self, seed: int = 1, nodes: int = 1, **settings: Any) -> None:
        self.kernel = Kernel(seed)
        self.cluster = Cluster(self.kernel, nodes, Settings(**{"min_session_s": 1.0, **settings}))
        self.network = Network(self.kernel, self.cluster)
        self.cluster.controller.on_death.append(self.network.node_died)
        self.nodes = nodes
        self.uncaught: list[BaseException] = []
        self._hosts: dict[str, Host] = {}

    def host(self, name: str) -> Host:
        """A machine."""
        return self._hosts.setdefault(name, Host(name))

    def names(self) -> dict[tuple[str, str], object]:
        """What stands in for the real modules' names."""
        names = virtual(self.kernel, lambda _, error: self.uncaught.append(error))
        made = constructors(self.kernel, self.network)
        return {**names, **{(f"{KAFKA}.client", name): each for name, each in made.items()}}

    def kafka(self, name: str = "test") -> KafkaCluster:
        """dueline's own."""
        servers = ",".join(f"broker-{node}:9092" for node in range(1, self.nodes + 1))
        return KafkaCluster(KafkaConfig(bootstrap_servers=servers), client_name=name, die=lambda: self.uncaught.append(Died()))

    def spawn(self, host: str, work: Callable[[], T]) -> list[T]:
        """A task; its result is the only item once it has ended."""
        results: list[T] = []
        task = self.kernel.spawn(self.host(host), lambda: results.append(work()), work.__name__)
        task.enders.append(lambda: self.uncaught.append(task.error) if task.error is not None else None)
        return results

    def run(self, work: Callable[[], T], limit_s: float = RUN_S) -> T:
        """Until it has ended."""
        results = self.spawn("a", work)
        end_s = self.kernel.now_s + limit_s
        while not results and not self.uncaught and self.kernel.now_s < end_s:
            self.kernel.run(self.kernel.now_s + 0.5)
        if self.uncaught:
            raise self.uncaught[0]
        assert results, f"not within {limit_s} s of virtual time"
        return results[0]

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass, in a task."""
        self.kernel.wait(seconds)

    def until(self, probe: Callable[[], T | None], what: str, limit_s: float = 60.0) -> T:
        """The probe's first value that is not None; in a task."""
        end_s = self.kernel.now_s + limit_s
        while self.kernel.now_s < end_s:
            value = probe()
            if value is not None:
                return value
            self.kernel.wait(0.01)
        raise AssertionError(f"{what}: not within {limit_s} s")

    # -- shorthand, all in a task --------------------------------------------------------------------------------------

    def topics(self, *names: str, partitions: int = 1, replicas: int = 1) -> None:
        """Create topics."""
        admin = self.kafka("setup").kafka_admin()
        for name in names:
            spec = TopicSpec(
                name=name, partitions=partitions, replication_factor=replicas, config={}, cleanup=Cleanup.DELETE, why=""
            )
            assert admin.create(spec)

    def member(self, group: str = "g", topic: str = "control", **how: Any) -> GroupReader:
        """A member with a session of 1 s."""
        return self.kafka().group_reader(group, topic, **{"session_timeout_s": 1.0, **how})

    def joined(self, reader: GroupReader, *, than: Assignment | None = None, partitions: int | None = None) -> Assignment:
        """Poll until an assignment newer than `than`, with so many partitions, was captured."""

        def probe() -> Assignment | None:
            assignment, _ = reader.poll(0.1, 10)
            if assignment is None or (than is not None and assignment.serial == than.serial):
                return None
            return assignment if partitions is None or len(assignment.partitions) == partitions else None

        return self.until(probe, f"an assignment of {partitions} partitions")

    def take(self, reader: LogReader, count: int) -> list[Received]:
        """Poll until so many records came."""
        records: list[Received] = []

        def probe() -> bool | None:
            records.extend(reader.poll(0.1, 1000))
            return True if len(records) >= count else None

        self.until(probe, f"{count} records, after {records}")
        return records

    def position(self, reader: LogReader, partition: Partition, at_least: int) -> int:
        """Poll until the position is there."""

        def probe() -> int | None:
            reader.poll(0.05, 1000)
            position = reader.position(partition)
            return position if position >= at_least else None

        return self.until(probe, f"position {at_least} of {partition}")

    def ledger(self) -> list[bytes]:
        """The committed values of `runs`."""
        admin = self.kafka("ledger").admin()
        return [one.value or b"" for one in admin.read_range(RUNS, 0, admin.end_offset(RUNS), timeout_s=60.0)]


class Died(Exception):
    """The watchdog ended the process."""


def record(value: bytes, topic: str = "runs", partition: int = 0) -> Outgoing:
    return Outgoing(topic=topic, key=b"k", value=value, partition=partition)


def fence(assignment: Assignment, offset: int = 0, partition: Partition = CONTROL) -> GroupOffsets:
    return GroupOffsets(assignment=assignment, offsets={partition: offset})


@contextmanager
def staged(seed: int = 1, nodes: int = 1, **settings: Any) -> Iterator[Stage]:
    """A stage whose names are in place while the block lasts."""
    made = Stage(seed, nodes, **settings)
    with substituted(made.names()):
        try:
            yield made
        finally:
            made.kernel.close()
