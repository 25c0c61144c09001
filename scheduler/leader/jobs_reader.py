"""The reader of `jobs`: it outlives take-overs and runs in standbys too, so that no tombstone is missed (L12).

What it read waits here until the ledger's position has passed it. Only when the position is older than half of the
tombstone retention is the topic read whole, and a job that is then absent was deleted.
"""

from __future__ import annotations

from collections import deque

from dueline.scheduler.core.ports import EARLIEST, Expired, LogAdmin, LogReader, Partition, Received

POLL_LIMIT = 2_000
BUFFER_LIMIT = 20_000
"""A standby's buffer: beyond it reading pauses until the leader's positions come along."""


class JobsReader:
    """Buffers records of `jobs` from the ledger's position on."""

    def __init__(self, reader: LogReader, partition: Partition) -> None:
        self._reader = reader
        self._partition = partition
        self._buffer: deque[Received] = deque()
        self._started = False

    def start(self, offset: int | None) -> None:
        """Begin at the ledger's position, or at the beginning. Later calls do nothing."""
        if not self._started:
            self._assign(EARLIEST if offset is None else offset)

    def restart(self, offset: int) -> None:
        """Begin anew at this offset."""
        self._assign(offset)

    def _assign(self, offset: int) -> None:
        self._buffer.clear()
        self._reader.assign({self._partition: offset})
        self._started = True

    def poll(self, timeout_s: float = 0.0) -> None:
        """Read on, unless too much waits already."""
        if not self._started or len(self._buffer) >= BUFFER_LIMIT:
            return
        try:
            self._buffer.extend(self._reader.poll(timeout_s, POLL_LIMIT))
        except Expired:
            self._assign(EARLIEST)  # a compacted topic lost its head, not its jobs; the position check tells a leader

    def drop_below(self, offset: int) -> None:
        """The ledger's position passed these."""
        while self._buffer and self._buffer[0].offset < offset:
            self._buffer.popleft()

    def take(self, limit: int) -> list[Received]:
        """The next records, in order."""
        return [self._buffer.popleft() for _ in range(min(limit, len(self._buffer)))]

    def position(self) -> int:
        """The next offset to take; -1 while unknown."""
        return self._buffer[0].offset if self._buffer else self._reader.position(self._partition)

    def read_whole(self, admin: LogAdmin, position: int, timeout_s: float) -> set[str]:
        """Read the topic from its beginning to its end; the ids of the jobs that stand there, or of which a deletion stands at
        `position` or later, which is read in its turn and tells more. Raises Unavailable."""
        end = admin.end_offset(self._partition)
        present: set[str] = set()
        for received in admin.read_range(self._partition, admin.start_offset(self._partition), end, timeout_s=timeout_s):
            key = (received.key or b"").decode(errors="replace")
            if received.value is None and received.offset < position:
                present.discard(key)
            else:
                present.add(key)
        return present

    def close(self) -> None:
        """Release the client."""
        self._reader.close()
