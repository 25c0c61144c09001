"""One or more real schedulers in threads against a real broker, with the user's side of the topics at hand.

Ports can be wrapped (`RigKafka`), for the rules that a real broker cannot be brought to break at will.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from dueline.scheduler.core.ports import (
    EARLIEST,
    BeforeCommit,
    Clock,
    Delivered,
    GroupOffsets,
    Kafka,
    LogReader,
    Outgoing,
    Received,
    TransactionWriter,
    UnfencedOffset,
)
from dueline.scheduler.kafka.clock import SystemClock
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.topics import init_topics
from dueline.scheduler.leader import Scheduler, SchedulerSettings
from dueline.schemas.codec import Record, decode, encode, headers
from dueline.schemas.command import Command, Rejected
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier, Positions
from dueline.schemas.run import Run, Summary
from dueline.schemas.topics import Namespace, catalogue
from tests.broker import TestBroker

DEADLINE_S = 30.0


class Rig:
    """A namespace with its topics, a user, and readers of what the leader wrote."""

    def __init__(
        self, bootstrap_servers: str, namespace: str, queues: Sequence[str] = ("default",), *, copies: int = 1
    ) -> None:
        self.namespace = Namespace(namespace)
        self.cluster = KafkaCluster(KafkaConfig(bootstrap_servers=bootstrap_servers), client_name="rig")
        topics = catalogue(
            self.namespace, queues, partitions=4, replication_factor=copies, min_insync_replicas=max(1, copies - 1),
            development=True,
        )  # fmt: skip
        report = init_topics(self.cluster.kafka_admin(), self.namespace, topics)
        assert report.fit, report.problems
        self._user = self.cluster.plain_writer("user")
        self._readers: list[LogReader] = []

    # -- the user ----------------------------------------------------------------------------------------------------

    def publish(self, job_id: str, schedule: object, **fields: object) -> None:
        """Publish a job as JSON."""
        value = {"id": job_id, "schedule": schedule, "handler": "hello", **fields}
        self.send(self.namespace.jobs, job_id.encode(), json.dumps(value).encode())

    def send(self, topic: str, key: bytes | None, value: bytes | None, partition: int = -1) -> Delivered:
        """Write one record by a plain producer and wait for it."""
        got: list[Delivered | str] = []
        record = Outgoing(topic=topic, key=key, value=value, partition=partition)
        self._user.send(record, lambda delivered, error: got.append(delivered or error))
        assert self._user.flush(10.0) == 0
        assert isinstance(got[0], Delivered), got[0]
        return got[0]

    def command(self, kind: str, **fields: object) -> str:
        """Send a command; its id."""
        command = Command(id=uuid.uuid4().hex, kind=kind, **fields)  # type: ignore[arg-type]
        self.send(self.namespace.control, None, encode(command))
        return command.id

    def write(self, topic: str, record: Record, *, key: str = "", partition: int = 0) -> Delivered:
        """Write one of our records as a scripted worker would, without a transaction."""
        outgoing = Outgoing(
            topic=topic, key=key.encode(), value=encode(record), headers=headers(record), partition=partition
        )
        got: list[Delivered | str] = []
        self._user.send(outgoing, lambda delivered, error: got.append(delivered or error))
        assert self._user.flush(10.0) == 0
        assert isinstance(got[0], Delivered), got[0]
        return got[0]

    # -- what the leader wrote -----------------------------------------------------------------------------------------

    def watch(self, *topics: str, partitions: int = 1) -> Watch:
        """Everything committed in these topics, from their beginning on."""
        reader = self.cluster.log_reader("watch")
        reader.assign({(topic, number): EARLIEST for topic in topics for number in range(partitions)})
        self._readers.append(reader)
        return Watch(reader)

    def ledger(self) -> Watch:
        """The ledger: `runs` and `job-versions`."""
        return self.watch(self.namespace.runs, self.namespace.job_versions)

    def close(self) -> None:
        """Release the clients."""
        for reader in self._readers:
            reader.close()
        self._user.close()
        self.cluster.close()

    # -- schedulers ------------------------------------------------------------------------------------------------------

    @contextmanager
    def scheduler(
        self, *, kafka: Kafka | None = None, clock: Clock | None = None, **settings: object
    ) -> Iterator[Running]:
        """A scheduler in a thread, stopped at the end of the block."""
        running = self.start(kafka=kafka, clock=clock, **settings)
        try:
            yield running
        finally:
            running.stop()

    def start(self, *, kafka: Kafka | None = None, clock: Clock | None = None, **settings: object) -> Running:
        """Start one; the caller stops it."""
        chosen = SchedulerSettings(**{"session_timeout_s": 1.0, "process": "rig", **settings})  # type: ignore[arg-type]
        scheduler = Scheduler(
            kafka or self.cluster, clock or SystemClock(), self.namespace, chosen, lambda: uuid.uuid4().hex
        )
        return Running(scheduler)


class Running:
    """A scheduler in its thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._stop = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(scheduler,), name="scheduler")
        self._thread.start()

    def _run(self, scheduler: Scheduler) -> None:
        try:
            scheduler.run(self._stop)
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread, by stop()
            self.error = error

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop it; what it raised is raised here."""
        self._stop.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the scheduler did not stop"
        if self.error is not None:
            raise self.error

    def wait_ended(self) -> BaseException | None:
        """Wait until it ended by itself; what it raised."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the scheduler goes on"
        return self.error


