"""What stands in the log, as a read-committed reader finds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One committed record. `append_ms`: milliseconds since the epoch by the clock of the partition's broker."""

    topic: str
    partition: int
    offset: int
    append_ms: int
    key: bytes | None
    value: bytes | None
