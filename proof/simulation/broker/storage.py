"""Topics, and the requests that write and read their partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from proof.simulation.broker import codes
from proof.simulation.broker.controller import Controller
from proof.simulation.broker.log import Log
from proof.simulation.broker.node import Node, Reply
from proof.simulation.broker.seat import Seat
from proof.simulation.broker.settings import Settings
from proof.simulation.kernel import Kernel, Timer
from proof.simulation.protocol import (
    CreateTopic,
    Fetch,
    FetchAnswer,
    GrowTopic,
    ListOffset,
    NewRecord,
    OffsetAnswer,
    Partition,
    Produce,
    ProduceAnswer,
)

BATCH_BYTES: Final = 61
RECORD_BYTES: Final = 12  # lengths, deltas and attributes, about
DEFAULTS: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "9223372036854775807",
    "min.cleanable.dirty.ratio": "0.5",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """`settings`: all in effect."""

    name: str
    id: str
    partitions: int
    replication: int
    settings: dict[str, str]


@dataclass(slots=True, kw_only=True, eq=False)
class _Waiter:
    """A fetch that waits for more."""

    request: Fetch
    reply: Reply
    timer: Timer


class Shelf:
    """One partition: its leadership, its log, and who waits for more. `most`: the largest batch, bytes."""

    __slots__ = ("log", "most", "seat", "waiters")

    def __init__(self, seat: Seat, most: int) -> None:
        self.seat, self.most = seat, most
        self.log = Log()
        self.waiters: list[_Waiter] = []


class Storage:
    """`verify`: asks the transaction coordinator whether a partition is part of a producer's transaction."""

    def __init__(
        self,
        kernel: Kernel,
        nodes: dict[int, Node],
        controller: Controller,
        settings: Settings,
        verify: Callable[[int, int, Partition], int],
    ) -> None:
        self._kernel, self._nodes, self._controller = kernel, nodes, controller
        self._settings, self._verify = settings, verify
        self.topics: dict[str, Topic] = {}
        self.shelves: dict[Partition, Shelf] = {}
        kernel.after(settings.retention_sweep_s, self._sweep)

    # -- topics ----------------------------------------------------------------------------------------------------------

    def create(self, request: CreateTopic) -> int:
        """The code of the answer."""
        if request.topic in self.topics:
            return codes.TOPIC_ALREADY_EXISTS
        if request.partitions < 1:
            return codes.INVALID_PARTITIONS
        if not 1 <= request.replicas <= len(self._nodes):
            return codes.INVALID_REPLICATION_FACTOR
        own = {"min.insync.replicas": str(self._settings.min_insync), "max.message.bytes": str(self._settings.max_message_bytes)}
        topic = Topic(
            name=request.topic,
            id=f"{self._kernel.random.getrandbits(128):032x}",
            partitions=request.partitions,
            replication=request.replicas,
            settings={**DEFAULTS, **own, **request.settings},
        )
        self.topics[topic.name] = topic
        self._lay_out(topic, 0)
        return codes.NONE

    def grow(self, request: GrowTopic) -> int:
        """The code of the answer."""
        topic = self.topics.get(request.topic)
        if topic is None:
            return codes.UNKNOWN_TOPIC_OR_PART
        if request.partitions <= topic.partitions:
            return codes.INVALID_PARTITIONS
        grown = self.topics[topic.name] = replace(topic, partitions=request.partitions)
        self._lay_out(grown, topic.partitions)
        return codes.NONE

    def delete(self, name: str) -> None:
        """Delete a topic. Raises KeyError."""
        topic = self.topics.pop(name)
        for number in range(topic.partitions):
            shelf = self.shelves.pop((name, number))
            self._controller.seats.pop((name, number)).close()
            self._send_away(shelf, codes.UNKNOWN_TOPIC_OR_PART)

    def _lay_out(self, topic: Topic, first: int) -> None:
        numbers = sorted(self._nodes)
        shift = self._kernel.random.randrange(len(numbers))
        for number in range(first, topic.partitions):
            replicas = tuple(numbers[(shift + number + other) % len(numbers)] for other in range(topic.replication))
            partition = (topic.name, number)
            min_insync = int(topic.settings["min.insync.replicas"])
            seat = Seat(self._kernel, self._nodes, partition, replicas, min_insync, self._settings)
            self._controller.seats[partition] = seat
            shelf = self.shelves[partition] = Shelf(seat, int(topic.settings["max.message.bytes"]))
            seat.on_lost.append(lambda shelf=shelf: self._send_away(shelf, codes.NOT_LEADER_FOR_PARTITION))  # type: ignore[misc]
            seat.elect()

    def partitions_of(self, name: str) -> int:
        """How many; 0 without the topic."""
        topic = self.topics.get(name)
        return topic.partitions if topic else 0

    # -- requests --------------------------------------------------------------------------------------------------------

    def produce(self, node: int, request: Produce, reply: Reply) -> None:
        """Produce."""
        shelf = self.shelves.get(request.partition)
        code = self._closed(shelf, node)
        if shelf is None or code:
            reply(ProduceAnswer(code=code))
        elif not shelf.seat.writable:
            reply(ProduceAnswer(code=codes.NOT_ENOUGH_REPLICAS))
        elif batch_bytes(request.records) > shelf.most:
            reply(ProduceAnswer(code=codes.MSG_SIZE_TOO_LARGE))
        else:
            shelf.seat.submit(
                lambda: self._append(shelf, request, reply), lambda code: reply(ProduceAnswer(code=code)), keep=True
            )

    def fetch(self, node: int, request: Fetch, reply: Reply) -> None:
        """Fetch."""
        shelf = self.shelves.get(request.partition)
        code = self._closed(shelf, node)
        if shelf is None or code:
            reply(FetchAnswer(code=code))
            return
        log = shelf.log
        if not log.start <= request.offset <= log.end:
            reply(FetchAnswer(code=codes.OFFSET_OUT_OF_RANGE, start=log.start, end=log.stable, high_watermark=log.end))
            return
        answer = self._look(log, request)
        if answer.next_offset > request.offset or request.max_wait_s <= 0:
            reply(answer)
            return
        timer = self._kernel.after(request.max_wait_s, lambda: self._give_up(shelf, waiter), shelf.seat.host)
        waiter = _Waiter(request=request, reply=self._nodes[node].later(reply), timer=timer)
        shelf.waiters.append(waiter)

    def list_offset(self, node: int, request: ListOffset, reply: Reply) -> None:
        """ListOffsets."""
        shelf = self.shelves.get(request.partition)
        code = self._closed(shelf, node)
        if shelf is None or code:
            reply(OffsetAnswer(code=code))
            return
        reply(OffsetAnswer(offset=shelf.log.start if request.spec == -2 else shelf.log.visible(request.committed_only)))

    def mark(self, partition: Partition, pid: int, epoch: int, commit: bool) -> None:
        """A transaction's marker."""
        shelf = self.shelves.get(partition)
        if shelf is not None and shelf.log.mark(pid, epoch, commit):
            self._serve(shelf)

    # -- cleaning --------------------------------------------------------------------------------------------------------

    def delete_before(self, partition: Partition, offset: int) -> None:
        """Move a partition's start. Raises KeyError."""
        self.shelves[partition].log.delete_before(offset)

    def compact(self, partition: Partition, up_to: int | None = None) -> int:
        """See `Log.compact`. Raises KeyError."""
        shelf = self.shelves[partition]
        retention_ms = int(self.topics[partition[0]].settings["delete.retention.ms"])
        return shelf.log.compact(shelf.seat.now_ms(), retention_ms, up_to)

    def _sweep(self) -> None:
        for topic in self.topics.values():
            retention_ms = int(topic.settings["retention.ms"])
            if "delete" in topic.settings["cleanup.policy"] and retention_ms >= 0:
                for number in range(topic.partitions):
                    shelf = self.shelves[topic.name, number]
                    if shelf.seat.well:
                        shelf.log.delete_before(shelf.log.older_than(shelf.seat.now_ms() - retention_ms))
        self._kernel.after(self._settings.retention_sweep_s, self._sweep)

    # -- steps -----------------------------------------------------------------------------------------------------------

    def _closed(self, shelf: Shelf | None, node: int) -> int:
        if shelf is None:
            return codes.UNKNOWN_TOPIC_OR_PART
        return codes.NONE if shelf.seat.leader == node else codes.NOT_LEADER_FOR_PARTITION

    def _append(self, shelf: Shelf, request: Produce, reply: Reply) -> None:
        log = shelf.log
        if request.transactional and not log.has_open(request.pid, request.epoch):
            code = self._verify(request.pid, request.epoch, request.partition)
            if code:
                reply(ProduceAnswer(code=code))
                return
        code, offset, append_ms = log.append(
            request.records,
            shelf.seat.now_ms(),
            pid=request.pid,
            epoch=request.epoch,
            sequence=request.sequence,
            transactional=request.transactional,
        )
        reply(ProduceAnswer(code=code, offset=offset, append_ms=append_ms))
        if not code:
            self._serve(shelf)

    def _look(self, log: Log, request: Fetch) -> FetchAnswer:
        end = log.visible(request.committed_only)
        if request.offset < end:
            found, next_offset = log.read(request.offset, request.committed_only, request.limit)
        else:
            found, next_offset = [], request.offset
        return FetchAnswer(records=tuple(found), next_offset=next_offset, end=end, high_watermark=log.end, start=log.start)

    def _serve(self, shelf: Shelf) -> None:
        if not shelf.waiters:
            return
        waiters, shelf.waiters = shelf.waiters, []
        for waiter in waiters:
            answer = self._look(shelf.log, waiter.request)
            if answer.next_offset > waiter.request.offset:
                waiter.timer.cancel()
                waiter.reply(answer)
            else:
                shelf.waiters.append(waiter)

    def _give_up(self, shelf: Shelf, waiter: _Waiter) -> None:
        if waiter in shelf.waiters:
            shelf.waiters.remove(waiter)
            waiter.reply(self._look(shelf.log, waiter.request))

    def _send_away(self, shelf: Shelf, code: int) -> None:
        waiters, shelf.waiters = shelf.waiters, []
        for waiter in waiters:
            waiter.timer.cancel()
            waiter.reply(FetchAnswer(code=code))


def batch_bytes(records: tuple[NewRecord, ...]) -> int:
    """About what a batch takes, not compressed."""
    size = BATCH_BYTES
    for record in records:
        size += RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
        for name, value in record.headers:
            size += 2 + len(name) + len(value or b"")
    return size