class Watch:
    """Records of some topics, decoded, kept in the order read."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self.received: list[Received] = []
        self.records: list[Record] = []

    def poll(self, timeout_s: float = 0.1) -> None:
        """Read on."""
        for received in self._reader.poll(timeout_s, 10_000):
            self.received.append(received)
            if received.value is not None:
                self.records.append(decode(received.value))

    def until(self, done: Callable[[Watch], object], what: str, deadline_s: float = DEADLINE_S) -> None:
        """Read until the condition holds."""
        end = monotonic() + deadline_s
        while not done(self):
            assert monotonic() < end, f"not seen within {deadline_s:.0f} s: {what}; seen: {self.records[-5:]}"
            self.poll()

    def settle(self, end: dict[tuple[str, int], int]) -> None:
        """Read until every partition was read to these ends."""
        self.until(lambda _: all(self._reader.position(p) >= offset for p, offset in end.items()), f"ends {end}")

    def runs(self, job: str | None = None) -> dict[str, Run]:
        """The last record of each run."""
        found = {record.key: record for record in self.records if isinstance(record, Run)}
        return {key: run for key, run in found.items() if job is None or run.job.id == job}

    def all_of(self, job: str) -> list[Run]:
        """Every record of the job's runs, in order."""
        return [record for record in self.records if isinstance(record, Run) and record.job.id == job]

    def summaries(self) -> list[Summary]:
        """Every summary."""
        return [record for record in self.records if isinstance(record, Summary)]

    def versions(self, job: str) -> list[JobVersion]:
        """The job's versions, in order."""
        return [record for record in self.records if isinstance(record, JobVersion) and record.job == job]

    def barriers(self) -> list[Barrier]:
        """Barriers of `runs` and `job-versions`."""
        return [record for record in self.records if isinstance(record, Barrier)]

    def terms(self) -> list[int]:
        """The term of each positions record, in order."""
        return [record.term for record in self.records if isinstance(record, Positions)]

    def jobs_read(self) -> bool:
        """Whether a leader recorded that it had read `jobs` to its end."""
        return any(isinstance(record, Positions) and record.jobs_read_ms >= 0 for record in self.records)

    def rejected(self) -> list[Rejected]:
        """Dead letters."""
        return [record for record in self.records if isinstance(record, Rejected)]

    def due_times(self, job: str) -> list[int]:
        """Due times with a record, sorted; each key once."""
        return sorted(run.due_ms for run in self.runs(job).values() if not run.command)


class WrappedKafka:
    """A cluster of which a test replaces single ports."""

    def __init__(self, cluster: Kafka) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)


class WrappedWriter:
    """A real writer; `around` may do something before, instead of or after the real write."""

    Around = Callable[["RealWrite"], list[Delivered]]

    def __init__(self, writer: TransactionWriter, around: Around) -> None:
        self._writer, self._around = writer, around

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> list[Delivered]:
        return self._around(RealWrite(self._writer, groups, offsets, before_commit))

    @property
    def producers(self) -> int:
        return self._writer.producers

    def serve(self) -> None:
        self._writer.serve()

    def survivor(self) -> TransactionWriter | None:
        return self._writer.survivor()

    def close(self) -> None:
        self._writer.close()


class RealWrite:
    """The write that the leader asked for."""

    def __init__(
        self,
        writer: TransactionWriter,
        groups: Sequence[Sequence[Outgoing]],
        offsets: GroupOffsets | UnfencedOffset | None,
        before_commit: BeforeCommit | None,
    ) -> None:
        self._writer = writer
        self.groups, self.offsets, self.before_commit = groups, offsets, before_commit

    def types(self) -> list[str]:
        """The record types, in the order of writing."""
        return [dict(record.headers)["type"].decode() for group in self.groups for record in group]

    def commit(self, before_commit: BeforeCommit | None = None) -> list[Delivered]:
        """Do it."""
        return self._writer.write(self.groups, offsets=self.offsets, before_commit=before_commit or self.before_commit)


class WritersWrapped(WrappedKafka):
    """Every writer it opens is wrapped."""

    def __init__(self, cluster: Kafka, around: WrappedWriter.Around) -> None:
        super().__init__(cluster)
        self._around = around
        self.opened = 0

    def writers(self) -> WritersWrapped:
        return self

    def open(self, transactional_ids: Sequence[str], **bounds: object) -> TransactionWriter:
        self.opened += 1
        return WrappedWriter(self._cluster.writers().open(transactional_ids, **bounds), self._around)  # type: ignore[arg-type]


def address(broker: TestBroker) -> str:
    """Where the broker listens."""
    return broker.bootstrap_servers
