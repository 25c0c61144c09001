"""The records of one producer: queued by partition, sent in batches, acknowledged, sent again, or failed.

One batch a partition is under way at a time, so a batch that is sent again keeps its sequence number and its place. Several
partitions are served side by side, as by librdkafka.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from dueline.scheduler.kafka.vocabulary import KafkaError, Message
from proof.simulation.client.errors import NO_ERROR, kafka_error
from proof.simulation.client.map import Map
from proof.simulation.client.wire import Wire
from proof.simulation.protocol import NewRecord, Partition, Produce, ProduceAnswer

OnDelivery = Callable[[KafkaError | None, Message], None]
BATCH: Final = 10_000
BATCH_BYTES: Final = 1_000_000
LOG_APPEND_TIME: Final = 2

AGAIN: Final = frozenset({
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.CONCURRENT_TRANSACTIONS,
})
"""Codes after which a batch is sent again."""


class Keeper(Protocol):
    """Who owns the producer id and says what may be sent."""

    def identity(self) -> tuple[int, int] | None:
        """Id and epoch; None: nothing may be sent now."""

    def may_send(self, partition: Partition) -> bool:
        """Whether the partition is part of the transaction; asks for it when it is not."""

    def batch_failed(self, partition: Partition, code: int, count: int) -> bool:
        """A batch was refused for good. Whether it shall be sent again all the same, under a new identity."""

    def expired(self) -> None:
        """Records were given up that a broker may have all the same: their sequence numbers are used up."""

    def report_failed(self) -> None:
        """A delivery report with an error was queued."""


@dataclass(slots=True, eq=False)
class _Queued:
    record: NewRecord
    on_delivery: OnDelivery | None
    until_s: float


@dataclass(slots=True, eq=False)
class _Lane:
    """One partition."""

    partition: Partition
    queue: deque[_Queued]
    next_sequence: int = 0
    batch: list[_Queued] | None = None
    seeking: bool = False
    again: int = 0  # records of the batch to be sent again: its bounds stay, or the broker does not know it again
    backoff_s: float = 0.0


class Outbox:
    """`count`: records without a delivery report served."""

    def __init__(self, wire: Wire, world: Map, keeper: Keeper, *, transactional: bool) -> None:
        self.count = 0
        self._wire, self._map, self._keeper = wire, world, keeper
        self._transactional = transactional
        settings = wire.settings
        default_ms = settings.number("transaction.timeout.ms", 60_000) if transactional else 300_000
        self._limit_s = settings.seconds("message.timeout.ms", default_ms)
        self._backoff_s = settings.seconds("retry.backoff.ms", 100)
        self._backoff_max_s = settings.seconds("retry.backoff.max.ms", 1000)
        self._lanes: dict[Partition, _Lane] = {}
        self._watching = False

    @property
    def in_flight(self) -> int:
        """Batches under way."""
        return sum(lane.batch is not None for lane in self._lanes.values())

    def add(self, partition: Partition, record: NewRecord, on_delivery: OnDelivery | None) -> None:
        """Queue one. Partition -1: by the hash of its key, once it is known how many there are."""
        self._put(partition, _Queued(record, on_delivery, self._wire.kernel.now_s + self._limit_s))
        self.count += 1
        if not self._watching:
            self._watching = True
            self._wire.after(self._limit_s + 0.001, self._expire)

    def _put(self, partition: Partition, one: _Queued) -> None:
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = _Lane(partition, deque())
        lane.queue.append(one)
        if len(lane.queue) == 1:
            self._wire.after(0.0, lambda: self._serve(lane))

    def go_on(self) -> None:
        """Something changed: an identity, or partitions were added to the transaction."""
        for lane in list(self._lanes.values()):
            if lane.queue:
                self._serve(lane)

    def reset_sequences(self) -> None:
        """A new identity counts from 0."""
        for lane in self._lanes.values():
            lane.next_sequence = 0

    def purge(self, *, queued: bool = True, in_flight: bool = False) -> None:
        """Fail what waits, and what is under way if told so."""
        for lane in self._lanes.values():
            if queued:
                gone = list(lane.queue)
                lane.queue.clear()
                lane.again = 0
                self._fail(lane.partition, gone, KafkaError._PURGE_QUEUE)
            if in_flight and lane.batch is not None:
                batch, lane.batch = lane.batch, None
                self._fail(lane.partition, batch, KafkaError._PURGE_INFLIGHT)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _serve(self, lane: _Lane) -> None:
        if not lane.queue or lane.batch is not None or lane.seeking:
            return
        if lane.partition[1] < 0:
            lane.seeking = True
            self._map.seek_leader(
                (lane.partition[0], 0), lambda _: self._place(lane), lambda code: self._missing(lane, code)
            )
            return
        if self._keeper.identity() is None:
            return
        lane.seeking = True
        self._map.seek_leader(
            lane.partition, lambda node: self._found(lane, node), lambda code: self._missing(lane, code)
        )

    def _place(self, lane: _Lane) -> None:
        lane.seeking = False
        topic = lane.partition[0]
        count = max(1, self._map.count(topic))
        random = self._wire.kernel.random
        while lane.queue:
            one = lane.queue.popleft()
            key = one.record.key
            self._put((topic, zlib.crc32(key) % count if key else random.randrange(count)), one)

    def _found(self, lane: _Lane, node: int) -> None:
        lane.seeking = False
        identity = self._keeper.identity()
        if not lane.queue or lane.batch is not None or identity is None or not self._keeper.may_send(lane.partition):
            return
        batch = lane.batch = [lane.queue.popleft() for _ in range(lane.again or _fitting(lane.queue))]
        lane.again = 0
        request = Produce(
            partition=lane.partition,
            records=tuple(one.record for one in batch),
            pid=identity[0],
            epoch=identity[1],
            sequence=lane.next_sequence,
            transactional=self._transactional,
        )
        self._wire.ask(node, request, lambda code, answer: self._answered(lane, batch, code, answer))

    def _missing(self, lane: _Lane, code: int) -> None:
        lane.seeking = False
        gone = list(lane.queue)
        lane.queue.clear()
        lane.again = 0
        self._fail(lane.partition, gone, code)

    def _answered(self, lane: _Lane, batch: list[_Queued], code: int, answer: ProduceAnswer | None) -> None:
        if lane.batch is not batch:
            return  # purged meanwhile
        lane.batch = None
        if code == NO_ERROR and answer is not None:
            lane.backoff_s = 0.0
            lane.next_sequence += len(batch)
            for index, one in enumerate(batch):
                self._report(lane.partition, one, None, answer.offset + index if answer.offset >= 0 else -1001, answer.append_ms)
            self._serve(lane)
            return
        if code in AGAIN or self._keeper.batch_failed(lane.partition, code, len(batch)):
            if code not in (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.CONCURRENT_TRANSACTIONS):
                self._map.forget_leader(lane.partition)
            lane.queue.extendleft(reversed(batch))
            lane.again = len(batch)
            lane.backoff_s = min(max(self._backoff_s, lane.backoff_s * 2), self._backoff_max_s)
            self._wire.after(lane.backoff_s, lambda: self._serve(lane))
            return
        self._fail(lane.partition, batch, code)
        self._serve(lane)

    # -- reports -----------------------------------------------------------------------------------------------------

    def _fail(self, partition: Partition, batch: list[_Queued], code: int) -> None:
        for one in batch:
            self._keeper.report_failed()
            self._report(partition, one, kafka_error(code), -1001, -1)

    def _report(self, partition: Partition, one: _Queued, error: KafkaError | None, offset: int, append_ms: int) -> None:
        def swallow() -> None:
            self.count -= 1

        def serve() -> None:
            self.count -= 1
            if one.on_delivery is not None:
                message = Message(
                    topic=partition[0],
                    partition=partition[1],
                    offset=offset,
                    key=one.record.key,
                    value=one.record.value,
                    error=error,
                    timestamp=(LOG_APPEND_TIME, append_ms),
                )
                one.on_delivery(error, message)

        self._wire.events.add(serve, swallow)

    def _expire(self) -> None:
        """Records whose time is over fail in the queue; a batch under way is left to its request."""
        now_s = self._wire.kernel.now_s
        earliest = float("inf")
        for lane in list(self._lanes.values()):
            gone = []
            while lane.queue and lane.queue[0].until_s <= now_s:
                gone.append(lane.queue.popleft())
            if gone:
                lane.again = max(0, lane.again - len(gone))
                self._fail(lane.partition, gone, KafkaError._MSG_TIMED_OUT)
                self._keeper.expired()
            if lane.queue:
                earliest = min(earliest, lane.queue[0].until_s)
            if lane.batch:
                earliest = min(earliest, max(now_s, lane.batch[0].until_s) + 1.0)
        self._watching = earliest < float("inf")
        if self._watching:
            self._wire.after(earliest - now_s + 0.001, self._expire)


def _fitting(queue: deque[_Queued]) -> int:
    """How many of the first records make a batch: `batch.num.messages` and `batch.size`, one at least."""
    room = BATCH_BYTES
    for number, one in enumerate(queue):
        room -= 30 + len(one.record.key or b"") + len(one.record.value or b"")
        if number and (room < 0 or number >= BATCH):
            return number
    return len(queue)
