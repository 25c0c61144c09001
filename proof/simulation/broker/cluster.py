"""A simulated Kafka cluster of one or three nodes, and the handles by which the world steers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from proof.simulation.broker import codes
from proof.simulation.broker.controller import Controller
from proof.simulation.broker.groups import OFFSETS_TOPIC, Groups
from proof.simulation.broker.log import Log
from proof.simulation.broker.node import Node, Reply
from proof.simulation.broker.seat import Seat
from proof.simulation.broker.settings import Settings
from proof.simulation.broker.storage import Storage
from proof.simulation.broker.transactions import Transactions
from proof.simulation.kernel import Host, Kernel
from proof.simulation.protocol import (
    AddOffsets,
    AddPartitions,
    Answer,
    ConfigsAnswer,
    CoordinatorAnswer,
    CreateTopic,
    DescribeConfigs,
    DescribeGroup,
    EndTxn,
    Fetch,
    FindCoordinator,
    GroupHeartbeat,
    GrowTopic,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    ListOffset,
    Metadata,
    MetadataAnswer,
    OffsetFetch,
    Partition,
    Produce,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)

TRANSACTIONS_TOPIC: Final = "__transaction_state"
Handler = Callable[[int, Any, Reply], None]


class Cluster:
    """`network.Brokers`. Nodes are numbered from 1 and run from the start; internal topics are replicated to all of them.
    `controller.on_death` takes `network.node_died`."""

    def __init__(self, kernel: Kernel, nodes: int = 1, settings: Settings | None = None) -> None:
        self._kernel = kernel
        self.settings = settings or Settings(min_insync=min(2, nodes))
        self.nodes = {number: Node(number) for number in range(1, nodes + 1)}
        self.controller = Controller(kernel, self.nodes, self.settings)
        self.storage = Storage(kernel, self.nodes, self.controller, self.settings, lambda *of: self.transactions.verify(*of))
        self.transactions = Transactions(
            kernel, self.settings, self._internal(TRANSACTIONS_TOPIC, self.settings.transaction_partitions), self
        )
        self.groups = Groups(
            kernel,
            self.settings,
            self._internal(OFFSETS_TOPIC, self.settings.offsets_partitions),
            self.storage.partitions_of,
            self.transactions.verify,
        )
        for seat in self.controller.seats.values():
            seat.elect(1 + seat.partition[1] % nodes, empty=True)
        self._handlers: dict[type[Request], Handler] = {
            Metadata: self._metadata,
            FindCoordinator: self._find_coordinator,
            DescribeConfigs: self._describe_configs,
            CreateTopic: lambda _, request, reply: reply(Answer(code=self.storage.create(request))),
            GrowTopic: lambda _, request, reply: reply(Answer(code=self.storage.grow(request))),
            Produce: self._deferred(self.storage.produce),
            Fetch: self.storage.fetch,
            ListOffset: self.storage.list_offset,
            InitProducerId: self._deferred(self.transactions.init),
            AddPartitions: self._deferred(self.transactions.add_partitions),
            AddOffsets: self._deferred(self.transactions.add_offsets),
            EndTxn: self._deferred(self.transactions.end),
            TxnOffsetCommit: self._deferred(self.groups.commit),
            JoinGroup: self._deferred(self.groups.join),
            SyncGroup: self._deferred(self.groups.sync),
            GroupHeartbeat: self.groups.heartbeat,
            LeaveGroup: self.groups.leave,
            DescribeGroup: self.groups.describe,
            OffsetFetch: self.groups.fetch,
        }

    # -- network.Brokers -------------------------------------------------------------------------------------------------

    def up(self, node: int) -> bool:
        """Whether the node's process runs; a frozen one does."""
        one = self.nodes.get(node)
        return one is not None and one.up

    def handle(self, node: int, request: Request, answer: Reply) -> None:
        """See `network.Brokers`."""
        one = self.nodes[node]
        if one.host.frozen:
            one.backlog.append((request, answer))
        elif one.up:
            self._handlers[type(request)](node, request, answer)

    # -- nodes -----------------------------------------------------------------------------------------------------------

    def kill(self, node: int) -> None:
        """SIGKILL. Its partitions move after `failover_s`; a single node's wait for it."""
        self.controller.kill(node)

    def start(self, node: int) -> None:
        """Start a node that is down; it answers after `start_s`, and is in sync after `catch_up_s` more."""
        self.controller.start(node)

    def shut_down(self, node: int) -> None:
        """SIGTERM: partitions move first."""
        self.controller.shut_down(node)

    def freeze(self, node: int) -> None:
        """SIGSTOP: requests wait; its partitions move after `failover_s` if it still stands then."""
        self.controller.freeze(node)

    def thaw(self, node: int) -> None:
        """SIGCONT: what waited is handled now; whether timers or requests come first is chance."""
        one = self.nodes[node]
        if not self.controller.thaw(node):
            return
        backlog, one.backlog = one.backlog, []
        outbox, one.outbox = one.outbox, []
        for reply, answer in outbox:
            reply(answer)

        def work() -> None:
            for request, reply in backlog:
                self.handle(node, request, reply)

        if self._kernel.random.random() < 0.5:
            work()
        else:
            incarnation = one.incarnation
            self._kernel.after(0.0, lambda: work() if one.incarnation == incarnation else None)

    def host(self, node: int) -> Host:
        """The node's machine as of now: a restart makes a new one with the same clock."""
        return self.nodes[node].host

    def set_clock(self, node: int, skew_ms: float, drift: float = 0.0) -> None:
        """Step the node's wall clock to that skew; `drift`: further milliseconds a second, from now on."""
        host = self.nodes[node].host
        host.skew_ms, host.drift, host.drift_from_s = skew_ms, drift, self._kernel.now_s

    def move(self, partition: Partition, node: int) -> None:
        """Move a partition's leadership in an orderly way, if the node is in sync. Raises KeyError."""
        self.controller.seats[partition].move(node)

    def move_coordinator(self, key: str, *, transactional: bool, node: int) -> None:
        """Move the coordinator of a group or transactional id."""
        self._coordinator(key, transactional).move(node)

    def coordinator(self, key: str, *, transactional: bool) -> int:
        """The node that coordinates it, -1 for none."""
        return self._coordinator(key, transactional).leader

    def leader(self, partition: Partition) -> int:
        """The node that leads it, -1 for none. Raises KeyError."""
        return self.controller.seats[partition].leader

    # -- topics and groups -----------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, config: dict[str, str] | None = None, replication: int | None = None
    ) -> None:
        """At once. `replication`: all nodes when not said. Raises ValueError."""
        replicas = len(self.nodes) if replication is None else replication
        request = CreateTopic(topic=name, partitions=partitions, replicas=replicas, settings=config or {})
        code = self.storage.create(request)
        if code:
            raise ValueError(f"topic {name!r}: code {code}")

    def delete_topic(self, name: str) -> None:
        """At once; a topic made anew has another id. Raises KeyError."""
        self.storage.delete(name)
        self.groups.forget_topic(name)

    def delete_group(self, name: str) -> int:
        """Code NONE, NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND. The generation begins at 1 again."""
        return self.groups.delete(name)

    def add_ghost(self, group: str, session_s: float) -> None:
        """The situation of librdkafka 5569: no rebalance of the group completes for that long."""
        self.groups.add_ghost(group, session_s)

    def delete_before(self, partition: Partition, offset: int) -> None:
        """Retention has run out up to there. Raises KeyError."""
        self.storage.delete_before(partition, offset)

    def compact(self, partition: Partition, up_to: int | None = None) -> int:
        """Let the cleaner run; the number of places that went. Raises KeyError."""
        return self.storage.compact(partition, up_to)

    def log(self, partition: Partition) -> Log:
        """What stands in a partition, for checks. Raises KeyError."""
        return self.storage.shelves[partition].log

    # -- transactions.Participants ---------------------------------------------------------------------------------------

    def seat_of(self, partition: Partition) -> Seat | None:
        """None: there is no such partition."""
        return self.controller.seats.get(partition)

    def mark(self, partition: Partition, pid: int, epoch: int, commit: bool) -> None:
        """Write a transaction's marker."""
        if partition[0] == OFFSETS_TOPIC:
            self.groups.mark(partition[1], pid, epoch, commit)
        else:
            self.storage.mark(partition, pid, epoch, commit)

    def offsets_partition(self, group: str) -> Partition:
        """Where the group's offsets are kept."""
        return self.groups.offsets_partition(group)

    # -- requests that any node answers ----------------------------------------------------------------------------------

    def _metadata(self, _: int, request: Metadata, reply: Reply) -> None:
        answer = MetadataAnswer(nodes=tuple(number for number, node in self.nodes.items() if node.up and not node.fenced))
        for name in request.topics or tuple(self.storage.topics):
            topic = self.storage.topics.get(name)
            if topic is not None:
                answer.ids[name] = topic.id
                for number in range(topic.partitions):
                    seat = self.controller.seats[name, number]
                    answer.leaders[name, number] = seat.leader
                    answer.replicas[name, number] = seat.replicas
        reply(answer)

    def _find_coordinator(self, _: int, request: FindCoordinator, reply: Reply) -> None:
        leader = self._coordinator(request.key, request.transactional).leader
        reply(CoordinatorAnswer(code=codes.NONE if leader >= 0 else codes.COORDINATOR_NOT_AVAILABLE, node=leader))

    def _describe_configs(self, _: int, request: DescribeConfigs, reply: Reply) -> None:
        if request.topic:
            topic = self.storage.topics.get(request.topic)
            reply(ConfigsAnswer(settings=dict(topic.settings)) if topic else ConfigsAnswer(code=codes.UNKNOWN_TOPIC_OR_PART))
            return
        told = self.settings
        reply(
            ConfigsAnswer(
                settings={
                    "group.min.session.timeout.ms": str(int(told.min_session_s * 1000)),
                    "group.max.session.timeout.ms": str(int(told.max_session_s * 1000)),
                    "transaction.max.timeout.ms": str(int(told.max_transaction_s * 1000)),
                    "transactional.id.expiration.ms": str(int(told.id_expiry_s * 1000)),
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(int(told.transaction_sweep_s * 1000)),
                    "offsets.retention.minutes": str(int(told.offsets_retention_s / 60)),
                    "message.max.bytes": str(told.max_message_bytes),
                    "min.insync.replicas": str(told.min_insync),
                    "auto.create.topics.enable": "false",
                }
            )
        )

    # -- steps -----------------------------------------------------------------------------------------------------------

    def _coordinator(self, key: str, transactional: bool) -> Seat:
        return self.transactions.seat(key) if transactional else self.groups.seat(key)

    def _deferred(self, handler: Handler) -> Handler:
        return lambda node, request, reply: handler(node, request, self.nodes[node].later(reply))

    def _internal(self, topic: str, partitions: int) -> list[Seat]:
        seats = []
        for number in range(partitions):
            seat = Seat(self._kernel, self.nodes, (topic, number), tuple(self.nodes), self.settings.min_insync, self.settings)
            self.controller.seats[topic, number] = seat
            seats.append(seat)
        return seats
