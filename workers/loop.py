"""The one group-commit loop of an incarnation: steps and finishes of all its slots, in transactions of its pair.

The process's loop hands writes in (`add`) and calls `flush`; while a transaction is on its way the next writes gather, so a
transaction holds whatever came meanwhile. The transaction itself runs in `tasks`, one after the other. A step's future is
resolved there, as soon as its commit is acknowledged: the handler need not wait for the loop.

Failure (W6): after a doubtful commit nothing is written until the home partition was read back up to the high watermark.
What stands there is committed; the rest is written again by the survivor, the producer that had no part in the doubt. If
there is none, or the pair is fenced, the pair is over: nothing of this incarnation can be written any more. After an aborted
one only those are failed whom the broker definitely refused; who wrote to a topic that did not answer waits (`silence`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from typing import Final

from dueline.scheduler.core.ports import (
    Aborted,
    Clock,
    Delivered,
    Expired,
    Fenced,
    LogAdmin,
    Outgoing,
    Partition,
    Received,
    TransactionWriter,
    Unavailable,
    WriteError,
)
from dueline.scheduler.kafka.errors import NotAuthorized
from dueline.schemas.codec import decode
from dueline.schemas.errors import DecodeError
from dueline.schemas.work import AttemptEvent, Step
from dueline.workers.errors import AttemptClosed, StepError
from dueline.workers.events import STEP_KIND, Event, InDoubt, SignedOff, Write, Written
from dueline.workers.readback import Pause, Stuck, read_back
from dueline.workers.signoff import end, sign_off
from dueline.workers.silence import Silence, ask, topics_of, unanswered, without
from dueline.workers.threads import Tasks
from dueline.workers.trail import Ending, Trail

MAX_WRITES: Final = 500
"""In one transaction: bounds how long those at its front wait for those at its end."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""In one transaction, by the size of the records; one write may be larger by itself."""

log = logging.getLogger(__name__)


