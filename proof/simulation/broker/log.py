"""The records of one partition: transactions, idempotent producers, the last stable offset, compaction."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final

from proof.simulation.broker import codes
from proof.simulation.protocol import Fetched, NewRecord

DAY_MS: Final = 86_400_000
REMEMBERED: Final = 5  # batches of a producer, for recognising one that is sent again
LAST_SEQUENCE: Final = 2**31 - 1


class Stretch:
    """What one transaction has written to one partition."""

    __slots__ = ("aborted", "first", "left")

    def __init__(self, first: int) -> None:
        self.first = first
        self.aborted = False
        self.left = 0  # records of it that still stand


class Writer:
    """What the partition knows of a producer id. `batches`: first sequence, last sequence, first offset, append time."""

    __slots__ = ("batches", "epoch", "last_ms", "last_sequence", "stretch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last_sequence = -1
        self.last_ms = 0
        self.batches: deque[tuple[int, int, int, int]] = deque(maxlen=REMEMBERED)
        self.stretch: Stretch | None = None

    def enter(self, epoch: int) -> None:
        """A higher epoch begins its sequence anew."""
        if epoch > self.epoch:
            self.epoch, self.last_sequence = epoch, -1
            self.batches.clear()


class Log:
    """One partition. `end`: the next offset, which is the high watermark too. A control marker is a place without a record."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.writers: dict[int, Writer] = {}
        self._open: dict[int, Stretch] = {}  # by producer id, in order of their first offsets
        self._offsets: list[int] = []
        self._records: list[Fetched | None] = []
        self._stretches: list[Stretch | None] = []
        self._horizons: dict[int, int] = {}  # when a tombstone or marker may go, by offset

    @property
    def stable(self) -> int:
        """The last stable offset: the first one of an open transaction, else the end."""
        for stretch in self._open.values():
            return stretch.first
        return self.end

    def visible(self, committed_only: bool) -> int:
        """Up to where such a reader sees."""
        return self.stable if committed_only else self.end

    def has_open(self, pid: int, epoch: int) -> bool:
        """Whether a transaction of that producer stands open here."""
        writer = self.writers.get(pid)
        return writer is not None and writer.stretch is not None and writer.epoch == epoch

    def append(
        self,
        records: Sequence[NewRecord],
        now_ms: int,
        *,
        pid: int = -1,
        epoch: int = -1,
        sequence: int = -1,
        transactional: bool = False,
    ) -> tuple[int, int, int]:
        """Code, first offset, append time. A batch that is here already is answered as it was the first time."""
        writer = None
        if pid >= 0:
            code, known, writer = self._admit(pid, epoch, sequence, len(records), now_ms)
            if code:
                return code, -1, -1
            if known is not None:
                return codes.NONE, known[2], known[3]
            if writer is not None and writer.stretch is not None and not transactional:
                return codes.INVALID_TXN_STATE, -1, -1
        first = self.end
        stretch = None
        if writer is not None:
            writer.last_sequence = sequence + len(records) - 1
            writer.last_ms = now_ms
            writer.batches.append((sequence, writer.last_sequence, first, now_ms))
            if transactional:
                stretch = writer.stretch
                if stretch is None:
                    stretch = writer.stretch = self._open[pid] = Stretch(first)
                stretch.left += len(records)
        for number, record in enumerate(records):
            self._put(
                first + number,
                Fetched(offset=first + number, append_ms=now_ms, key=record.key, value=record.value, headers=record.headers),
                stretch,
            )
        self.end = first + len(records)
        return codes.NONE, first, now_ms

    def mark(self, pid: int, epoch: int, commit: bool) -> bool:
        """Write a transaction's marker, also where it has written nothing. False: its epoch is over, nothing is written."""
        writer = self.writers.get(pid)
        if writer is None:
            writer = self.writers[pid] = Writer(epoch)
        if epoch < writer.epoch:
            return False
        writer.enter(epoch)
        stretch, writer.stretch = writer.stretch, None
        self._open.pop(pid, None)
        if stretch is not None:
            stretch.aborted = not commit
        self._put(self.end, None, stretch)
        self.end += 1
        return True

    def read(self, offset: int, committed_only: bool, limit: int) -> tuple[list[Fetched], int]:
        """Records from an offset, and the offset behind all that was looked at."""
        end = self.visible(committed_only)
        offsets, records, stretches = self._offsets, self._records, self._stretches
        place, count = bisect_left(offsets, offset), len(offsets)
        found: list[Fetched] = []
        while place < count and offsets[place] < end and len(found) < limit:
            record, stretch = records[place], stretches[place]
            if record is not None and not (committed_only and stretch is not None and stretch.aborted):
                found.append(record)
            offset = offsets[place] + 1
            place += 1
        return found, offset

    def delete_before(self, offset: int) -> None:
        """Retention, or DeleteRecords: what stands before goes."""
        self.start = max(self.start, min(offset, self.end))
        place = bisect_left(self._offsets, self.start)
        for column in (self._offsets, self._records, self._stretches):
            del column[:place]

    def older_than(self, before_ms: int) -> int:
        """The first offset that retention leaves: all stable records before it are older."""
        stable = self.stable
        for offset, record in zip(self._offsets, self._records, strict=True):
            if offset >= stable or (record is not None and record.append_ms >= before_ms):
                return offset
        return stable

    def compact(self, now_ms: int, delete_retention_ms: int, up_to: int | None = None) -> int:
        """Keep each key's last record by position among those before the last stable offset (and `up_to`, as the active segment
        is never cleaned). Aborted records go; a tombstone, and the marker of a transaction of which nothing is left, goes when
        `delete_retention_ms` have passed since it was first cleaned. The number of places that went."""
        bound = self.stable if up_to is None else min(self.stable, up_to)
        last: dict[bytes, int] = {}
        for offset, record, stretch in zip(self._offsets, self._records, self._stretches, strict=True):
            if offset >= bound:
                break
            if record is not None and record.key is not None and not (stretch is not None and stretch.aborted):
                last[record.key] = offset
        kept = [
            number
            for number, offset in enumerate(self._offsets)
            if offset >= bound or self._stays(number, last, now_ms, delete_retention_ms)
        ]
        gone = len(self._offsets) - len(kept)
        self._offsets = [self._offsets[number] for number in kept]
        self._records = [self._records[number] for number in kept]
        self._stretches = [self._stretches[number] for number in kept]
        return gone

    def _stays(self, number: int, last: dict[bytes, int], now_ms: int, delete_retention_ms: int) -> bool:
        offset, record, stretch = self._offsets[number], self._records[number], self._stretches[number]
        if record is None:
            if stretch is not None and stretch.left:
                return True
        elif record.key is None or last.get(record.key) != offset:
            if stretch is not None:
                stretch.left -= 1
            return False
        elif record.value is not None:
            return True
        horizon_ms = self._horizons.setdefault(offset, now_ms + delete_retention_ms)
        if now_ms < horizon_ms:
            return True
        del self._horizons[offset]
        if record is not None and stretch is not None:
            stretch.left -= 1
        return False

    def _put(self, offset: int, record: Fetched | None, stretch: Stretch | None) -> None:
        self._offsets.append(offset)
        self._records.append(record)
        self._stretches.append(stretch)

    def _admit(
        self, pid: int, epoch: int, sequence: int, count: int, now_ms: int
    ) -> tuple[int, tuple[int, int, int, int] | None, Writer | None]:
        """Code, the same batch of before, the writer. Whoever is not known may begin with any sequence."""
        writer = self.writers.get(pid)
        if writer is None or (writer.stretch is None and writer.last_ms and now_ms - writer.last_ms > DAY_MS):
            writer = self.writers[pid] = Writer(epoch)
            return codes.NONE, None, writer
        if epoch == writer.epoch:
            for batch in writer.batches:
                if batch[0] == sequence and batch[1] == sequence + count - 1:
                    return codes.NONE, batch, writer
        if epoch < writer.epoch:
            return codes.INVALID_PRODUCER_EPOCH, None, writer
        last = -1 if epoch > writer.epoch else writer.last_sequence
        if sequence != last + 1 and not (sequence == 0 and last == LAST_SEQUENCE):
            return codes.OUT_OF_ORDER_SEQUENCE_NUMBER, None, writer
        writer.enter(epoch)
        return codes.NONE, None, writer
