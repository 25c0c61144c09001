"""Reads assigned partitions into one queue: one fetch a partition is always under way, and waits at the broker for news.

The end is noticed as in librdkafka: by a fetch that comes back empty at the last stable offset, after `fetch.wait.max.ms`. After
that the broker may hold the fetch for much longer, since nothing would come of an earlier answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError, Message
from proof.simulation.client.errors import NO_ERROR, kafka_error, told
from proof.simulation.client.map import Map
from proof.simulation.client.wire import Wire
from proof.simulation.kernel import Waiters
from proof.simulation.protocol import Fetch, FetchAnswer, ListOffset, OffsetAnswer, Partition

EARLIEST: Final = -2
LATEST: Final = -1
INVALID: Final = -1001
HELD: Final = -1_000_000
"""No offset yet: it is being asked for."""
HELD_S: Final = 5.0
"""How long an idle fetch waits at the broker: so much later than a real client a simulated one notices that a fetch was lost."""
LOG_APPEND_TIME: Final = 2
MISSING_S: Final = 10.0

UNASKED: Final = frozenset({
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
})
"""Codes that lead to another try, and are not told."""


@dataclass(slots=True, eq=False)
class Reading:
    """One partition. `at`: the next offset to fetch, or EARLIEST, LATEST. `taken`: the application's position."""

    partition: Partition
    at: int
    stopped: bool = False
    end_told: int = -1
    taken: int = INVALID
    high_watermark: int = INVALID
    start: int = INVALID
    waiting: int = 0


