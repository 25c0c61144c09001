"""The transaction coordinators of all nodes: one state for each transactional id, as in Kafka's first transaction protocol, whose
epoch stays the same from one transaction of a producer to the next.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from proof.simulation.broker import codes
from proof.simulation.broker.node import Reply
from proof.simulation.broker.seat import Seat
from proof.simulation.broker.settings import Settings
from proof.simulation.kernel import Kernel
from proof.simulation.protocol import AddOffsets, AddPartitions, Answer, EndTxn, InitProducerId, Partition, ProducerIdAnswer

LAST_EPOCH: Final = 32_766
Done = Callable[[int], None]


class State(StrEnum):
    """Of a transactional id."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED: Final = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


class Participants(Protocol):
    """The partitions that a transaction writes to."""

    def seat_of(self, partition: Partition) -> Seat | None:
        """None: there is no such partition (any more)."""
        ...

    def mark(self, partition: Partition, pid: int, epoch: int, commit: bool) -> None:
        """Write a marker."""
        ...

    def offsets_partition(self, group: str) -> Partition:
        """Where the group's offsets are kept."""
        ...


class Entry:
    """What is known of a transactional id. `pending`: a change is being written."""

    __slots__ = (
        "epoch",
        "last_epoch",
        "name",
        "partitions",
        "pending",
        "pid",
        "seat",
        "started_ms",
        "state",
        "timeout_s",
        "unmarked",
        "updated_ms",
    )

    def __init__(self, name: str, seat: Seat, pid: int, timeout_s: float) -> None:
        self.name, self.seat, self.pid, self.timeout_s = name, seat, pid, timeout_s
        self.epoch = self.last_epoch = -1
        self.state = State.EMPTY
        self.partitions: set[Partition] = set()
        self.unmarked: set[Partition] = set()
        self.pending = False
        self.started_ms = self.updated_ms = seat.now_ms()