class GroupCommit:
    """See the module's text. `starts`: offsets in the home partition of `attempts` and `steps` before anything of this
    incarnation was written."""

    def __init__(
        self,
        incarnation: str,
        writer: TransactionWriter,
        *,
        admin: LogAdmin,
        clock: Clock,
        tasks: Tasks,
        looks: Tasks,
        pause: Pause,
        post: Callable[[Event], None],
        starts: dict[Partition, int],
    ) -> None:
        self.incarnation = incarnation
        self._writer = writer
        self._admin = admin
        self._clock = clock
        self._tasks = tasks
        self._looks = looks
        self._pause = pause
        self._post = post
        self._starts = starts  # only the task that runs touches it
        self._trail = Trail(starts, admin=admin, clock=clock)
        self._pending: deque[Write] = deque()
        self._flying: Sequence[Write] = ()
        self._silence = Silence(clock.monotonic_s)
        self._over = ""
        self._looked = True  # the last `_look` has ended
        self._closed = False

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is on its way."""
        return not self._pending and not self._flying

    # -- the loop's side -----------------------------------------------------------------------------------------------

    def add(self, write: Write) -> None:
        """Write it with the next transaction."""
        if self._over:
            settle(write, AttemptClosed(f"incarnation {self.incarnation} is over: {self._over}"))
        else:
            self._pending.append(write)

    def flush(self) -> None:
        """Send off what waits, unless a transaction is on its way."""
        if self._flying or not self._pending or self._over:
            return
        self._refuse_outlived()
        waiting = self._silence.due(self._pending)
        if waiting:
            self._pending = without(self._pending, waiting)
            self._flying = waiting
            self._tasks.submit(lambda: self._post(self._write_apart(waiting)))
            return
        batch = self._flying = self._take()
        if batch:
            self._tasks.submit(lambda: self._post(self._write(batch)))

    def serve(self) -> None:
        """Let the writer hear its clients, unless a transaction is on its way; and look whether what it wrote can be read."""
        if self._over:
            return
        if not self._flying:
            self._tasks.submit(lambda: self._writer.serve())
        if self._looked and not self._trail.readable:
            self._looked = False
            self._looks.submit(self._look)

    def answered(self, written: Written) -> None:
        """The transaction on its way has an outcome."""
        self._flying = ()
        self._silence.begin(written.silent)
        for write in written.landed:
            self._silence.end(topics_of(write))
        if written.over:
            self.end(written.over)
            answer_landed(written)
        for write in reversed(written.again):
            if self._over:
                settle(write, AttemptClosed(f"incarnation {self.incarnation} is over: {self._over}"))
            else:
                self._pending.appendleft(write)

    def end(self, why: str) -> None:
        """Nothing more is written; whoever waits is told."""
        self._over = self._over or why
        closed = AttemptClosed(f"incarnation {self.incarnation} is over: {why}")
        for write in self._pending:
            settle(write, closed)
        self._pending.clear()

    def sign_off(self) -> None:
        """Nothing more is written: see that all of it can be read. It comes as SignedOff."""
        self._over = self._over or "it stops"
        self._tasks.submit(lambda: self._looks.submit(lambda: self._post(self._sign_off())))  # after what is on its way

    def close(self) -> None:
        """Abandon the writer, after what is on its way."""
        self._over, self._closed = self._over or "closed", True
        self._tasks.submit(lambda: self._writer.close())
        self._tasks.close()

    def _take(self) -> list[Write]:
        batch: list[Write] = []
        waiting: list[Write] = []
        size = 0
        while self._pending and len(batch) < MAX_WRITES and size < MAX_BYTES:
            write = self._pending.popleft()
            if self._silence.waits(write):
                waiting.append(write)
                continue
            size += sum(bytes_of(record) for record in (write.record, *write.produced))
            batch.append(write)
        self._pending.extendleft(reversed(waiting))
        return batch

    def _refuse_outlived(self) -> None:
        late = self._silence.outlived(self._pending)
        self._pending = without(self._pending, late)
        for write in late:
            topics = ", ".join(sorted(topics_of(write)))
            settle(write, AttemptClosed(f"the attempt is over; step {write.name!r} was not recorded: {topics} did not answer"))

    # -- the task's side -----------------------------------------------------------------------------------------------

    def _write(self, batch: Sequence[Write]) -> Written:
        doubts = [write.attempt.doubts if write.attempt is not None else 0 for write in batch]
        try:
            delivered = self._writer.write(groups(batch))
        except Fenced as error:
            return Written(incarnation=self.incarnation, landed=(), again=batch, over=str(error))
        except WriteError as error:
            log.warning("incarnation %s: a transaction of %d records is in doubt: %s", self.incarnation, len(batch), error,
                        extra={"action": "worker.doubt"})  # fmt: skip
            self._post(InDoubt(incarnation=self.incarnation, error=str(error)))
            return self._recover(batch, error)
        received_s = self._clock.monotonic_s()
        for write, seen in zip(batch, doubts, strict=True):
            if write.attempt is not None:
                write.attempt.proved(seen)
            settle(write)
        self._wrote(delivered)
        return Written(
            incarnation=self.incarnation,
            landed=batch,
            append_ms=max(one.append_ms for one in delivered),
            received_s=received_s,
        )

    def _write_apart(self, waiting: Sequence[Write]) -> Written:
        """Those of them whose topics can be written again; nobody else is in their transaction."""
        answers = ask(self._admin, sorted({topic for write in waiting for topic in topics_of(write)}))
        lost = [write for write in waiting if topics_of(write) & answers.missing]
        known = refuse_produced(waiting, "there is no such topic any more", lost)
        ready = [write for write in known if not topics_of(write) & answers.silent]
        rest = [write for write in known if topics_of(write) & answers.silent]
        if not ready:
            return Written(incarnation=self.incarnation, landed=(), again=rest)
        written = self._write(ready)
        return replace(written, again=[*written.again, *rest])

    def _wrote(self, delivered: Sequence[Delivered]) -> None:
        for one in delivered:
            place = (one.topic, one.partition)
            if place in self._starts:
                self._starts[place] = max(self._starts[place], one.offset + 1)
        self._trail.wrote(delivered)

    def _look(self) -> None:
        """Apart from the transactions: a broker that does not answer holds up none."""
        try:
            if not self._over and not self._trail.look() and (ending := self._trail.ending()) is not None:
                self._tasks.submit(lambda: self._end(ending))
        except (Unavailable, NotAuthorized) as error:
            log.debug("incarnation %s: whether what it wrote can be read cannot be told now: %s", self.incarnation, error)
        finally:
            self._looked = True

    def _end(self, ending: Ending) -> None:
        if self._over:
            return
        try:
            end(self.incarnation, ending, self._trail, self._writer)
        except WriteError as error:  # it may have aborted what was acknowledged: only as a whole it comes back
            self._post(Written(incarnation=self.incarnation, landed=(), over=str(error)))

    def _sign_off(self) -> SignedOff:
        readable = sign_off(
            self.incarnation, self._trail, self._writer, clock=self._clock, pause=self._pause,
            goes_on=lambda: not self._closed,
        )  # fmt: skip
        return SignedOff(incarnation=self.incarnation, readable=readable)

    def _recover(self, batch: Sequence[Write], error: WriteError) -> Written:
        try:
            records = read_back(
                self._admin, self._starts.items(), goes_on=lambda: not self._over, pause=self._pause, serve=self._writer.serve
            )
        except (Expired, Stuck) as gone:
            return Written(incarnation=self.incarnation, landed=(), again=batch, over=f"{error}; cannot read back: {gone}")
        if records is None:
            return Written(incarnation=self.incarnation, landed=(), again=batch, over=self._over)
        stands = standing(records, self.incarnation)
        landed = [write for write in batch if identity(write) in stands]
        again = [write for write in batch if identity(write) not in stands]
        survivor = self._writer.survivor()
        log.info("incarnation %s: read back, %d of %d records stand; %s", self.incarnation, len(landed), len(batch),
                 "going on with one producer" if survivor else "no producer is left",
                 extra={"action": "worker.doubt-resolved"})  # fmt: skip
        if survivor is None:
            return Written(incarnation=self.incarnation, landed=landed, again=again, over=str(error))
        silent: set[str] = set()
        if isinstance(error, Aborted):
            again = refuse_produced(again, error, suspects(batch, error))
            silent = unanswered(error, batch)
        for write in landed:
            settle(write)
        doubtful, self._writer = self._writer, survivor
        doubtful.close()
        return Written(incarnation=self.incarnation, landed=landed, again=again, silent=silent)


Identity = tuple[int, str, str]
"""Claim number, kind and step name: what tells a write of an incarnation from its others."""


def identity(write: Write) -> Identity:
    """Of a write."""
    return (write.id[1], write.kind, write.name)


def standing(records: Sequence[Received], incarnation: str) -> set[Identity]:
    """What of this incarnation stands among committed records of its home partition."""
    found: set[Identity] = set()
    for received in records:
        try:
            record = decode(received.value or b"")
        except DecodeError:
            continue  # not ours: we encode what we write
        if isinstance(record, Step) and record.incarnation == incarnation:
            found.add((record.claim, STEP_KIND, record.name))
        elif isinstance(record, AttemptEvent) and record.incarnation == incarnation:
            found.add((record.claim, record.kind, ""))
    return found


def groups(batch: Sequence[Write]) -> list[list[Outgoing]]:
    """What a step produced is flushed before its completion: a torn transaction never has a step without its records."""
    produced = [record for write in batch for record in write.produced]
    own = [write.record for write in batch]
    return [produced, own] if produced else [own]


def suspects(batch: Sequence[Write], error: Aborted) -> list[Write]:
    """The steps whose own records are why the transaction was aborted: what they wrote was refused, or the topic is not there or
    not theirs to write. A topic that only did not answer, or a reason that is not known, is nobody's fault.

    A broker refuses what it received together, so small records may be refused with a large one: of those refused for their
    size only those about as large as the largest are meant.
    """
    records = [(record, write) for write in batch for record in write.produced]
    refused = [(place, *records[place]) for place in error.refused if place < len(records)]
    largest = max((bytes_of(record) for place, record, _ in refused if place in error.too_large), default=0)
    guilty = [write for place, record, write in refused if place not in error.too_large or 2 * bytes_of(record) >= largest]
    if error.definite:
        guilty += [write for write in batch if error.topic in topics_of(write)]
    return [write for write in batch if any(write is each for each in guilty)]


def bytes_of(record: Outgoing) -> int:
    """Its size, about."""
    headers = sum(len(name) + len(content or b"") for name, content in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def refuse_produced(again: Sequence[Write], why: object, guilty: Sequence[Write]) -> list[Write]:
    """After an aborted transaction: the guilty steps are not tried again, and their handlers are told. The others."""
    kept = []
    for write in again:
        if any(write is each for each in guilty):
            topics = ", ".join(sorted(topics_of(write)))
            settle(write, StepError(f"step {write.name!r}: not recorded, since the transaction that was to carry its records "
                                    f"for {topics} was aborted: {why}"))  # fmt: skip
        else:
            kept.append(write)
    return kept


def settle(write: Write, error: BaseException | None = None) -> None:
    """Tell the handler that waits. The loop may have told it already that its attempt is over."""
    if write.answer is None:
        return
    if error is None and write.attempt is not None:
        write.attempt.committed()
    try:
        resolve(write.answer, error)
    except InvalidStateError:
        log.debug("claim %s: step %s was answered before", write.id, write.name)


def answer_landed(written: Written) -> None:
    """When all is over: only after the lease was revoked, or who waited begins a step that nobody can record any more."""
    for write in written.landed:
        settle(write)


def resolve(answer: Future[None], error: BaseException | None) -> None:
    """Set the future's result or exception."""
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
