"""One transactional producer, and one transaction of it: begin, offsets, produce group by group, commit.

Outcomes are the four kinds of the port. Each call has a time-out shorter than the transaction's, and stands under the
watchdog. States: open -> (write)* -> over. After any failure the producer is over, but for a refused claim (W6).
The offsets go first: what is refused has then written nothing, and in turns (L11) they meet no markers of their own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from dueline.scheduler.core.ports import (
    Aborted,
    BeforeCommit,
    Delivered,
    Doubtful,
    Fenced,
    GroupOffsets,
    Outgoing,
    Partition,
    Refused,
    Unavailable,
    UnfencedOffset,
)

from . import client
from .capture import checked
from .clock import monotonic_s
from .config import KafkaConfig
from .doubt import DoubtLatch
from .errors import ConfigError, NotAuthorized, WriteNotAuthorized
from .failpoints import reach
from .failure import Failure, classify, resource_of
from .outage import Outage
from .timing import Timing
from .watchdog import Watchdog

log = logging.getLogger(__name__)

WATCH_MARGIN_S: Final = 20.0  # a call may overrun its own time-out a little on a starved host; a hang lasts for ever
TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
OWN_FAULT: Final = TOO_LARGE | {KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD, KafkaError._UNKNOWN_PARTITION}
"""Errors about one record, not about the transaction."""
SHOWN: Final = 5  # partitions named in a message
ABORT_S: Final = 5.0  # a successor's init_transactions aborts as well, so there is no use in waiting long
PURGED: Final = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_LAST_NAME: Final = re.compile(r"\((\w+)(?:, [^)]*)?\)$")
_REFUSED_TOPIC: Final = re.compile(r'partition "([^"]+)" \[\d+\] to transaction: .*authorization failed')
DERIVED_S: Final = 3.0  # for a group that can be written again later: a partition without a leader must not hold up the rest
INIT_S: Final = 15.0
PATIENCE_S: Final = 0.05  # how soon the first client is asked what it was told; each new one has twice as much
LONGEST_PATIENCE_S: Final = 0.4  # within the half second no request is on its way


class TransactionalProducer:
    """Not for two threads at a time."""

    def __init__(
        self, config: KafkaConfig, transactional_id: str, *, name: str, timing: Timing, watchdog: Watchdog
    ) -> None:
        self.transactional_id = transactional_id
        self._name = name
        self._timing = timing
        self._watchdog = watchdog
        self._latch = DoubtLatch(monotonic_s)
        self._outage = Outage(transactional_id)
        self._over = ""
        self._refused_topic = ""
        self._delivered: list[Delivered | None] = []
        self._places: list[Partition] = []
        self._refused: dict[int, bool] = {}  # place -> whether for its size
        self._failed: tuple[str, KafkaError] | None = None
        self._cause: KafkaError | None = None
        self._config = config
        self._producer: Producer | None = self._opened()

    def _opened(self) -> Producer:
        own = self._timing.settings(self.transactional_id)
        return client.producer(self._config, self._outage.note, self._on_line, self._latch.counted, **own)

    def init(self) -> None:
        """Fence older owners of the id and abort what they left open. Raises Fenced, Unavailable, NotAuthorized."""
        try:
            self._initialise()
        except KafkaException as exception:
            self._over = "it was never initialised"
            error = client.kafka_error(exception)
            failure = classify(error)
            if failure is Failure.UNAUTHORIZED:
                raise NotAuthorized(f"transactional id {self.transactional_id!r}", "WRITE") from None
            if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise ConfigError(
                    f"the broker's transaction.max.timeout.ms is below the {self._timing.transaction_s:.0f} s that "
                    f"{self.transactional_id} needs; raise it there"
                ) from None
            if failure is Failure.FENCED:
                raise Fenced(f"{self.transactional_id}: another owner initialised it meanwhile ({error})") from None
            raise Unavailable(f"{self.transactional_id}: no transaction coordinator answered ({error})") from None

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None,
        before_commit: BeforeCommit | None,
        survives_refusal: bool,
    ) -> list[Delivered]:
        """One transaction. Raises Fenced, Refused, Aborted, Doubtful; ValueError when the offsets are no fence."""
        fence = checked(offsets) if offsets is not None else None
        if self._over:
            raise Fenced(f"{self.transactional_id} is used no more: {self._over}")
        try:
            self._begin()
            if fence is not None:
                self._send_offsets(*fence)
            delivered = self._produce(groups)
            reach(f"{self._name}.before-commit")
            reason = before_commit(delivered) if before_commit is not None else None
            if reason:
                self._abort()
                raise Aborted(f"{self.transactional_id}: not committed: {reason}")
            self._commit()
        except Refused as refused:
            if not survives_refusal:
                self._over = str(refused)
            raise
        except BaseException as error:
            self._over = str(error) or type(error).__name__  # a bug inside `before_commit` leaves the transaction open
            raise
        reach(f"{self._name}.after-commit")
        self._outage.back()
        return delivered

    def close(self) -> None:
        """Abandon the client; nothing is aborted here, a successor's `init` does that."""
        self._over = self._over or "it was closed"
        self._drop()

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with self._watchdog.guard(f"closing {self.transactional_id}", WATCH_MARGIN_S):
                producer.purge()
                del producer

    def serve(self) -> None:
        """Hear what the client has to say, between two writes."""
        if self._producer is not None:
            self._serve()

    # --- steps --------------------------------------------------------------------------------------------------------

    def _initialise(self) -> None:
        """While the broker ends an older owner's transaction, which takes milliseconds, it tells the client to come again, and
        the client does so half a second later. A new one asks at once; the one thrown away has no request on its way."""
        deadline, patience_s = monotonic_s() + INIT_S, PATIENCE_S
        ending = False
        while True:
            if ending:  # not while its exception is handled, whose traceback would keep the old client
                self._drop()
                self._producer = self._opened()
                patience_s = min(patience_s * 2, LONGEST_PATIENCE_S)
            try:
                self._call("init_transactions", self._client.init_transactions, patience_s)
            except KafkaException as exception:
                error = client.kafka_error(exception)
                if classify(error) is not Failure.RETRY or monotonic_s() >= deadline:
                    raise
                ending = error.code() == KafkaError.CONCURRENT_TRANSACTIONS
            else:
                return

    def _begin(self) -> None:
        self._delivered, self._places, self._refused = [], [], {}
        self._failed = None
        self._cause = None
        try:
            with client.callbacks_served():
                self._client.poll(0)
            self._client.begin_transaction()
        except KafkaException as exception:
            self._give_up("begin", exception)

    def _send_offsets(self, offsets: object, metadata: bytes) -> None:
        assert isinstance(offsets, dict)
        positions = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        reach(f"{self._name}.before-offsets")
        self._until_answered(
            "send_offsets_to_transaction",
            lambda timeout: self._client.send_offsets_to_transaction(positions, metadata, timeout),
        )
        reach(f"{self._name}.after-offsets")

    def _produce(self, groups: Sequence[Sequence[Outgoing]]) -> list[Delivered]:
        for group in groups:
            if group:
                for record in group:
                    self._produce_one(record)
                self._flush(DERIVED_S if all(record.derived for record in group) else self._timing.transaction_s)
        delivered = [one for one in self._delivered if one is not None]
        assert len(delivered) == len(self._delivered)
        return delivered

    def _produce_one(self, record: Outgoing) -> None:
        index = len(self._delivered)
        self._delivered.append(None)
        self._places.append((record.topic, record.partition))
        while True:
            try:
                self._client.produce(
                    record.topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=partial(self._on_delivery, index),
                    headers=list(record.headers),
                )
            except BufferError:
                self._serve(0.01)
            except KafkaException as exception:
                self._note_refused(index, client.kafka_error(exception))
                self._give_up(f"produce to {record.topic}", exception, record.topic)
            else:
                return

    def _flush(self, bound_s: float) -> None:
        deadline = monotonic_s() + min(bound_s, self._timing.transaction_s)
        try:
            while self._call("flush", self._client.flush, 1.0) and self._failed is None and monotonic_s() < deadline:
                pass
        except KafkaException as exception:
            self._give_up("flush", exception)
        if self._failed is not None:
            topic, error = self._failed
            purged = error.code() in PURGED  # all that was on its way is: whose fault it was is not known
            if purged and self._cause is not None:
                error = self._cause
            self._give_up(f"produce to {topic}", KafkaException(error), topic, sure=not purged)
        if None in self._delivered:  # the client's own count has log lines and statistics in it
            late = {place for place, one in zip(self._places, self._delivered, strict=True) if one is None}
            names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(late)[:SHOWN])
            error = KafkaError(KafkaError._TIMED_OUT, f"records not acknowledged in time: {names}")
            self._give_up("flush", KafkaException(error), late=tuple(sorted(late)))

    def _commit(self) -> None:
        self._latch.begin(self._serve)
        started = monotonic_s()
        self._commit_until_answered(started)
        took = monotonic_s() - started
        doubt = self._latch.reason(self._serve)
        if took > self._timing.doubt_bound_s:
            doubt = f"it took {took:.1f} s, more than {self._timing.doubt_bound_s:.1f} s"
        if doubt:
            raise Doubtful(
                f"{self.transactional_id}: the commit was acknowledged, but may have been sent twice, and the second copy "
                f"may end a later transaction: {doubt}"
            )

    def _commit_until_answered(self, started: float) -> None:
        while True:
            left = started + self._timing.transaction_s - monotonic_s()
            try:
                self._call("commit_transaction", self._client.commit_transaction, max(0.1, left))
            except KafkaException as exception:
                error = client.kafka_error(exception)
                failure = classify(error)
                if failure is Failure.RETRY:
                    if monotonic_s() - started < self._timing.transaction_s:
                        continue
                    took = monotonic_s() - started
                    raise Doubtful(f"{self.transactional_id}: commit not answered for {took:.1f} s ({error})") from None
                if failure is Failure.FENCED:
                    raise Fenced(f"{self.transactional_id}: commit refused ({error}): {self._lost(error)}") from None
                if not error.txn_requires_abort():
                    raise Doubtful(f"{self.transactional_id}: the commit ended in an unexpected error ({error})") from None
                self._give_up("commit", exception)
            else:
                return

    def _give_up(
        self, step: str, exception: KafkaException, topic: str = "", *, sure: bool = True, late: tuple[Partition, ...] = ()
    ) -> None:
        """Abort, and raise what the error means. `sure`: it is this topic that could not be written."""
        error = client.kafka_error(exception)
        failure = classify(error)
        where = f"{self.transactional_id}: {step}"
        if failure is Failure.FENCED:
            raise Fenced(f"{where}: {self._lost(error)} ({error})") from None
        try:
            aborted = self._abort()
        except Fenced:
            if failure is not Failure.UNAUTHORIZED:
                raise
            aborted = False  # the broker let nothing in, so it has no transaction to abort, and answers with an error
        if failure is Failure.UNAUTHORIZED:
            resource, operation = resource_of(error, self._refused_topic or topic, self.transactional_id)
            raise WriteNotAuthorized(resource, operation) from None
        if failure is not Failure.REFUSED:
            failed = Aborted(f"{where} failed, the transaction was aborted ({error})")
            failed.topic, failed.partitions, failed.refused = topic if sure else "", late, tuple(self._refused)
            failed.too_large = tuple(place for place, large in self._refused.items() if large)
            raise failed from None
        if not aborted:
            raise Aborted(f"{where} was refused by generation, and the abort was not acknowledged ({error})") from None
        raise Refused(
            f"{where} refused: the group generation is stale ({error}); this process no longer leads, or must capture "
            "its assignment again"
        ) from None

    def _abort(self) -> bool:
        """Whether the abort was acknowledged. Raises Fenced when it shows that the producer is lost."""
        try:
            self._call("abort_transaction", self._client.abort_transaction, ABORT_S)
        except KafkaException as exception:
            error = client.kafka_error(exception)
            if classify(error) is Failure.FENCED:
                raise Fenced(f"{self.transactional_id}: {self._lost(error)} ({error})") from None
            log.warning(
                "%s: abort not acknowledged (%s); the successor's initialisation aborts it",
                self.transactional_id,
                error,
                extra={"action": "transaction.abort-unanswered"},
            )
            return False
        return True

    # --- calls and callbacks ------------------------------------------------------------------------------------------

    @property
    def _client(self) -> Producer:
        if self._producer is None:
            raise Fenced(f"{self.transactional_id} is used no more: {self._over}")
        return self._producer

    def _call(self, what: str, call: Callable[[float], int | None], timeout_s: float) -> int | None:
        with self._watchdog.guard(f"{what} of {self.transactional_id}", timeout_s + WATCH_MARGIN_S), client.callbacks_served():
            return call(timeout_s)

    def _serve(self, timeout_s: float = 0.0) -> None:
        """Callbacks. A fatal error is raised by whatever serves it, once; the call that follows meets it again."""
        try:
            with client.callbacks_served():
                self._client.poll(timeout_s)
        except KafkaException as exception:
            log.debug("%s: %s", self.transactional_id, exception, extra={"action": "transaction.fatal"})

    def _until_answered(self, what: str, call: Callable[[float], None]) -> None:
        deadline = monotonic_s() + self._timing.transaction_s
        while True:
            try:
                self._call(what, call, max(0.1, deadline - monotonic_s()))
            except KafkaException as exception:
                if classify(client.kafka_error(exception)) is Failure.RETRY and monotonic_s() < deadline:
                    self._serve(0.01)
                    continue
                self._give_up(what, exception)
            else:
                return

    def _on_line(self, facility: str, text: str) -> None:
        self._latch.note(facility, text)
        refused = _REFUSED_TOPIC.search(text) if facility == "ADDPARTS" else None
        if refused is not None:
            self._refused_topic = refused[1]  # of several topics in a transaction, only the log says which one it was
        if facility == "TXNERR":
            # The records of a transaction that failed are only reported as purged; why it failed stands in the log.
            name = _LAST_NAME.search(text)
            code = getattr(KafkaError, name[1], None) if name else None
            known = code if isinstance(code, int) else KafkaError.UNKNOWN
            self._cause = KafkaError(known, text, txn_requires_abort=True)

    def _on_delivery(self, index: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:  # `message` is left alone: an exception may be pending in the client, and would surface here
            self._note_refused(index, error)
            if self._failed is None:
                self._failed = (self._places[index][0], error)
            return
        topic, number, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert number is not None
        assert offset is not None
        self._delivered[index] = Delivered(
            topic=topic, partition=number, offset=offset, append_ms=message.timestamp()[1]
        )

    def _note_refused(self, index: int, error: KafkaError) -> None:
        if error.code() in OWN_FAULT:
            self._refused[index] = error.code() in TOO_LARGE

    def _lost(self, error: KafkaError) -> str:
        if error.code() == KafkaError.INVALID_TXN_STATE or (error.fatal() and error.code() != KafkaError._FENCED):
            return "the client failed for good"
        return "a newer owner of this id exists, or the transaction timed out on the broker"
