"""`send_offsets_to_transaction`: AddOffsetsToTxn to the one coordinator, TxnOffsetCommit to the other."""

from __future__ import annotations

import logging
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.call import FATAL, PERMANENT, RETRY
from proof.simulation.client.errors import NO_ERROR, fencing_as_one, kafka_error, told
from proof.simulation.client.transactions import LOST, MOVED, WAITING, State, Transactions
from proof.simulation.protocol import AddOffsets, Answer, Partition, TxnOffsetCommit

PAUSE_S: Final = 0.5  # librdkafka's fixed one between two TxnOffsetCommit

ADD_FATAL: Final = frozenset({
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_TXN_STATE,
})
"""PRODUCER_FENCED is not among them: it is told as fenced, but only the transaction fails."""
COMMIT_FATAL: Final = ADD_FATAL | {KafkaError.INVALID_PRODUCER_ID_MAPPING}


class OffsetsCall:
    """One call. Nothing here waits."""

    def __init__(
        self,
        transactions: Transactions,
        *,
        offsets: dict[Partition, int],
        group: str,
        generation: int,
        member: str,
        until_s: float,
    ) -> None:
        self._txn = transactions
        self._offsets, self._group, self._generation, self._member = offsets, group, generation, member
        self._until_s = until_s
        self._added_offsets = self._over = False
        self._backoff_s = transactions.backoff_s

    def start(self) -> None:
        """The call's work; the result goes to `call`."""
        error = self._txn.required(State.IN_TRANSACTION)
        if error is not None:
            self._finish(error)
            return
        limit_s = self._txn.wire.settings.seconds("transaction.timeout.ms", 60_000)
        self._txn.wire.after(limit_s, self._expire)
        self._add()

    def _expire(self) -> None:
        """The caller's own time-out does not count while the coordinator is away: librdkafka's request waits in its queue."""
        if not self._added_offsets:
            self._finish(kafka_error(KafkaError._TIMED_OUT, "Failed to add offsets to transaction on broker"), RETRY)

    def _finish(self, error: KafkaError | None = None, action: str = "") -> None:
        if not self._over:
            self._over = True
            self._txn.call.finish(error, action)

    def _add(self) -> None:
        txn = self._txn
        request = AddOffsets(transactional_id=txn.id, pid=txn.owner.pid, epoch=txn.owner.epoch, group=self._group)
        txn.sent = True
        txn.map.seek_coordinator(
            txn.id, lambda node: txn.wire.ask(node, request, self._added, coordinator=True), transactional=True
        )

    def _added(self, code: int, _answer: Answer | None) -> None:
        txn = self._txn
        if self._over:
            return
        left_s = self._until_s - txn.wire.now_s
        late = code == NO_ERROR and left_s <= 0
        if late:
            code = KafkaError._TIMED_OUT
        if code == NO_ERROR:
            self._added_offsets = True
            self._commit()
            return
        retry = code in LOST or code in MOVED or code in WAITING or code in (
            KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.REQUEST_TIMED_OUT
        )  # fmt: skip
        if code in LOST or code in MOVED:
            txn.map.forget_coordinator(txn.id, transactional=True, wait_s=0.05)
        if (code in LOST and not late) or (retry and left_s > 0):
            wait_s, self._backoff_s = self._backoff_s, min(self._backoff_s * 2, txn.backoff_max_s)
            txn.wire.after(wait_s, self._add_again)
            return
        same = fencing_as_one(code)
        text = f"Failed to add offsets to transaction on broker: {told(same)}"
        if code in ADD_FATAL:
            txn.fail_for_good(same, text)
            action = FATAL
        elif retry:
            action = RETRY
        else:
            txn.fail(same, text)
            action = PERMANENT
        txn.wire.log(logging.ERROR, "ADDOFFSETS", text)
        self._finish(kafka_error(same, text), action)

    def _add_again(self) -> None:
        if self._over:
            return
        if self._txn.state is State.IN_TRANSACTION:
            self._add()
        else:
            self._finish(self._txn.required(State.IN_TRANSACTION))

    def _commit(self) -> None:
        """No limit to the search for the group's coordinator: librdkafka has none either."""
        self._txn.map.seek_coordinator(self._group, self._send, transactional=False)

    def _send(self, node: int) -> None:
        txn = self._txn
        if self._over:
            return
        if txn.state is not State.IN_TRANSACTION:
            self._finish(txn.required(State.IN_TRANSACTION))
            return
        request = TxnOffsetCommit(
            transactional_id=txn.id,
            pid=txn.owner.pid,
            epoch=txn.owner.epoch,
            group=self._group,
            generation=self._generation,
            member=self._member,
            offsets=dict(self._offsets),
        )
        limit_s = max(0.001, min(self._until_s - txn.wire.now_s, txn.wire.settings.seconds("socket.timeout.ms", 60_000)))
        txn.wire.ask(node, request, self._committed, limit_s)

    def _committed(self, code: int, _answer: Answer | None) -> None:
        txn = self._txn
        if code == NO_ERROR:
            self._finish()
            return
        if code in LOST or code in MOVED or code == KafkaError.REQUEST_TIMED_OUT:
            txn.map.forget_coordinator(self._group, transactional=False, wait_s=0.0)
        same = fencing_as_one(code)
        text = f"Failed to commit offsets to transaction on broker: {told(same)}"
        again = code in LOST or code in MOVED or code in WAITING or code in (
            KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.REQUEST_TIMED_OUT
        )  # fmt: skip
        if again and self._until_s > txn.wire.now_s + PAUSE_S:
            txn.wire.after(PAUSE_S, self._commit)
            return
        if code in COMMIT_FATAL:
            txn.fail_for_good(same, text)
            self._finish(kafka_error(same, text), FATAL)
            return
        txn.fail(same, text)
        self._finish(kafka_error(same, text), PERMANENT)
