"""A log being written by hand: offsets with gaps, as transaction markers leave them, and append times of one clock."""

from __future__ import annotations

from collections import defaultdict
from random import Random

from dueline.schemas.codec import Record, encode
from dueline.schemas.work import AttemptEvent
from proof.history.entry import Entry

PREFIX = "proof"


class Writing:
    """Appends records. `now` is the brokers' clock."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0
        self.log: defaultdict[tuple[str, int], list[Entry]] = defaultdict(list)
        self._next: defaultdict[tuple[str, int], int] = defaultdict(int)

    def end(self, topic: str, partition: int = 0) -> int:
        """The offset that the next record will have at least."""
        return self._next[topic, partition]

    def append(self, topic: str, record: Record | bytes | None, *, key: bytes | None = None, partition: int = 0) -> Entry:
        """One record: of ours, or bytes, or None. `topic` is its full name."""
        value = record if record is None or isinstance(record, bytes) else encode(record)
        if key is None:
            key = (record.run if isinstance(record, AttemptEvent) else str(getattr(record, "key", ""))).encode()
        place = (topic, partition)
        entry = Entry(
            topic=topic, partition=partition, offset=self._next[place], append_ms=self.now, key=key, value=value
        )
        self._next[place] += 1 + (self.random.random() < 0.3)
        self.log[place].append(entry)
        return entry