class Transactions:
    """`seats`: the partitions of the coordinators' own topic."""

    def __init__(self, kernel: Kernel, settings: Settings, seats: list[Seat], participants: Participants) -> None:
        self._kernel, self._settings, self._seats, self._participants = kernel, settings, seats, participants
        self.entries: dict[str, Entry] = {}
        self._by_pid: dict[int, Entry] = {}
        self._ongoing: dict[str, Entry] = {}
        self._last_pid = 999
        self._sweeping = False
        self.forgets = False
        """What the broker ends by itself gets no markers: a lone broker in the first second after it was killed."""
        self.forgotten: list[tuple[Partition, int, int]] = []
        """The markers that are missing so: partition, producer id, epoch."""
        for seat in seats:
            seat.on_loaded.append(lambda seat=seat: self._loaded(seat))  # type: ignore[misc]
        kernel.after(settings.id_sweep_s, self._sweep_ids)

    def seat(self, transactional_id: str) -> Seat:
        """The partition that keeps it."""
        return self._seats[zlib.crc32(transactional_id.encode()) % len(self._seats)]

    # -- requests --------------------------------------------------------------------------------------------------------

    def init(self, node: int, request: InitProducerId, reply: Reply) -> None:
        """A producer id, or the next epoch of the one that the id has; an open transaction is aborted first."""
        if not request.transactional_id:
            reply(ProducerIdAnswer(pid=self._next_pid(), epoch=0))
            return
        code = self._closed(node, request.transactional_id)
        if not code and request.timeout_s > self._settings.max_transaction_s:
            code = codes.INVALID_TRANSACTION_TIMEOUT
        if code:
            reply(ProducerIdAnswer(code=code))
            return
        entry = self.entries.get(request.transactional_id)
        if entry is None:
            entry = Entry(request.transactional_id, self.seat(request.transactional_id), self._next_pid(), request.timeout_s)
            self.entries[entry.name] = self._by_pid[entry.pid] = entry
        if entry.pending or entry.state in PREPARED:
            reply(ProducerIdAnswer(code=codes.CONCURRENT_TRANSACTIONS))
        elif request.pid >= 0 and entry.epoch >= 0 and request.pid != entry.pid:
            reply(ProducerIdAnswer(code=codes.PRODUCER_FENCED))
        elif entry.state == State.ONGOING:
            self._fence(entry, lambda code: reply(ProducerIdAnswer(code=code or codes.CONCURRENT_TRANSACTIONS)))
        else:
            self._bump(entry, request, reply)

    def add_partitions(self, node: int, request: AddPartitions, reply: Reply) -> None:
        """AddPartitionsToTxn; also opens the transaction."""
        if any(self._participants.seat_of(partition) is None for partition in request.partitions):
            reply(Answer(code=codes.UNKNOWN_TOPIC_OR_PART))
            return
        self._add(node, request.transactional_id, request.pid, request.epoch, set(request.partitions), reply)

    def add_offsets(self, node: int, request: AddOffsets, reply: Reply) -> None:
        """AddOffsetsToTxn."""
        partitions = {self._participants.offsets_partition(request.group)}
        self._add(node, request.transactional_id, request.pid, request.epoch, partitions, reply)

    def end(self, node: int, request: EndTxn, reply: Reply) -> None:
        """Whoever has producer id and epoch ends the transaction that is open now, whichever he means."""
        entry, code = self._own(node, request.transactional_id, request.pid, request.epoch)
        if entry is not None and not code:
            if entry.pending:
                code = codes.CONCURRENT_TRANSACTIONS
            elif entry.state == State.ONGOING:
                self._decide(entry, request.commit, entry.epoch, lambda code: reply(Answer(code=code)))
                return
            else:
                code = _repeated(entry.state, request.commit)
        reply(Answer(code=code))

    def verify(self, pid: int, epoch: int, partition: Partition) -> int:
        """Whether a write to a partition belongs to the transaction that is open: what the partition's leader asks before it
        begins one there."""
        entry = self._by_pid.get(pid)
        if entry is None:
            return codes.INVALID_PRODUCER_ID_MAPPING
        if not entry.seat.coordinates:
            return codes.NOT_ENOUGH_REPLICAS
        if entry.epoch != epoch:
            return codes.INVALID_PRODUCER_EPOCH
        if entry.state in PREPARED:
            return codes.NOT_ENOUGH_REPLICAS  # the broker's way of saying "again, please" to older clients
        return codes.NONE if partition in entry.partitions else codes.INVALID_TXN_STATE

    # -- steps -----------------------------------------------------------------------------------------------------------

    def _closed(self, node: int, transactional_id: str) -> int:
        seat = self.seat(transactional_id)
        return seat.coordinator_code(node) or (codes.NONE if seat.writable else codes.COORDINATOR_NOT_AVAILABLE)

    def _own(self, node: int, transactional_id: str, pid: int, epoch: int) -> tuple[Entry | None, int]:
        code = self._closed(node, transactional_id)
        if code:
            return None, code
        entry = self.entries.get(transactional_id)
        if entry is None or entry.pid != pid:
            return None, codes.INVALID_PRODUCER_ID_MAPPING
        if entry.epoch != epoch:
            return None, codes.INVALID_PRODUCER_EPOCH  # PRODUCER_FENCED, as the broker says it to clients of this age
        return entry, codes.NONE

    def _add(self, node: int, transactional_id: str, pid: int, epoch: int, partitions: set[Partition], reply: Reply) -> None:
        entry, code = self._own(node, transactional_id, pid, epoch)
        if entry is None or code:
            reply(Answer(code=code))
        elif entry.pending or entry.state in PREPARED:
            reply(Answer(code=codes.CONCURRENT_TRANSACTIONS))
        elif entry.state == State.ONGOING and partitions <= entry.partitions:
            reply(Answer())
        else:
            opened = entry

            def change() -> None:
                now_ms = opened.seat.now_ms()
                if opened.state != State.ONGOING:
                    opened.state, opened.started_ms = State.ONGOING, now_ms
                    self._ongoing[opened.name] = opened
                    self._arm_sweep()
                opened.partitions |= partitions
                opened.updated_ms = now_ms

            self._write(entry, change, lambda code: reply(Answer(code=code)))

    def _bump(self, entry: Entry, request: InitProducerId, reply: Reply) -> None:
        pid, epoch, last = entry.pid, entry.epoch + 1, -1
        if request.pid >= 0 and entry.epoch >= 0:
            if request.epoch == entry.last_epoch:
                epoch, last = entry.epoch, entry.last_epoch  # the answer to the first one was lost
            elif request.epoch == entry.epoch:
                last = entry.epoch
            else:
                reply(ProducerIdAnswer(code=codes.PRODUCER_FENCED))
                return
        if epoch > LAST_EPOCH:
            pid, epoch = self._next_pid(), 0

        def change() -> None:
            self._by_pid.pop(entry.pid, None)
            entry.pid, entry.epoch, entry.last_epoch = pid, epoch, last
            self._by_pid[pid] = entry
            entry.state, entry.timeout_s, entry.updated_ms = State.EMPTY, request.timeout_s, entry.seat.now_ms()

        def done(code: int) -> None:
            reply(ProducerIdAnswer(code=code) if code else ProducerIdAnswer(pid=pid, epoch=epoch))

        self._write(entry, change, done)

    def _fence(self, entry: Entry, done: Done, *, forgets: bool = False) -> None:
        self._decide(entry, False, entry.epoch + 1, done, forgets=forgets)

    def _decide(self, entry: Entry, commit: bool, epoch: int, done: Done, *, forgets: bool = False) -> None:
        def change() -> None:
            entry.epoch = epoch
            entry.state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
            entry.updated_ms = entry.seat.now_ms()
            entry.unmarked = set(entry.partitions)
            self._ongoing.pop(entry.name, None)
            if entry.seat.leader >= 0:
                self._send_markers(entry, forgets=forgets)

        self._write(entry, change, done)

    def _write(self, entry: Entry, change: Callable[[], None], done: Done) -> None:
        entry.pending = True

        def apply() -> None:
            entry.pending = False
            change()
            done(codes.NONE)

        def drop(code: int) -> None:
            entry.pending = False
            done(codes.NOT_COORDINATOR if code == codes.NOT_LEADER_FOR_PARTITION else codes.COORDINATOR_NOT_AVAILABLE)

        entry.seat.submit(apply, drop)

    # -- markers ---------------------------------------------------------------------------------------------------------

    def _send_markers(self, entry: Entry, *, forgets: bool = False) -> None:
        term = entry.seat.term
        if forgets:
            self.forgotten += [(partition, entry.pid, entry.epoch) for partition in sorted(entry.unmarked)]
            entry.unmarked.clear()
        for partition in sorted(entry.unmarked):
            self._later(entry, lambda partition=partition: self._mark(entry, partition, term))  # type: ignore[misc]
        if not entry.unmarked:
            self._later(entry, lambda: self._complete(entry, term))

    def _mark(self, entry: Entry, partition: Partition, term: int) -> None:
        if entry.seat.term != term or partition not in entry.unmarked:
            return  # another coordinator has taken over: it sends them
        seat = self._participants.seat_of(partition)
        if seat is None:
            self._marked(entry, partition, term)
        elif not seat.well:
            seat.when_well(lambda: self._mark(entry, partition, term))
        else:
            pid, epoch, commit = entry.pid, entry.epoch, entry.state == State.PREPARE_COMMIT

            def apply() -> None:
                self._participants.mark(partition, pid, epoch, commit)
                self._marked(entry, partition, term)

            seat.submit(apply, lambda _: self._later(entry, lambda: self._mark(entry, partition, term)))

    def _marked(self, entry: Entry, partition: Partition, term: int) -> None:
        if entry.seat.term != term:
            return
        entry.unmarked.discard(partition)
        if not entry.unmarked:
            self._complete(entry, term)

    def _complete(self, entry: Entry, term: int) -> None:
        if entry.seat.term != term or entry.pending or entry.state not in PREPARED:
            return

        def change() -> None:
            entry.state = State.COMPLETE_COMMIT if entry.state == State.PREPARE_COMMIT else State.COMPLETE_ABORT
            entry.partitions = set()
            entry.updated_ms = entry.seat.now_ms()

        def done(code: int) -> None:
            if code == codes.COORDINATOR_NOT_AVAILABLE:
                self._kernel.after(1.0, lambda: self._complete(entry, term), entry.seat.host)

        self._write(entry, change, done)

    def _later(self, entry: Entry, action: Callable[[], None]) -> None:
        self._kernel.after(self._kernel.random.uniform(*self._settings.marker_s), action, entry.seat.host)

    def _loaded(self, seat: Seat) -> None:
        for entry in list(self.entries.values()):
            if entry.seat is seat and entry.state in PREPARED and not entry.pending:
                entry.unmarked = set(entry.partitions)
                self._send_markers(entry, forgets=self.forgets)

    # -- time ------------------------------------------------------------------------------------------------------------

    def _arm_sweep(self) -> None:
        if self._sweeping:
            return
        self._sweeping = True
        interval_s = self._settings.transaction_sweep_s
        self._kernel.after(interval_s - self._kernel.now_s % interval_s, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = False
        for entry in list(self._ongoing.values()):
            able = entry.seat.coordinates and entry.seat.writable and not entry.pending
            if able and entry.started_ms + entry.timeout_s * 1000 < entry.seat.now_ms():
                self._fence(entry, lambda _: None, forgets=self.forgets)
        if self._ongoing:
            self._arm_sweep()

    def _sweep_ids(self) -> None:
        idle = PREPARED | {State.ONGOING}
        for entry in list(self.entries.values()):
            old = entry.updated_ms + self._settings.id_expiry_s * 1000 <= entry.seat.now_ms()
            if old and entry.seat.coordinates and not entry.pending and entry.state not in idle:
                del self.entries[entry.name]
                self._by_pid.pop(entry.pid, None)
        self._kernel.after(self._settings.id_sweep_s, self._sweep_ids)

    def _next_pid(self) -> int:
        self._last_pid += 1
        return self._last_pid


def _repeated(state: State, commit: bool) -> int:
    """The answer to an EndTxn where no transaction is open."""
    match state, commit:
        case (State.COMPLETE_COMMIT, True) | (State.COMPLETE_ABORT, False):
            return codes.NONE
        case (State.PREPARE_COMMIT, True) | (State.PREPARE_ABORT, False):
            return codes.CONCURRENT_TRANSACTIONS
    return codes.INVALID_TXN_STATE
