"""The topic catalogue: the names a namespace uses, each topic's settings and the reason for them.

What a topic may differ in and what is refused is decided in `dueline.schemas.topic_check`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dueline.schemas.errors import NameInvalid
from dueline.schemas.names import check_name

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

MAX_RECORD_BYTES: Final = 2 * 1024 * 1024
"""`max.message.bytes` of the topics with payloads, results and tracebacks, and producers' `message.max.bytes`."""
MAX_INPUT_BYTES: Final = 1024 * 1024
"""`max.message.bytes` of the topics that users write: what fits there fits into a job version."""
HISTORY_MS: Final = 30 * DAY_MS
"""How long `steps` and `attempts` keep records by default. A run resumed later than that is failed(steps_expired)."""
TOMBSTONE_MS: Final = 7 * DAY_MS
"""How long a deletion stays readable in a compacted topic; a scheduler away for less sees every one of them."""

MAX_NAMESPACE: Final = 64
_RESERVED: Final = frozenset({"dispatch", "workers", "worker", "leader", "schedulers"})
_LONGEST_SUFFIX: Final = len(".dispatch.")
_MAX_TOPIC_NAME: Final = 249  # Kafka's own limit


class Cleanup(StrEnum):
    """A topic's cleanup policy. `compact,delete` is never ours: it drops live keys when a segment ages out."""

    COMPACT = "compact"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Namespace:
    """The prefix of one deployment's topics, groups and transactional ids. Raises NameInvalid."""

    name: str = "dueline"

    def __post_init__(self) -> None:
        check_name("namespace", self.name, MAX_NAMESPACE)
        for part in self.name.split("."):
            if not part:
                raise NameInvalid(f"namespace {self.name!r} has an empty part: remove the extra dot")
            if part in _RESERVED:
                raise NameInvalid(
                    f"namespace {self.name!r}: the part {part!r} could meet a topic, group or transactional id of "
                    f"another namespace; choose another word"
                )

    @property
    def jobs(self) -> str:
        """Job definitions, written by users."""
        return f"{self.name}.jobs"

    @property
    def control(self) -> str:
        """Commands, written by users; its consumer group is the election."""
        return f"{self.name}.control"

    @property
    def job_versions(self) -> str:
        """What holds for each job from which instant."""
        return f"{self.name}.job-versions"

    @property
    def runs(self) -> str:
        """The ledger."""
        return f"{self.name}.runs"

    @property
    def signals(self) -> str:
        """The leader's words to the holders of claims."""
        return f"{self.name}.signals"

    @property
    def attempts(self) -> str:
        """Claims, returns and ends of attempts."""
        return f"{self.name}.attempts"

    @property
    def steps(self) -> str:
        """Completed steps."""
        return f"{self.name}.steps"

    @property
    def workers(self) -> str:
        """Heartbeats."""
        return f"{self.name}.workers"

    @property
    def checkpoints(self) -> str:
        """The leader's checkpoints."""
        return f"{self.name}.checkpoints"

    @property
    def rejected(self) -> str:
        """Dead letters."""
        return f"{self.name}.rejected"

    @property
    def dispatch_prefix(self) -> str:
        """How the name of every queue's dispatch topic begins."""
        return f"{self.name}.dispatch."

    def dispatch(self, queue: str) -> str:
        """A queue's offers. Raises NameInvalid for a queue that cannot be part of a topic name."""
        check_queue(queue)
        topic = f"{self.dispatch_prefix}{queue}"
        if len(topic) > _MAX_TOPIC_NAME:
            raise NameInvalid(f"topic name {topic!r} has {len(topic)} characters, Kafka allows {_MAX_TOPIC_NAME}")
        return topic

    @property
    def scheduler_group(self) -> str:
        """The consumer group on `control` whose member with the partition leads."""
        return f"{self.name}.schedulers"

    def worker_group(self, queue: str) -> str:
        """The consumer group of a queue's workers on its dispatch topic."""
        return f"{self.name}.workers.{check_queue(queue)}"

    @property
    def leader_ids(self) -> tuple[str, str]:
        """The leader's pair of transactional ids: fixed, so that a successor fences its predecessor."""
        return (f"{self.name}.leader.a", f"{self.name}.leader.b")

    def worker_ids(self, incarnation: str) -> tuple[str, str, str]:
        """An incarnation's transactional ids: claims, then the pair for steps and finishes."""
        check_name("incarnation", incarnation, 2 * MAX_NAMESPACE + MAX_NAMESPACE)
        stem = f"{self.name}.worker.{incarnation}"
        return (f"{stem}.claim", f"{stem}.a", f"{stem}.b")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """How a topic is created and what is accepted of one that exists."""

    name: str
    partitions: int
    cleanup: Cleanup
    config: Mapping[str, str]  # what it is created with
    why: str
    floors: Mapping[str, int] = field(default_factory=dict)  # settings that must be at least this; -1 there: no limit
    state: bool = False  # losing a record of it breaks the promise
    exact_partitions: bool = True
    replication_factor: int = 3
    development: bool = False  # a lower replication is accepted


def check_queue(queue: str) -> str:
    """The queue's name, if it can be part of a topic name. Raises NameInvalid."""
    return check_name("queue", queue)


