"""What clients ask brokers: the requests of the Kafka protocol that dueline's clients send, reduced to what decides an outcome.

A request travels through `Network.call`, is answered by `Cluster.handle`, and may be answered later (joins, long fetches). Codes
are Kafka's own, as in `confluent_kafka.KafkaError`; 0 is none. Offsets, generations and epochs as in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Partition = tuple[str, int]
Headers = tuple[tuple[str, bytes], ...]


@dataclass(slots=True, kw_only=True)
class Request:
    """What goes to one broker. `client`: the client's id, for logs and for faults that choose a victim."""

    client: str = ""


@dataclass(slots=True, kw_only=True)
class Answer:
    """`code` of the whole answer."""

    code: int = 0


# -- the cluster ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Metadata(Request):
    """Who leads what. No topics named: all. Any broker answers."""

    topics: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class MetadataAnswer(Answer):
    """`leaders`: of each partition of the topics that exist, -1 while it has none. `ids`: of these topics. `nodes`: those up."""

    leaders: dict[Partition, int] = field(default_factory=dict)
    replicas: dict[Partition, tuple[int, ...]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    nodes: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class FindCoordinator(Request):
    """Which node coordinates a group, or a transactional id."""

    key: str
    transactional: bool


@dataclass(slots=True, kw_only=True)
class CoordinatorAnswer(Answer):
    """The node, -1 with COORDINATOR_NOT_AVAILABLE."""

    node: int = -1


@dataclass(slots=True, kw_only=True)
class CreateTopic(Request):
    """TOPIC_ALREADY_EXISTS when it does. Any broker answers."""

    topic: str
    partitions: int
    replicas: int
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class GrowTopic(Request):
    """CreatePartitions: so many in all. Any broker answers."""

    topic: str
    partitions: int


@dataclass(slots=True, kw_only=True)
class DescribeConfigs(Request):
    """Settings of a topic, or of the broker ("")."""

    topic: str


@dataclass(slots=True, kw_only=True)
class ConfigsAnswer(Answer):
    """Name -> value."""

    settings: dict[str, str] = field(default_factory=dict)


# -- the log -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class NewRecord:
    """A record on its way."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(slots=True, kw_only=True)
class Produce(Request):
    """One batch for one partition, acks=all. `pid` and `epoch` of an idempotent or transactional producer; `sequence`: the number
    of the batch's first record among those of this producer in this partition, for recognising a batch that was sent again."""

    partition: Partition
    records: tuple[NewRecord, ...]
    pid: int
    epoch: int
    sequence: int
    transactional: bool


@dataclass(slots=True, kw_only=True)
class ProduceAnswer(Answer):
    """The first record's offset and the append time of the batch, by the leader's clock."""

    offset: int = -1
    append_ms: int = -1


@dataclass(slots=True, kw_only=True)
class Fetch(Request):
    """Records from an offset. Answered at once when there is something, else after `max_wait_s`."""

    partition: Partition
    offset: int
    committed_only: bool
    max_wait_s: float
    limit: int = 500


@dataclass(slots=True, kw_only=True)
class Fetched:
    """A record as read."""

    offset: int
    append_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(slots=True, kw_only=True)
class FetchAnswer(Answer):
    """`records`, and `next_offset` behind all that was looked at: control markers, aborted and compacted records too. `end`: the
    last stable offset, or the high watermark when open transactions were read as well."""

    records: tuple[Fetched, ...] = ()
    next_offset: int = -1
    end: int = -1
    high_watermark: int = -1
    start: int = -1


@dataclass(slots=True, kw_only=True)
class ListOffset(Request):
    """`spec`: -2 the start, -1 the end. `committed_only`: the last stable offset as the end."""

    partition: Partition
    spec: int
    committed_only: bool = False


@dataclass(slots=True, kw_only=True)
class OffsetAnswer(Answer):
    """One offset."""

    offset: int = -1


# -- transactions --------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class InitProducerId(Request):
    """`transactional_id` "": for an idempotent producer; any broker answers. `pid` and `epoch`: of an owner that asks for a
    higher epoch (KIP-360), -1 of a new one; PRODUCER_FENCED when a newer owner has the id meanwhile."""

    transactional_id: str
    timeout_s: float = 60.0
    pid: int = -1
    epoch: int = -1


@dataclass(slots=True, kw_only=True)
class ProducerIdAnswer(Answer):
    """The producer id and its epoch."""

    pid: int = -1
    epoch: int = -1


@dataclass(slots=True, kw_only=True)
class AddPartitions(Request):
    """AddPartitionsToTxn."""

    transactional_id: str
    pid: int
    epoch: int
    partitions: tuple[Partition, ...]


@dataclass(slots=True, kw_only=True)
class AddOffsets(Request):
    """AddOffsetsToTxn."""

    transactional_id: str
    pid: int
    epoch: int
    group: str


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommit(Request):
    """Goes to the group's coordinator. Generation -1 with an empty member is the unfenced sentinel."""

    transactional_id: str
    pid: int
    epoch: int
    group: str
    generation: int
    member: str
    offsets: dict[Partition, int]


@dataclass(slots=True, kw_only=True)
class EndTxn(Request):
    """Commit or abort."""

    transactional_id: str
    pid: int
    epoch: int
    commit: bool


# -- groups --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class JoinGroup(Request):
    """Classic protocol. Answered when the rebalance has collected its members; a new member has member "", and is answered
    MEMBER_ID_REQUIRED with the id to ask again with. `owned`: what it holds (cooperative-sticky)."""

    group: str
    member: str
    topics: tuple[str, ...]
    owned: frozenset[Partition]
    session_timeout_s: float
    rebalance_timeout_s: float
    generation: int = -1


@dataclass(slots=True, kw_only=True)
class JoinAnswer(Answer):
    """The new generation, and the member's id."""

    generation: int = -1
    member: str = ""
    leader: bool = False


@dataclass(slots=True, kw_only=True)
class SyncGroup(Request):
    """Fetch the assignment of a generation; the cluster works out cooperative-sticky in the leader's place, once it has asked."""

    group: str
    member: str
    generation: int


@dataclass(slots=True, kw_only=True)
class SyncAnswer(Answer):
    """What the member shall hold. Partitions that another member has yet to give up are in nobody's answer (cooperative)."""

    partitions: frozenset[Partition] = frozenset()


@dataclass(slots=True, kw_only=True)
class GroupHeartbeat(Request):
    """REBALANCE_IN_PROGRESS asks for a join; UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION: it fell out."""

    group: str
    member: str
    generation: int


@dataclass(slots=True, kw_only=True)
class LeaveGroup(Request):
    """At once a rebalance for the others."""

    group: str
    member: str


@dataclass(slots=True, kw_only=True)
class OffsetFetch(Request):
    """Committed offsets of a group; waits for open transactions (`require_stable`): UNSTABLE_OFFSET_COMMIT."""

    group: str
    partitions: tuple[Partition, ...]


@dataclass(slots=True, kw_only=True)
class OffsetsAnswer(Answer):
    """Partitions without one are absent."""

    offsets: dict[Partition, int] = field(default_factory=dict)


# -- administration ------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class DescribeGroup(Request):
    """Goes to the group's coordinator."""

    group: str


@dataclass(slots=True, kw_only=True)
class GroupAnswer(Answer):
    """`state` as Kafka names it, "Dead" for a group that does not exist; `members`: what each holds."""

    state: str = "Dead"
    generation: int = 0
    members: dict[str, frozenset[Partition]] = field(default_factory=dict)
