"""Everything that was ever committed to the simulated brokers, whatever retention and compaction leave of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proof.history.entry import Entry
from proof.history.history import Partition
from proof.simulation.broker.cluster import Cluster

EVERYTHING: Final = 1 << 60


class Archive:
    """The committed records of a cluster, those too that retention or compaction has taken meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept: dict[Partition, list[Entry]] = {}
        self._next: dict[Partition, int] = {}

    def expire(self, partition: Partition) -> None:
        """Retention runs out for all that is stable in the partition."""
        self._keep(partition)
        self._cluster.delete_before(partition, self._cluster.log(partition).stable)

    def compact(self, partition: Partition, *, read_to: int = EVERYTHING) -> int:
        """The cleaner takes what it may of all that is stable. Of what nobody had read (from `read_to` on), a record that a later
        one of its key replaces has never been: it leaves the archive, too. How many did."""
        self._keep(partition)
        self._cluster.compact(partition)
        kept = self._kept[partition]
        standing = {record.offset for record in self._cluster.log(partition).read(read_to, True, EVERYTHING)[0]}
        last = {entry.key: entry.offset for entry in kept}
        replaced = [
            entry for entry in kept if entry.offset >= read_to and entry.offset not in standing and last[entry.key] > entry.offset
        ]
        for entry in replaced:
            kept.remove(entry)
        return len(replaced)

    def records(self, topics: Sequence[str]) -> dict[Partition, list[Entry]]:
        """Of every partition of these topics, in offset order."""
        found: dict[Partition, list[Entry]] = {}
        for topic in topics:
            for number in range(self._cluster.storage.partitions_of(topic)):
                self._keep((topic, number))
                found[topic, number] = self._kept[topic, number]
        return found

    def _keep(self, partition: Partition) -> None:
        log, (topic, number) = self._cluster.log(partition), partition
        stable = log.stable
        records, _ = log.read(self._next.get(partition, 0), True, EVERYTHING)
        self._kept.setdefault(partition, []).extend(
            Entry(topic=topic, partition=number, offset=one.offset, append_ms=one.append_ms, key=one.key, value=one.value)
            for one in records
        )
        self._next[partition] = stable
