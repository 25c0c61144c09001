"""`confluent_kafka.Producer`, simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dueline.scheduler.kafka.capture import Metadata
from dueline.scheduler.kafka.vocabulary import KafkaError, TopicPartition
from proof.simulation.client.call import Call
from proof.simulation.client.errors import failure
from proof.simulation.client.identity import Identity
from proof.simulation.client.map import Map
from proof.simulation.client.offsets import OffsetsCall
from proof.simulation.client.outbox import OnDelivery, Outbox
from proof.simulation.client.settings import Settings
from proof.simulation.client.transactions import State, Transactions
from proof.simulation.client.wire import Wire
from proof.simulation.kernel import FOREVER, Kernel
from proof.simulation.network import Network
from proof.simulation.protocol import NewRecord, Partition

OVERHEAD: Final = 70  # of a record, in librdkafka's reckoning of its size


class Plain:
    """What an idempotent producer without transactions is: an identity that it renews by itself."""

    def __init__(self, wire: Wire, world: Map) -> None:
        self.outbox = Outbox(wire, world, self, transactional=False)
        self._identity = Identity(wire, world, "", self._owned, wire.raise_fatal)
        self._identity.acquire()

    def identity(self) -> tuple[int, int] | None:
        """None until a broker gave one."""
        return (self._identity.pid, self._identity.epoch) if self._identity.known else None

    def may_send(self, _partition: Partition) -> bool:
        """Anything."""
        return True

    def batch_failed(self, _partition: Partition, code: int, _count: int) -> bool:
        """Sequences begin anew under a higher epoch; what was refused for its number goes out again."""
        self._identity.bump()
        self.outbox.reset_sequences()
        return code in (
            KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.UNKNOWN_PRODUCER_ID, KafkaError.INVALID_PRODUCER_EPOCH
        )  # fmt: skip

    def expired(self) -> None:
        """A late copy must not pass for the next record: sequences begin anew here, too."""
        self._identity.bump()
        self.outbox.reset_sequences()

    def report_failed(self) -> None:
        """The report says it."""

    def _owned(self) -> None:
        self.outbox.go_on()


class SimProducer:
    """Idempotent, and transactional with a `transactional.id`. Any task of its host. The object is a handle: when nobody holds it
    any more, the client's threads end and its connections close, as with the real one."""

    def __init__(self, kernel: Kernel, network: Network, settings: dict[str, Any], *, logger: Any = None) -> None:
        self._settings = Settings(settings)
        id_ = self._settings.text("transactional.id")
        front = self._settings.text("client.id", "rdkafka")
        self._kernel = kernel
        self._wire = Wire(kernel, network, self._settings, logger, f"{front}#producer-1")
        self._map = Map(self._wire)
        self._call = Call(kernel)
        self._transactions = Transactions(self._wire, self._map, self._call, id_) if id_ else None
        self._outbox = self._transactions.outbox if self._transactions else Plain(self._wire, self._map).outbox
        self._largest = self._settings.number("message.max.bytes", 1_000_000)
        self._most = self._settings.number("queue.buffering.max.messages", 100_000)

    def __del__(self) -> None:
        wire = getattr(self, "_wire", None)
        if wire is not None:
            wire.close()

    def __len__(self) -> int:
        """Records not yet reported, and other events that wait."""
        return max(self._outbox.count, len(self._wire.events))

    # -- records -----------------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Sequence[tuple[str, bytes]] | dict[str, bytes] | None = None,
        callback: OnDelivery | None = None,
    ) -> None:
        """Queue one. Raises KafkaException, BufferError."""
        del timestamp
        if self._transactions is not None:
            state = self._transactions.state
            if state is State.FATAL:
                raise failure(KafkaError._FATAL)
            if state is not State.IN_TRANSACTION:
                raise failure(KafkaError._STATE)
        pairs = tuple(headers.items()) if isinstance(headers, dict) else tuple(headers or ())
        record = NewRecord(key=_bytes(key), value=_bytes(value), headers=pairs)
        if _size(record) > self._largest:
            raise failure(KafkaError.MSG_SIZE_TOO_LARGE)
        if self._map.lacks((topic, partition)):
            raise failure(KafkaError._UNKNOWN_PARTITION)
        if self._outbox.count >= self._most:
            raise BufferError("Local: Queue full")
        self._outbox.add((topic, partition), record, on_delivery or callback)

    def poll(self, timeout: float = -1) -> int:
        """Serve events: those there are, or the first that come in time; how many."""
        served = self._wire.events.serve()
        until_s = self._until_s(timeout)
        while not served and self._kernel.now_s < until_s:
            self._wire.events.changed.wait(self._left_s(until_s))
            served = self._wire.events.serve()
        return served

    def flush(self, timeout: float = -1) -> int:
        """Serve until nothing is under way; how much still is."""
        until_s = self._until_s(timeout)
        self._wire.events.serve()
        while self._outbox.count:
            if self._kernel.now_s >= until_s:
                break
            self._wire.events.changed.wait(self._left_s(until_s))
            self._wire.events.serve()
        return self._outbox.count

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fail what waits and what is under way."""
        del blocking
        self._outbox.purge(queued=in_queue, in_flight=in_flight)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Not part of what dueline's producers use."""
        raise NotImplementedError(topic, timeout)

    # -- transactions ------------------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float = -1) -> None:
        """Raises KafkaException."""
        txn = self._begin("init_transactions")
        if timeout < 0:
            timeout = self._settings.seconds("transaction.timeout.ms", 60_000) * 2
        error = self._call.wait(txn.init, self._until_s(timeout))
        if error is not None:
            refused = txn.owner.failed
            if error.code() == KafkaError._TIMED_OUT and refused and refused != KafkaError._TIMED_OUT:
                error = failure(refused, "Failed to initialize Producer ID", retriable=True).args[0]
            self._return(error, resumable=True)
            return
        self._return(txn.acknowledge(State.READY_NOT_ACKED), resumable=False)

    def begin_transaction(self) -> None:
        """Raises KafkaException."""
        txn = self._begin("begin_transaction")
        self._return(txn.begin(), resumable=False)

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], group_metadata: bytes, timeout: float = -1
    ) -> None:
        """Raises KafkaException."""
        txn = self._begin("send_offsets_to_transaction")
        limit_s = self._settings.seconds("transaction.timeout.ms", 60_000)
        until_s = self._kernel.now_s + (min(timeout, limit_s) if timeout >= 0 else limit_s)
        offsets = {(one.topic, one.partition): one.offset for one in positions if one.offset >= 0}
        if not offsets:
            self._return(None, resumable=False)  # no request at all, whoever asks
            return
        metadata = Metadata.parse(group_metadata)
        work = OffsetsCall(
            txn,
            offsets=offsets,
            group=metadata.group,
            generation=metadata.generation,
            member=metadata.member,
            until_s=until_s,
        )
        self._return(self._call.wait(work.start, FOREVER), resumable=False)

    def commit_transaction(self, timeout: float = -1) -> None:
        """Raises KafkaException; after `_TIMED_OUT` it goes on, and may be called again."""
        txn = self._begin("commit_transaction")
        self._end(txn.begin_commit, txn.commit, State.COMMIT_NOT_ACKED, timeout)

    def abort_transaction(self, timeout: float = -1) -> None:
        """Raises KafkaException; after `_TIMED_OUT` it goes on, and may be called again."""
        txn = self._begin("abort_transaction")
        self._end(txn.begin_abort, txn.abort, State.ABORT_NOT_ACKED, timeout, before_flush=self._outbox.purge)

    def _end(
        self,
        first: Callable[[], KafkaError | None],
        work: Callable[[], None],
        done: State,
        timeout: float,
        before_flush: Callable[[], None] = lambda: None,
    ) -> None:
        assert self._transactions is not None
        until_s = self._until_s(timeout)
        error = first()
        if error is not None:
            self._return(error, resumable=False)
            return
        before_flush()
        try:
            left = self.flush(self._left_s(until_s) if until_s != FOREVER else -1)
        except BaseException:
            self._call.pause()
            raise
        if left:
            text = f"Failed to flush all outstanding messages within the API timeout: {left} message(s) remaining"
            self._return(failure(KafkaError._TIMED_OUT, text, retriable=True).args[0], resumable=True)
            return
        error = self._call.wait(work, until_s)
        if error is not None:
            self._return(error, resumable=True)
            return
        self._return(self._transactions.acknowledge(done), resumable=False)

    def _begin(self, name: str) -> Transactions:
        if self._transactions is None:
            raise failure(KafkaError._NOT_CONFIGURED, "The Transactional API requires transactional.id to be configured")
        error = self._call.begin(name)
        if error is not None:
            raise failure(error.code(), error.str(), retriable=True)
        return self._transactions

    def _return(self, error: KafkaError | None, *, resumable: bool) -> None:
        self._call.end(error, resumable=resumable)
        if error is not None:
            raise failure(
                error.code(),
                error.str(),
                fatal=error.fatal(),
                retriable=error.retriable(),
                requires_abort=error.txn_requires_abort(),
            )

    def _until_s(self, timeout: float) -> float:
        return self._kernel.now_s + timeout if timeout >= 0 else FOREVER

    def _left_s(self, until_s: float) -> float:
        return max(0.0, until_s - self._kernel.now_s)


def _bytes(given: bytes | str | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def _size(record: NewRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return OVERHEAD + len(record.key or b"") + len(record.value or b"") + headers
