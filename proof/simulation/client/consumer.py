"""`confluent_kafka.Consumer`, simulated: assigned partitions, or a member of a group. One task uses it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from dueline.scheduler.kafka.vocabulary import KafkaError, Message, TopicPartition
from proof.simulation.client.errors import NO_ERROR, failure, kafka_error
from proof.simulation.client.fetcher import EARLIEST, INVALID, LATEST, Fetcher
from proof.simulation.client.map import Map
from proof.simulation.client.membership import Membership, Partitions, Rebalance, metadata
from proof.simulation.client.settings import Settings
from proof.simulation.client.wire import Wire
from proof.simulation.kernel import FOREVER, Kernel
from proof.simulation.network import Network
from proof.simulation.protocol import ListOffset, OffsetAnswer, OffsetFetch, OffsetsAnswer, Partition

OnPartitions = Callable[[Any, list[TopicPartition]], None]
STORED: Final = -1000
UNSTABLE_PAUSE_S: Final = 0.1
UNSTABLE: Final = 88
CLOSE_S: Final = 10.0
Call = tuple[Rebalance, Partitions]


class SimConsumer:
    """Callbacks run inside poll, consume and close."""

    def __init__(self, kernel: Kernel, network: Network, settings: dict[str, Any], *, logger: Any = None) -> None:
        self._settings = Settings(settings)
        self._kernel = kernel
        name = f"{self._settings.text('client.id')}#consumer-1"
        self._wire = Wire(kernel, network, self._settings, logger, name)
        self._map = Map(self._wire)
        self._fetcher = Fetcher(self._wire, self._map, self._wire.events.changed)
        self._group = self._settings.text("group.id")
        self._membership: Membership | None = None
        self._to_serve: deque[Call | Message] = deque()
        self._on: dict[Rebalance, OnPartitions | None] = {}
        self._closed = False

    # -- what to read ------------------------------------------------------------------------------------------------

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Exactly these, from their offsets."""
        self._open()
        self._fetcher.stop(self._fetcher.partitions)
        self._read_from({(one.topic, one.partition): one.offset for one in partitions})

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: OnPartitions | None = None,
        on_revoke: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Join the group, in the background."""
        self._open()
        self._on = {Rebalance.ASSIGN: on_assign, Rebalance.REVOKE: on_revoke, Rebalance.LOST: on_lost or on_revoke}
        self._membership = Membership(self._wire, self._map, tuple(topics), self._rebalance, self._group_error)

    def unsubscribe(self) -> None:
        """Leave the group, read nothing any more."""
        self._open()
        self._on = {}
        self._leave(unsubscribes=True)
        self._membership = None

    def unassign(self) -> None:
        """Read nothing any more."""
        self._fetcher.stop(self._fetcher.partitions)

    def assignment(self) -> list[TopicPartition]:
        """What is read."""
        return [TopicPartition(*one) for one in sorted(self._fetcher.partitions)]

    def seek(self, partition: TopicPartition) -> None:
        """Read on from there. Raises KafkaException when it is not read."""
        self._open()
        one = (partition.topic, partition.partition)
        if self._fetcher.reading(one) is None:
            raise failure(KafkaError._STATE)
        self._fetcher.start(one, partition.offset)

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Of what was taken."""
        found = [(one, self._fetcher.reading((one.topic, one.partition))) for one in partitions]
        return [TopicPartition(one.topic, one.partition, got.taken if got else INVALID) for one, got in found]

    # -- messages ----------------------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """The next message or event; None when the time is over."""
        if self._closed:
            self._open()
        membership = self._membership
        if membership is not None:
            membership.polling(True)
        try:
            return self._next(self._kernel.now_s + timeout if timeout >= 0 else FOREVER)
        finally:
            if membership is not None:
                membership.polling(False)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Waits for all that was asked for, or the time-out."""
        self._open()
        until_s = self._kernel.now_s + timeout if timeout >= 0 else FOREVER
        taken: list[Message] = []
        membership = self._membership
        if membership is not None:
            membership.polling(True)
        try:
            while len(taken) < num_messages:
                message = self._next(until_s)
                if message is None:
                    break
                taken.append(message)
        finally:
            if membership is not None:
                membership.polling(False)
        return taken

    def _next(self, until_s: float) -> Message | None:
        events = self._wire.events
        while True:
            events.serve()
            if self._to_serve:
                told = self._serve_group()
                if told is not None:
                    return told
            message = self._fetcher.take()
            if message is not None:
                return message
            left_s = until_s - self._kernel.now_s
            if left_s <= 0:
                return None
            events.changed.wait(left_s)

    # -- the group ---------------------------------------------------------------------------------------------------

    def consumer_group_metadata(self) -> bytes:
        """As it stands this moment."""
        self._open()
        return self._membership.metadata if self._membership is not None else metadata(self._group, -1, "")

    def memberid(self) -> str:
        """"" while it has none."""
        return self._membership.member if self._membership is not None else ""

    def committed(self, partitions: Sequence[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """The group's offsets, -1001 where there is none. Raises KafkaException."""
        self._open()
        asked = tuple((one.topic, one.partition) for one in partitions)
        result = self._await(lambda done: self._ask_committed(asked, done), timeout)
        return [TopicPartition(*one, result.get(one, INVALID)) for one in asked]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float = -1, cached: bool = False) -> tuple[int, int]:
        """Start and end: of the last stable offset when asked, the high watermark when cached."""
        self._open()
        one = (partition.topic, partition.partition)
        reading = self._fetcher.reading(one)
        if cached:
            return (reading.start, reading.high_watermark) if reading is not None else (INVALID, INVALID)
        low = self._await(lambda done: self._ask_offset(one, EARLIEST, done), timeout)
        return low[one], self._await(lambda done: self._ask_offset(one, LATEST, done), timeout)[one]

    def close(self) -> None:
        """Revoke, leave, end."""
        if self._closed:
            return
        self._leave(unsubscribes=False)
        self._closed = True
        self._fetcher.stop(self._fetcher.partitions)
        self._wire.close()

    def _leave(self, *, unsubscribes: bool) -> None:
        membership = self._membership
        if membership is None:
            return
        self._to_serve.clear()
        held = membership.held & self._fetcher.partitions
        if held:
            self._call_back(Rebalance.REVOKE, held)
            self._fetcher.stop(held)
        left: list[bool] = []
        membership.close(lambda: self._left(left), unsubscribes=unsubscribes)
        until_s = self._kernel.now_s + CLOSE_S
        while not left and self._kernel.now_s < until_s:
            self._wire.events.changed.wait(until_s - self._kernel.now_s)

    def _left(self, left: list[bool]) -> None:
        left.append(True)
        self._wire.events.changed.wake_all()

    def _rebalance(self, what: Rebalance, partitions: Partitions) -> None:
        """In the client's thread: nothing is delivered until the callback was served."""
        self._fetcher.paused = True
        self._to_serve.append((what, partitions))
        self._wire.events.changed.wake_all()

    def _group_error(self, code: int, text: str) -> None:
        self._to_serve.append(Message(error=kafka_error(code, text)))
        self._wire.events.changed.wake_all()

    def _serve_group(self) -> Message | None:
        while self._to_serve:
            one = self._to_serve.popleft()
            if isinstance(one, Message):
                return one
            what, partitions = one
            self._call_back(what, partitions)
            assert self._membership is not None
            if what is Rebalance.ASSIGN:
                self._read_from(dict.fromkeys(sorted(partitions), STORED))
            else:
                self._fetcher.stop(partitions)
            self._fetcher.paused = False
            self._membership.served(what)
        return None

    def _call_back(self, what: Rebalance, partitions: Partitions) -> None:
        called = self._on.get(what)
        if called is not None:
            called(self, [TopicPartition(*one) for one in sorted(partitions)])

    # -- offsets -----------------------------------------------------------------------------------------------------

    def _read_from(self, offsets: dict[Partition, int]) -> None:
        stored = tuple(one for one, offset in offsets.items() if offset in (STORED, INVALID))
        for one, offset in offsets.items():
            if one not in stored:
                self._fetcher.start(one, offset)
        if stored:
            for one in stored:
                self._fetcher.hold(one)
            self._ask_committed(stored, lambda found: self._found(stored, found))

    def _found(self, partitions: tuple[Partition, ...], found: dict[Partition, int]) -> None:
        for one in partitions:
            if self._fetcher.held(one):
                self._fetcher.start(one, found.get(one, INVALID))

    def _ask_committed(self, partitions: tuple[Partition, ...], done: Callable[[dict[Partition, int]], None]) -> None:
        """Until there is an answer: pending offsets of open transactions are waited for."""

        def again() -> None:
            self._ask_committed(partitions, done)

        def end(code: int, answer: OffsetsAnswer | None) -> None:
            if code == NO_ERROR and answer is not None:
                done(answer.offsets)
                return
            if code != UNSTABLE:
                self._map.forget_coordinator(self._group, transactional=False)
            self._wire.after(UNSTABLE_PAUSE_S, again)

        request = OffsetFetch(group=self._group, partitions=partitions)
        self._map.seek_coordinator(self._group, lambda node: self._wire.ask(node, request, end), transactional=False)

    def _ask_offset(self, one: Partition, spec: int, done: Callable[[dict[Partition, int]], None]) -> None:
        committed_only = self._settings.text("isolation.level", "read_committed") == "read_committed"

        def end(code: int, answer: OffsetAnswer | None) -> None:
            if code == NO_ERROR and answer is not None:
                done({one: answer.offset})

        request = ListOffset(partition=one, spec=spec, committed_only=committed_only)
        self._map.seek_leader(one, lambda node: self._wire.ask(node, request, end), lambda _: None)

    def _await(self, ask: Callable[[Callable[[dict[Partition, int]], None]], None], timeout: float) -> dict[Partition, int]:
        results: list[dict[Partition, int]] = []

        def done(result: dict[Partition, int]) -> None:
            results.append(result)
            self._wire.events.changed.wake_all()

        until_s = self._kernel.now_s + timeout if timeout >= 0 else FOREVER
        ask(done)
        while not results:
            left_s = until_s - self._kernel.now_s
            if left_s <= 0:
                raise failure(KafkaError._TIMED_OUT)
            self._wire.events.changed.wait(left_s)
        return results[0]

    def _open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")
