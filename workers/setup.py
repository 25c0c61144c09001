"""Whether a worker can work here: its topics, and its home partition."""

from __future__ import annotations

from dataclasses import dataclass

from dueline.scheduler.core.ports import LogAdmin, Partition
from dueline.schemas.topics import home_partition
from dueline.workers.errors import SetupError
from dueline.workers.settings import WorkerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a worker writes and is told. `dispatch_partitions`: of its queue's topic."""

    partition: int
    dispatch_partitions: int
    signals: Partition
    signals_from: int  # the end of the partition now


def find_home(admin: LogAdmin, settings: WorkerSettings) -> Home:
    """Raises SetupError for what a person must change, Unavailable for what time may."""
    namespace, queue = settings.namespace, settings.queue
    offers = admin.partitions(namespace.dispatch(queue))
    counts = {topic: admin.partitions(topic) for topic in (namespace.attempts, namespace.steps, namespace.signals)}
    counts[namespace.workers] = admin.partitions(namespace.workers)
    missing = [topic for topic, count in counts.items() if count == 0]
    if missing:
        raise SetupError(
            f"topic {missing[0]} does not exist: create the namespace's topics with "
            f"`dueline init --namespace {namespace.name} --queue {queue}`"
        )
    if offers == 0:
        raise SetupError(
            f"queue {queue!r} has no topic {namespace.dispatch(queue)}: create it with "
            f"`dueline init --namespace {namespace.name} --queue {queue}`, or check the spelling of --queue"
        )
    homes = {counts[topic] for topic in (namespace.attempts, namespace.steps, namespace.signals)}
    if len(homes) > 1:
        raise SetupError(
            f"{namespace.attempts}, {namespace.steps} and {namespace.signals} must have the same number of partitions, since "
            f"a worker has one home partition in all three; they have {sorted(homes)}: see `dueline init`"
        )
    partition = home_partition(settings.worker, homes.pop())
    signals = (namespace.signals, partition)
    return Home(
        partition=partition, dispatch_partitions=offers, signals=signals, signals_from=admin.end_offset(signals)
    )
