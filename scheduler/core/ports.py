"""The ports: all that leader and worker logic know of Kafka, clock and chance.

`dueline.scheduler.kafka` implements them on a real broker; a simulated log and a virtual clock can stand in without a
change to the logic. Expected outcomes of a write are exceptions of the four kinds below, since each ends a protocol
step; whatever else is raised is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

Partition = tuple[str, int]
"""A topic and a partition number."""

EARLIEST: Final = -2
LATEST: Final = -1
"""Where to start reading, when not at an offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A record as read: append time in milliseconds by the clock of its partition's broker."""

    topic: str
    partition: int
    offset: int
    append_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to write. `partition` -1: by the hash of the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int = -1
    derived: bool = False  # can be written again later: it is given up soon, so that others need not wait for its partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """Where a written record stands, in the order written."""

    topic: str
    partition: int
    offset: int
    append_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a group member held at one moment, captured in the assignment callback as one value (L1).

    `metadata` is opaque; it is never read from the client again. `serial` differs for every capture of the process.
    A value with `generation` < 0, an empty member id or metadata captured apart from the partitions never exists.
    """

    serial: int
    generation: int
    member: str
    partitions: frozenset[Partition]
    metadata: object


class WriteError(Exception):
    """A transaction did not commit, or may not have. The message says which and why."""


class Fenced(WriteError):
    """A newer owner of the transactional id exists, or the client failed for good: this writer is over (L8)."""


class Refused(WriteError):
    """The broker refused the group generation; the transaction was aborted. Capture another generation first."""


class Aborted(WriteError):
    """The transaction was aborted, by `before_commit` or a failed delivery. Nothing is visible. The writer is over (L7).

    `topic`: the one that could not be written, where that was the reason; `definite`: it does not exist, or a right to it is
    missing, so that another try ends the same. `partitions`: those that did not answer in time. `refused`: places, among the
    records given, of those that the broker or the client will not take; `too_large`: those of them refused for their size, with
    what travelled in the same batch.
    """

    topic: str = ""
    definite: bool = False
    partitions: tuple[Partition, ...] = ()
    refused: tuple[int, ...] = ()
    too_large: tuple[int, ...] = ()


class Doubtful(WriteError):
    """Nobody knows whether the commit happened. The writer is over (L7): read back, never remember."""


class Unavailable(Exception):
    """The broker did not answer in time. Try again; nothing was lost."""


class Expired(Exception):
    """The log starts later than the offset asked for."""


class Clock(Protocol):
    """Time as an argument."""

    def wall_ms(self) -> int:
        """The host's wall clock: a witness, never a source of decisions."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only grow, counting suspend where the host can."""
        ...


class LogReader(Protocol):
    """Reads assigned partitions, in order within each. One thread uses it."""

    def assign(self, starts: Mapping[Partition, int]) -> None:
        """Read exactly these partitions from these offsets (or EARLIEST, LATEST)."""
        ...

    def poll(self, timeout_s: float, limit: int) -> list[Received]:
        """Wait for one record, then take what is there. [] when nothing came. Broker away: [] too, logged once."""
        ...

    def position(self, partition: Partition) -> int:
        """The next offset to read: passes control markers, aborted and compacted records. -1 while unknown."""
        ...

    def close(self) -> None:
        """Release the client."""
        ...