def home_partition(worker: str, partitions: int) -> int:
    """The partition of `signals`, `attempts` and `steps` that a worker uses in every life: crc32 of its id."""
    return zlib.crc32(worker.encode()) % partitions


def catalogue(
    namespace: Namespace,
    queues: Iterable[str],
    *,
    partitions: int = 8,
    replication_factor: int = 3,
    min_insync_replicas: int = 2,
    history_ms: int = HISTORY_MS,
    development: bool = False,
) -> list[TopicSpec]:
    """Every topic of a namespace with these queues.

    `partitions` holds for the topics of workers and queues. `replication_factor` and `min_insync_replicas` are also the
    floor below which an existing topic is refused, unless `development`. `history_ms` must be longer than the longest
    run lives. Raises NameInvalid (queue) or ValueError (a number that cannot be).
    """
    _check_numbers(partitions, replication_factor, min_insync_replicas, history_ms)

    def compacted(name: str, why: str, *, limit: int = MAX_RECORD_BYTES, state: bool = True) -> TopicSpec:
        # Heartbeats pile up and are worth nothing once replaced: their segments are short, and so are their tombstones.
        segment_ms, tombstone_ms = (DAY_MS, TOMBSTONE_MS) if state else (HOUR_MS, HOUR_MS)
        return TopicSpec(
            name=name, partitions=1, cleanup=Cleanup.COMPACT, why=why, state=state,
            config={
                **common, "cleanup.policy": Cleanup.COMPACT.value, "max.message.bytes": str(limit),
                "delete.retention.ms": str(tombstone_ms),
                # Only closed segments are compacted, so a quiet topic must close its own now and then.
                "segment.ms": str(segment_ms),
            },
            floors={"delete.retention.ms": min(DAY_MS, tombstone_ms), "max.message.bytes": limit, **insync},
            replication_factor=replication_factor, development=development,
        )  # fmt: skip

    def deleted(
        name: str, why: str, *, count: int, keep_ms: int, floor_ms: int,
        limit: int = MAX_RECORD_BYTES, exact: bool = True,
    ) -> TopicSpec:  # fmt: skip
        return TopicSpec(
            name=name, partitions=count, cleanup=Cleanup.DELETE, why=why, exact_partitions=exact,
            config={
                **common, "cleanup.policy": Cleanup.DELETE.value, "max.message.bytes": str(limit),
                "retention.ms": str(keep_ms), "retention.bytes": "-1",
                # Only closed segments are deleted, so a segment must not stay open much longer than records are kept.
                "segment.ms": str(max(HOUR_MS, min(DAY_MS, keep_ms // 4))),
            },
            floors={"retention.ms": floor_ms, "max.message.bytes": limit, **insync},
            replication_factor=replication_factor, development=development,
        )  # fmt: skip

    common = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": str(min_insync_replicas)}
    insync = {"min.insync.replicas": min_insync_replicas}
    ns = namespace
    specs = [
        compacted(ns.jobs, "job definitions by users; one partition, since clients in different languages partition "
                  "the same key differently", limit=MAX_INPUT_BYTES),
        deleted(ns.control, "commands by users; its consumer group elects the leader", count=1,
                keep_ms=7 * DAY_MS, floor_ms=DAY_MS, limit=MAX_INPUT_BYTES),
        compacted(ns.job_versions, "what held for each job from which instant on"),
        compacted(ns.runs, "the ledger: one partition is one total order of every decision"),
        deleted(ns.signals, "grants, declines, recalls and cancels; derived from the ledger, so hours are enough",
                count=partitions, keep_ms=6 * HOUR_MS, floor_ms=HOUR_MS),
        deleted(ns.attempts, "claims and ends of attempts; kept longer than the longest run lives",
                count=partitions, keep_ms=history_ms, floor_ms=history_ms),
        deleted(ns.steps, "completed steps; kept longer than the longest run lives, or it could not be resumed",
                count=partitions, keep_ms=history_ms, floor_ms=history_ms),
        compacted(ns.workers, "heartbeats, the latest of each incarnation", limit=MAX_INPUT_BYTES, state=False),
        compacted(ns.checkpoints, "the leader's state at some offset, so that a start reads only the tail"),
        deleted(ns.rejected, "inputs that were refused, with error and coordinates", count=1,
                keep_ms=30 * DAY_MS, floor_ms=DAY_MS),
    ]  # fmt: skip
    for queue in sorted(set(queues)):
        why = f"offers of attempts to the workers of queue {queue}; derived from the ledger, so a day is enough"
        specs.append(deleted(ns.dispatch(queue), why, count=partitions, keep_ms=DAY_MS, floor_ms=HOUR_MS, exact=False))
    return specs


def _check_numbers(partitions: int, replication_factor: int, min_insync_replicas: int, history_ms: int) -> None:
    if partitions < 1:
        raise ValueError(f"partitions is {partitions}: at least 1")
    if replication_factor < 1:
        raise ValueError(f"replication factor is {replication_factor}: at least 1")
    if not 1 <= min_insync_replicas <= replication_factor:
        raise ValueError(
            f"min.insync.replicas is {min_insync_replicas}: from 1 to the replication factor, {replication_factor}"
        )
    if history_ms < HOUR_MS:
        raise ValueError(f"history is {history_ms} ms: at least an hour, and longer than the longest run lives")