class Fetcher:
    """All partitions of one consumer."""

    def __init__(self, wire: Wire, world: Map, changed: Waiters) -> None:
        self._wire, self._map, self._changed = wire, world, changed
        settings = wire.settings
        self._committed_only = settings.text("isolation.level", "read_committed") == "read_committed"
        self._wait_s = settings.seconds("fetch.wait.max.ms", 500)
        self._pause_s = settings.seconds("fetch.error.backoff.ms", 500)
        self._request_s = settings.seconds("socket.timeout.ms", 60_000)
        self._most = settings.number("queued.min.messages", 100_000)
        self._tell_end = settings.flag("enable.partition.eof", default=False)
        self._reset = settings.text("auto.offset.reset", "largest")
        self._readings: dict[Partition, Reading] = {}
        self._queue: deque[tuple[Reading, Message]] = deque()
        self.paused = False

    @property
    def partitions(self) -> frozenset[Partition]:
        """What is read."""
        return frozenset(self._readings)

    def reading(self, partition: Partition) -> Reading | None:
        """Its state; None when it is not read."""
        return self._readings.get(partition)

    def start(self, partition: Partition, at: int) -> None:
        """Read from there on; what was fetched before is dropped."""
        self.stop([partition])
        reading = self._readings[partition] = Reading(partition, at)
        self._begin(reading)

    def hold(self, partition: Partition) -> None:
        """It is read, but from where is not known yet."""
        self.stop([partition])
        self._readings[partition] = Reading(partition, HELD)

    def held(self, partition: Partition) -> bool:
        """Whether it still waits for that."""
        reading = self._readings.get(partition)
        return reading is not None and reading.at == HELD

    def stop(self, partitions: Iterable[Partition]) -> None:
        """Read them no more."""
        for partition in partitions:
            reading = self._readings.pop(partition, None)
            if reading is not None:
                reading.stopped = True

    def take(self) -> Message | None:
        """The next message or event that still counts."""
        if not self._queue:
            return None
        while self._queue and not self.paused:
            reading, message = self._queue.popleft()
            if reading.stopped and self._readings.get(reading.partition) is not reading:
                continue
            if reading.waiting >= self._most > reading.waiting - 1:
                self._wire.after(0.0, lambda one=reading: self._fetch(one))  # type: ignore[misc]
            reading.waiting -= 1
            offset = message.offset()
            error = message.error()
            if offset is not None and offset >= 0 and (error is None or error.code() == KafkaError._PARTITION_EOF):
                reading.taken = offset + (error is None)
            return message
        return None

    # -- one partition -----------------------------------------------------------------------------------------------

    def _begin(self, reading: Reading) -> None:
        if not self._counts(reading):
            return
        if reading.at in (EARLIEST, LATEST):
            self._seek(reading, lambda node: self._resolve(reading, node))
        elif reading.at < 0:
            self._reset_to(reading, KafkaError._NO_OFFSET, "no committed offset")
        else:
            self._fetch(reading)

    def _counts(self, reading: Reading) -> bool:
        return not reading.stopped and self._readings.get(reading.partition) is reading

    def _seek(self, reading: Reading, found: Callable[[int], None]) -> None:
        def missing(code: int) -> None:
            if self._counts(reading) and code != KafkaError._UNKNOWN_PARTITION:
                text = f"Subscribed topic not available: {reading.partition[0]}: {told(code)}"
                self._tell(reading, code, text, reading.at)
            self._wire.after(MISSING_S, lambda: self._begin(reading))

        self._map.seek_leader(reading.partition, lambda node: found(node) if self._counts(reading) else None, missing)

    def _resolve(self, reading: Reading, node: int) -> None:
        request = ListOffset(partition=reading.partition, spec=reading.at, committed_only=self._committed_only)

        def end(code: int, answer: OffsetAnswer | None) -> None:
            if not self._counts(reading):
                return
            if code == NO_ERROR and answer is not None:
                reading.at = answer.offset
                self._fetch(reading)
                return
            self._map.forget_leader(reading.partition)
            self._wire.after(self._pause_s, lambda: self._begin(reading))

        self._wire.ask(node, request, end)

    def _fetch(self, reading: Reading) -> None:
        if self._counts(reading) and reading.waiting < self._most:
            self._seek(reading, lambda node: self._fetch_from(reading, node))

    def _fetch_from(self, reading: Reading, node: int) -> None:
        idle = reading.end_told == reading.at or not self._tell_end
        wait_s = max(HELD_S, self._wait_s) if idle else self._wait_s
        request = Fetch(
            partition=reading.partition,
            offset=reading.at,
            committed_only=self._committed_only,
            max_wait_s=wait_s,
        )
        self._wire.ask(node, request, lambda code, answer: self._fetched(reading, code, answer), self._request_s + wait_s)

    def _fetched(self, reading: Reading, code: int, answer: FetchAnswer | None) -> None:
        if not self._counts(reading):
            return
        if code == NO_ERROR and answer is not None:
            self._keep(reading, answer)
        elif code in UNASKED:
            self._map.forget_leader(reading.partition)
            self._wire.after(self._pause_s, lambda: self._fetch(reading))
        elif code == KafkaError.OFFSET_OUT_OF_RANGE:
            self._reset_to(reading, code, told(code))
        else:
            self._tell(reading, code, f"Fetch from broker failed: {told(code)}", reading.at)
            self._wire.after(self._pause_s, lambda: self._fetch(reading))

    def _keep(self, reading: Reading, answer: FetchAnswer) -> None:
        reading.high_watermark, reading.start = answer.high_watermark, answer.start
        topic, number = reading.partition
        for one in answer.records:
            message = Message(
                topic=topic,
                partition=number,
                offset=one.offset,
                key=one.key,
                value=one.value,
                headers=list(one.headers) or None,
                timestamp=(LOG_APPEND_TIME, one.append_ms),
            )
            self._queue.append((reading, message))
        reading.waiting += len(answer.records)
        moved = answer.next_offset > reading.at
        if moved:
            reading.at = answer.next_offset
        if answer.records:
            self._changed.wake_all()
        elif not moved and self._tell_end and reading.at == answer.end and reading.end_told != reading.at:
            reading.end_told = reading.at
            text = f"Fetch from broker reached end of partition at offset {reading.at} (HighwaterMark {answer.high_watermark})"
            self._tell(reading, KafkaError._PARTITION_EOF, text, reading.at)
        self._fetch(reading)

    def _reset_to(self, reading: Reading, code: int, why: str) -> None:
        """`auto.offset.reset`."""
        if self._reset in ("earliest", "smallest", "beginning"):
            reading.at = EARLIEST
        elif self._reset in ("latest", "largest", "end"):
            reading.at = LATEST
        else:
            told_code = KafkaError._AUTO_OFFSET_RESET
            self._tell(reading, told_code, f"fetch failed due to requested offset not available on the broker: {why}", reading.at)
            return
        self._wire.after(0.0, lambda: self._begin(reading))
        del code

    def _tell(self, reading: Reading, code: int, text: str, offset: int) -> None:
        topic, number = reading.partition
        message = Message(topic=topic, partition=number, offset=offset, error=kafka_error(code, text))
        self._queue.append((reading, message))
        reading.waiting += 1
        self._changed.wake_all()
