"""librdkafka's transaction manager: its states, its retries, and the flags of its errors.

    init -> waiting for an id -> ready -> in transaction -> committing -> (acknowledged by the caller) ready
                                          in transaction | failed -> aborting -> (acknowledged) ready
    any -> fatal, for ever

EndTxn is repeated for as long as it takes after a time-out or a broken connection, also when the caller has gone away, and
success is reported whichever copy was answered. An abort as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.call import FATAL, PERMANENT, Call
from proof.simulation.client.errors import NO_ERROR, fencing_as_one, kafka_error, name, told
from proof.simulation.client.identity import Identity
from proof.simulation.client.map import Map
from proof.simulation.client.outbox import Outbox
from proof.simulation.client.wire import Wire
from proof.simulation.protocol import AddPartitions, Answer, EndTxn, Partition

NOW_S: Final = 0.0
BUSY_S: Final = 0.02  # AddPartitionsToTxn while the last transaction's markers are written
LATER_S: Final = 0.5

FENCING: Final = frozenset({
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_TXN_STATE,
})
MOVED: Final = frozenset({KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE})
LOST: Final = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE})
WAITING: Final = frozenset({KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.CONCURRENT_TRANSACTIONS})
FORGOTTEN: Final = frozenset({KafkaError.UNKNOWN_PRODUCER_ID, KafkaError.INVALID_PRODUCER_ID_MAPPING})


class State(StrEnum):
    """Named as librdkafka names them in its texts."""

    INIT = "Init"
    WAIT_PID = "WaitPID"
    READY_NOT_ACKED = "ReadyNotAcked"
    READY = "Ready"
    IN_TRANSACTION = "InTransaction"
    BEGIN_COMMIT = "BeginCommit"
    COMMITTING = "CommittingTransaction"
    COMMIT_NOT_ACKED = "CommitNotAcked"
    BEGIN_ABORT = "BeginAbort"
    ABORTING = "AbortingTransaction"
    ABORT_NOT_ACKED = "AbortedNotAcked"
    FAILED = "AbortableError"
    FATAL = "FatalError"


class Transactions:
    """One transactional producer's. Nothing here waits: results go to `call`."""

    def __init__(self, wire: Wire, world: Map, call: Call, transactional_id: str) -> None:
        self.id = transactional_id
        self.state = State.INIT
        self.call = call
        self.wire, self.map = wire, world
        self.outbox = Outbox(wire, world, self, transactional=True)
        self.owner = Identity(wire, world, transactional_id, self._owned, self.fail_for_good)
        self.sent = False
        """Whether the coordinator may know of the transaction: an EndTxn is needed."""
        self._error: KafkaError | None = None
        self._failed_reports = 0
        self._needs_bump = False
        self._registered: set[Partition] = set()
        self._wanted: dict[Partition, None] = {}
        self._asked: tuple[Partition, ...] = ()
        self._scheduled = False
        self.backoff_s = wire.settings.seconds("retry.backoff.ms", 100)
        self.backoff_max_s = wire.settings.seconds("retry.backoff.max.ms", 1000)

    # -- what the outbox asks ----------------------------------------------------------------------------------------

    def identity(self) -> tuple[int, int] | None:
        """Records go out in an open transaction only."""
        if self.state not in (State.IN_TRANSACTION, State.BEGIN_COMMIT):
            return None
        return self.owner.pid, self.owner.epoch

    def may_send(self, partition: Partition) -> bool:
        """Whether the coordinator knows the partition."""
        if partition in self._registered:
            return True
        if partition not in self._asked:
            self._wanted[partition] = None
            self._register_in(NOW_S)
        return False

    def batch_failed(self, partition: Partition, code: int, count: int) -> bool:
        """Never sent again: the transaction is over."""
        text = f"ProduceRequest for {partition[0]} [{partition[1]}] with {count} message(s) failed: {told(code)}"
        if code in (KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED):
            self.fail_for_good(KafkaError._FENCED, f"{text}: transactional producer fenced by newer producer instance")
        else:
            self._needs_bump |= code in (*FORGOTTEN, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
            self.fail(code, f"{text}: current transaction must be aborted")
        return False

    def expired(self) -> None:
        """Their reports have failed: the transaction is over, and with it their sequence."""
        self._needs_bump = True

    def report_failed(self) -> None:
        """The transaction cannot be committed any more."""
        self._failed_reports += 1

    # -- failures ----------------------------------------------------------------------------------------------------

    def required(self, *states: State) -> KafkaError | None:
        """None in one of these states; else what is wrong."""
        if self.state in states:
            return None
        if self.state in (State.FAILED, State.FATAL) and self._error is not None:
            fatal = self.state is State.FATAL
            return kafka_error(self._error.code(), self._error.str(), fatal=fatal, requires_abort=not fatal)
        return kafka_error(KafkaError._STATE, f"Operation not valid in state {self.state}")

    def fail(self, code: int, text: str) -> None:
        """The transaction must be aborted."""
        if self.state is State.FATAL or self._error is not None:
            return
        self._error = kafka_error(code, text)
        bump = ", requires epoch bump" if self._needs_bump else ""
        line = f"Current transaction failed in state {self.state}: {text} ({name(code)}{bump})"
        self.wire.log(logging.ERROR, "TXNERR", line)
        if self.state in (State.IN_TRANSACTION, State.BEGIN_COMMIT, State.COMMITTING):
            self.state = State.FAILED
        self.outbox.purge()

    def fail_for_good(self, code: int, text: str) -> None:
        """The client is of no use any more. Whatever serves events next raises it, once."""
        if self.state is State.FATAL:
            return
        self.wire.log(logging.CRITICAL, "TXNERR", f"Fatal transaction error: {text} ({name(code)})")
        self._error = kafka_error(code, text)
        self.state = State.FATAL
        self.wire.raise_fatal(code, text)
        self.outbox.purge()
        self.call.finish(kafka_error(code, text, fatal=True))

    # -- init and begin ----------------------------------------------------------------------------------------------

    def init(self) -> None:
        """The first call's work."""
        error = self.required(State.INIT, State.WAIT_PID, State.READY_NOT_ACKED)
        if error is not None:
            self.call.finish(error)
        elif self.state is State.READY_NOT_ACKED:
            self.call.finish()
        else:
            self.state = State.WAIT_PID
            self.owner.acquire()

    def acknowledge(self, before: State) -> KafkaError | None:
        """The caller has heard of the success."""
        error = self.required(before)
        if error is None:
            if before is not State.READY_NOT_ACKED:
                self._registered.clear()
                self._forget_wanted()
                self._needs_bump = self.sent = False
            self.state = State.READY
        return error

    def begin(self) -> KafkaError | None:
        """Local."""
        error = self.required(State.READY)
        if error is None:
            self.state = State.IN_TRANSACTION
            self._error = None
            self._failed_reports = 0
        return error

    def _owned(self) -> None:
        self.outbox.reset_sequences()
        if self.state is State.WAIT_PID:
            self.state = State.READY_NOT_ACKED
            self.call.finish()
        elif self.state in (State.BEGIN_ABORT, State.ABORTING):
            self.state = State.ABORT_NOT_ACKED
            self.call.finish()

    # -- partitions --------------------------------------------------------------------------------------------------

    def _forget_wanted(self) -> None:
        self._wanted.clear()
        self._asked = ()

    def _register_in(self, delay_s: float) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.wire.after(delay_s, self._register)

    def _register(self) -> None:
        self._scheduled = False
        if self._asked or not self._wanted or self.identity() is None:
            return
        self._asked = tuple(sorted(self._wanted))
        self._wanted.clear()
        request = AddPartitions(
            transactional_id=self.id, pid=self.owner.pid, epoch=self.owner.epoch, partitions=self._asked
        )
        self.to_coordinator(request, lambda code, _: self._registered_or_not(request.partitions, code))
        self.sent = True

    def _registered_or_not(self, partitions: tuple[Partition, ...], code: int) -> None:
        if self._asked != partitions or self.identity() is None:
            self._asked = ()
            return
        self._asked = ()
        if code == NO_ERROR:
            self._registered.update(partitions)
            self.outbox.go_on()
            self._register_in(NOW_S)
            return
        if code in FENCING:
            code = fencing_as_one(code)
            self.fail_for_good(code, f"Failed to add partitions to transaction: {told(code)}")
        elif code in LOST or code in MOVED or code in WAITING or code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            if code in LOST or code in MOVED:
                self.map.forget_coordinator(self.id, transactional=True, wait_s=0.05 if code in LOST else LATER_S)
            self._wanted.update(dict.fromkeys(partitions))
            self._register_in(BUSY_S if code == KafkaError.CONCURRENT_TRANSACTIONS else LATER_S)
        else:
            topic, number = partitions[0]
            text = f'Failed to add partition "{topic}" [{number}] to transaction: {told(code)}'
            self.wire.log(logging.ERROR, "ADDPARTS", text)
            self._needs_bump |= code in FORGOTTEN
            self.fail(code, f"Failed to add partition(s) to transaction on broker: {told(code)}")

    # -- the end -----------------------------------------------------------------------------------------------------

    def begin_commit(self) -> KafkaError | None:
        """No record comes any more."""
        error = self.required(State.IN_TRANSACTION, State.BEGIN_COMMIT, State.COMMITTING, State.COMMIT_NOT_ACKED)
        if error is None and self.state is State.IN_TRANSACTION:
            self.state = State.BEGIN_COMMIT
        return error

    def commit(self) -> None:
        """All records are acknowledged: EndTxn."""
        error = self.required(State.BEGIN_COMMIT, State.COMMITTING, State.COMMIT_NOT_ACKED)
        if error is not None or self.state is State.COMMIT_NOT_ACKED:
            self.call.finish(error)
        elif self.state is State.BEGIN_COMMIT and self._failed_reports:
            text = f"{self._failed_reports} message(s) failed delivery (see individual delivery reports)"
            self.fail(KafkaError._INCONSISTENT, text)
            self.call.finish(kafka_error(KafkaError._INCONSISTENT, text, requires_abort=True))
        elif self.state is State.BEGIN_COMMIT:
            self._end(commit=True)

    def begin_abort(self) -> KafkaError | None:
        """What waits is dropped."""
        error = self.required(
            State.IN_TRANSACTION, State.BEGIN_ABORT, State.ABORTING, State.FAILED, State.ABORT_NOT_ACKED
        )
        if error is None and self.state in (State.IN_TRANSACTION, State.FAILED):
            self.state = State.BEGIN_ABORT
            self._forget_wanted()
        return error

    def abort(self) -> None:
        """Nothing is under way any more: EndTxn."""
        error = self.required(State.BEGIN_ABORT, State.ABORTING, State.ABORT_NOT_ACKED)
        if error is not None or self.state is State.ABORT_NOT_ACKED:
            self.call.finish(error)
        elif self.state is State.BEGIN_ABORT:
            self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        if not self.sent:
            self._ended(commit=commit)
            return
        self.state = State.COMMITTING if commit else State.ABORTING
        request = EndTxn(transactional_id=self.id, pid=self.owner.pid, epoch=self.owner.epoch, commit=commit)
        self._send_end(request, self.backoff_s)

    def _send_end(self, request: EndTxn, backoff_s: float) -> None:
        self.to_coordinator(request, lambda code, _: self._end_answered(request, code, backoff_s))

    def _end_answered(self, request: EndTxn, code: int, backoff_s: float) -> None:
        what = "commit" if request.commit else "abort"
        if self.state is State.FAILED:
            if code == NO_ERROR and request.commit:
                self.call.finish(self._error, FATAL)
            else:
                self.call.finish(self._error, PERMANENT)
            return
        if self.state not in (State.COMMITTING, State.ABORTING):
            return
        if code == NO_ERROR:
            self._ended(commit=request.commit)
        elif code in LOST or code in MOVED or code in WAITING:
            if code not in WAITING:
                self.map.forget_coordinator(self.id, transactional=True, wait_s=0.05 if code in LOST else LATER_S)
            again_s = min(backoff_s * 2, self.backoff_max_s)
            self.wire.after(backoff_s, lambda: self._send_end(request, again_s))
        elif code in FENCING:
            same = fencing_as_one(code)
            self.fail_for_good(same, f"Failed to end transaction: {told(same)}")
        elif code in FORGOTTEN and not request.commit:
            self.owner.acquire()
        else:
            if self.state is State.ABORTING:
                self.state = State.BEGIN_ABORT
            self._needs_bump |= code in FORGOTTEN
            self.fail(code, f"Failed to end transaction: {told(code)}")
            self.call.finish(kafka_error(code, f"EndTxn {what} failed: {told(code)}"), PERMANENT)

    def _ended(self, *, commit: bool) -> None:
        if self._needs_bump:
            self.owner.acquire()
            return
        self.state = State.COMMIT_NOT_ACKED if commit else State.ABORT_NOT_ACKED
        self.call.finish()

    # -- requests ----------------------------------------------------------------------------------------------------

    def to_coordinator(self, request: AddPartitions | EndTxn, on_end: Callable[[int, Answer | None], None]) -> None:
        """To the transaction coordinator, once it is known."""
        self.map.seek_coordinator(
            self.id, lambda node: self.wire.ask(node, request, on_end, coordinator=True), transactional=True
        )