class GroupReader(Protocol):
    """A member of a consumer group: election on `control`, claims on a dispatch topic. One thread uses it."""

    def poll(self, timeout_s: float, limit: int) -> tuple[Assignment | None, list[Received]]:
        """Serve rebalances, then the records with the assignment they came under."""
        ...

    def assignment(self) -> Assignment | None:
        """The value captured last; None after a loss or revocation of every partition, or before the first join."""
        ...

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The group's committed offsets; absent: none. Raises Unavailable."""
        ...

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from here."""
        ...

    def close(self) -> None:
        """Leave the group, so that another member takes over at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets:
    """Offsets to commit in a transaction under a captured assignment. Each offset is >= 0 (L2)."""

    assignment: Assignment
    offsets: Mapping[Partition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfencedOffset:
    """An offset, 0, of a partition that the group does not consume, under no membership. It moves nobody's; its transaction takes
    part in the group's offsets, and so ends what a broker forgot to end there of an older one of the same producer."""

    group: str
    partition: Partition


BeforeCommit = Callable[[Sequence[Delivered]], str | None]
"""Given what was delivered, a reason to abort instead of committing, or None."""


class TransactionWriter(Protocol):
    """Writes transactions under transactional ids initialised once. Not for two threads at a time.

    `write` returns only after the commit was acknowledged beyond doubt. After any exception the writer is over, except
    after Refused for a claim writer that was opened with `survives_refusal=True`.
    """

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> list[Delivered]:
        """One transaction; each group is flushed before the next (L5). Raises WriteError kinds."""
        ...

    @property
    def producers(self) -> int:
        """How many take turns: so many transactions in a row, and each has written one."""
        ...

    def serve(self) -> None:
        """Hear what the client has to say. Call it about once a second while nothing is written, and never during a write: what
        is heard late is taken for news, and what is never heard piles up."""
        ...

    def survivor(self) -> TransactionWriter | None:
        """After Doubtful or Aborted, of a pair: a writer that goes on with the other producer, which had no part in it (W6)."""
        ...

    def close(self) -> None:
        """Abandon the clients. Leaves nothing open that `init_transactions` of a successor would not abort."""
        ...


class WriterFactory(Protocol):
    """Opens writers."""

    def open(
        self,
        transactional_ids: Sequence[str],
        *,
        doubt_bound_s: float | None = None,
        survives_refusal: bool = False,
        transaction_timeout_s: float | None = None,
    ) -> TransactionWriter:
        """New producers, all ids initialised (fencing older owners), taking turns (L11). Raises Fenced, Unavailable."""
        ...


class PlainWriter(Protocol):
    """acks=all, idempotent, no transaction. Any thread."""

    def send(self, record: Outgoing, on_delivery: Callable[[Delivered | None, str], None] | None = None) -> None:
        """Queue it; `on_delivery(delivered, "")` or `(None, error)` is called later, maybe from another thread."""
        ...

    def flush(self, timeout_s: float) -> int:
        """Wait; how many are still on their way."""
        ...

    def close(self) -> None:
        """Flush briefly and release the client."""
        ...


class LogAdmin(Protocol):
    """Questions about the log. Any thread. All raise Unavailable."""

    def partitions(self, topic: str) -> int:
        """Number of partitions; 0 when the topic does not exist."""
        ...

    def leaderless(self, topic: str) -> frozenset[int]:
        """The topic's partitions that have no leader now, so that nothing can be written to them."""
        ...

    def topic_id(self, topic: str) -> str:
        """The topic's id, "" when it does not exist."""
        ...

    def start_offset(self, partition: Partition) -> int:
        """The first offset that still stands."""
        ...

    def end_offset(self, partition: Partition) -> int:
        """The read-uncommitted end (high watermark): never the last stable offset."""
        ...

    def stable_offset(self, partition: Partition) -> int:
        """Where a read-committed reader stops: the end, or the beginning of the first transaction that is open there."""
        ...

    def open_from(self, partition: Partition) -> int | None:
        """Where the first transaction begins that stands open in the partition, and read-committed readers stop; None when none
        does. Without topic, leader or right nobody can tell: Unavailable."""
        ...

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:
        """Committed records of [start, end): ends when the read-committed position passed `end`, so it waits for open
        transactions before it. Raises Expired when the log starts after `start` (and start < end), Unavailable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceResult:
    """An incarnation was fenced: read-uncommitted ends of its home partition taken after that."""

    incarnation: str
    attempts_end: int
    steps_end: int


class Fencer(Protocol):
    """Fences dead incarnations outside the leader loop (W7), several in parallel."""

    def start(self, incarnation: str, transactional_ids: Sequence[str], home: int, group: str) -> None:
        """Begin; a second call for one under way does nothing. Retries by itself until it succeeds. `group`: its queue's."""
        ...

    def results(self) -> list[FenceResult]:
        """Those done since the last call."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contacted:
    """A stretch of monotonic time, seconds, in which every probe of a partition was answered in time.

    `until_s`: when the last of them was asked. `end`: the high watermark it was told: what readers could have until then stands
    below it. What waits for a replica that is in sync and hangs does not, until that replica is dropped.
    """

    since_s: float
    until_s: float
    end: int


class Contact(Protocol):
    """Whether the broker has answered for a partition all along: silence of others counts only while it did."""

    def contacted(self) -> Contacted:
        """The latest stretch; it grows while probes are answered. Before the first answer it is empty."""
        ...

    def close(self) -> None:
        """Stop probing."""
        ...


class Kafka(Protocol):
    """One cluster as one process sees it: opens everything else. Opening needs no network unless it says so."""

    def group_reader(
        self,
        group: str,
        topic: str,
        *,
        session_timeout_s: float | None = None,
        max_poll_interval_s: float = 30.0,
    ) -> GroupReader:
        """Join a group (classic protocol, cooperative-sticky, dynamic member); without a committed offset it starts at
        the earliest record. `session_timeout_s` None: the broker's minimum."""
        ...

    def log_reader(self, name: str, *, uncommitted: bool = False) -> LogReader:
        """A reader of assigned partitions, read-committed. `uncommitted`: somebody's open transaction holds nothing back, and
        what is aborted is read, too: for topics that dueline writes outside transactions."""
        ...

    def writers(self) -> WriterFactory:
        """The factory of transaction writers."""
        ...

    def plain_writer(self, name: str) -> PlainWriter:
        """A writer without transactions."""
        ...

    def admin(self) -> LogAdmin:
        """Questions about the log."""
        ...

    def fencer(self, attempts: str, steps: str) -> Fencer:
        """Fences workers and takes the ends of their home partitions of these two topics."""
        ...

    def contact(self, partition: Partition) -> Contact:
        """Asks this partition's broker for its end, about twice a second."""
        ...
