"""Reads a finished stretch of one partition: what a dead worker wrote, what earlier attempts recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dueline.scheduler.core.ports import Partition, Received, Unavailable

from .clock import monotonic_s
from .config import KafkaConfig
from .reader import KafkaLogReader

BATCH: Final = 5000
FETCH_WAIT_MS: Final = 10  # the end of the stretch is mostly a marker, noticed by an empty fetch


def read_range(
    config: KafkaConfig, name: str, partition: Partition, start: int, end: int, *, timeout_s: float
) -> Iterator[Received]:
    """Committed records of [start, end), in order. Ends when the read-committed position passed `end`, so it waits for
    open transactions before it. Raises Expired, NotAuthorized; Unavailable after `timeout_s` without progress."""
    if start >= end:
        return
    reader = KafkaLogReader(config, name, fetch_wait_ms=FETCH_WAIT_MS)
    try:
        reader.assign({partition: start})
        progress, moved_at = start, monotonic_s()
        while reader.position(partition) < end:
            for record in reader.poll(min(0.05, timeout_s), BATCH):
                if record.offset >= end:
                    return
                yield record
            now = monotonic_s()
            if reader.position(partition) > progress:
                progress, moved_at = reader.position(partition), now
            elif now - moved_at > timeout_s:
                raise Unavailable(
                    f"partition {partition[1]} of {partition[0]!r}: stuck at offset {progress} for {timeout_s:.1f} s, "
                    f"{end} is wanted: the broker is away, or a transaction stands open there"
                )
    finally:
        reader.close()
