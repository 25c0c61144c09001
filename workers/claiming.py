"""W2: the claim transactions of one incarnation: claim events and dispatch offsets, committed together or not at all.

One at a time; offers that come meanwhile go into the next. Failure: refused by generation, the writer goes on (grants decide
what a claim is worth). In doubt, or over for good, the home partition of `attempts` is read back to learn which claims
stand, and a fresh incarnation makes the next ones (W6).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence

from dueline.scheduler.core.ports import (
    Clock,
    Expired,
    Fenced,
    LogAdmin,
    Outgoing,
    Received,
    Refused,
    TransactionWriter,
    Unavailable,
    WriteError,
)
from dueline.scheduler.kafka.errors import NotAuthorized
from dueline.schemas.base import NONE
from dueline.schemas.codec import decode_as
from dueline.schemas.errors import DecodeError
from dueline.schemas.work import Dispatch, EventKind
from dueline.workers.events import Ask, ClaimsAnswered, Event, InDoubt, SignedOff
from dueline.workers.logging import once
from dueline.workers.loop import standing
from dueline.workers.offers import Batch
from dueline.workers.readback import RETRY_S, Pause, Stuck, read_back
from dueline.workers.records import Origin
from dueline.workers.registry import Registry
from dueline.workers.signoff import end, sign_off
from dueline.workers.threads import Tasks
from dueline.workers.trail import Ending, Trail

log = logging.getLogger(__name__)


class Claiming:
    """See the module's text. `attempts_from`: end of the home partition of `attempts` before the first claim."""

    def __init__(
        self,
        incarnation: str,
        writer: TransactionWriter,
        *,
        origin: Origin,
        admin: LogAdmin,
        clock: Clock,
        tasks: Tasks,
        looks: Tasks,
        pause: Pause,
        post: Callable[[Event], None],
        attempts_from: int,
    ) -> None:
        self.incarnation = incarnation
        self._writer = writer
        self._origin = origin
        self._admin = admin
        self._clock = clock
        self._tasks = tasks
        self._looks = looks
        self._pause = pause
        self._post = post
        self._attempts_from = attempts_from  # only the task that runs touches it
        home = (origin.namespace.attempts, origin.home)
        self._trail = Trail([home], group=origin.namespace.worker_group(origin.queue), admin=admin, clock=clock)
        self._numbers = itertools.count(1)
        self._waits = 0  # tries in a row that met no broker
        self.flying = False
        self._looked = True  # the last `_look` has ended
        self._stops = False
        self._doubted = False  # what it wrote to end a transaction is not known to be committed
        self._closed = False

    # -- the loop's side -----------------------------------------------------------------------------------------------

    def claim(self, batch: Batch, registry: Registry) -> list[Ask]:
        """Send the claims of these offers off; returns them with their numbers."""
        asks = [self._ask(record, registry) for record in batch.records]
        self.flying = True
        self._tasks.submit(lambda: self._post(self._write(batch, asks)))
        return asks

    def serve(self) -> None:
        """Let the writer hear its client, unless claims are on their way; and look whether what it wrote can be read."""
        if self._stops:
            return
        if not self.flying:
            self._tasks.submit(self._writer.serve)
        if self._looked and not self._trail.readable and not self._doubted:
            self._looked = False
            self._looks.submit(self._look)

    def sign_off(self) -> None:
        """Nothing more is claimed: see that all claims can be read. It comes as SignedOff."""
        self._stops = True
        self._tasks.submit(lambda: self._looks.submit(lambda: self._post(self._sign_off())))  # after what is on its way

    def answered(self) -> None:
        """The claims on their way have an outcome."""
        self.flying = False

    def close(self) -> None:
        """Abandon the writer, after what is on its way."""
        self._stops = self._closed = True
        self._tasks.submit(self._writer.close)
        self._tasks.close()

    def _ask(self, record: Received, registry: Registry) -> Ask:
        id = (self.incarnation, next(self._numbers))
        try:
            dispatch = decode_as(Dispatch, record.value or b"")
        except DecodeError as error:
            log.error("offer at %s/%d offset %d cannot be read, declined: %s", record.topic, record.partition, record.offset,
                      error, extra={"action": "worker.offer-undecodable"})  # fmt: skip
            where = f"{record.topic}/{record.partition} offset {record.offset}"
            return Ask(record=record, dispatch=None, id=id, declined=f"undecodable offer at {where}: {error}")
        declined = ""
        if registry.get(dispatch.job.handler) is None:
            declined = f"no handler {dispatch.job.handler!r}"
        return Ask(record=record, dispatch=dispatch, id=id, declined=declined)

    # -- the task's side -----------------------------------------------------------------------------------------------

    def _write(self, batch: Batch, asks: Sequence[Ask]) -> ClaimsAnswered:
        origin = self._origin
        try:
            steps_from = self._admin.end_offset((origin.namespace.steps, origin.home))
        except Unavailable as error:
            log.log(once(self._waits), "claims wait: %s", error, extra={"action": "worker.claim-waits"})
            self._waits += 1
            self._pause(RETRY_S)
            return ClaimsAnswered(incarnation=self.incarnation, batch=batch, unclaimed=asks)
        self._waits = 0
        records = [record for ask in asks for record in self._events(ask, steps_from)]
        try:
            delivered = self._writer.write([records], offsets=batch.offsets)
        except Refused as error:
            log.info("claims refused, the group has moved on: %s", error, extra={"action": "worker.claim-refused"})
            return ClaimsAnswered(incarnation=self.incarnation, batch=batch, unclaimed=asks, refused=True)
        except Fenced as error:
            return ClaimsAnswered(incarnation=self.incarnation, batch=batch, unclaimed=asks, writer_over=str(error))
        except WriteError as error:
            self._post(InDoubt(incarnation=self.incarnation, error=str(error)))
            return self._recover(batch, asks, error)
        received_s = self._clock.monotonic_s()
        self._attempts_from = delivered[-1].offset + 1
        self._trail.wrote(delivered)
        return ClaimsAnswered(
            incarnation=self.incarnation,
            batch=batch,
            claimed=asks,
            append_ms=max(one.append_ms for one in delivered),
            received_s=received_s,
        )

    def _look(self) -> None:
        """Apart from the claims: a broker that does not answer holds up none."""
        try:
            if not self._stops and not self._trail.look() and (ending := self._trail.ending()) is not None:
                self._tasks.submit(lambda: self._end(ending))
        except (Unavailable, NotAuthorized) as error:
            log.debug("incarnation %s: whether its claims can be read cannot be told now: %s", self.incarnation, error)
        finally:
            self._looked = True

    def _end(self, ending: Ending) -> None:
        if self._stops:
            return
        try:
            end(self.incarnation, ending, self._trail, self._writer)
        except WriteError as error:
            self._doubted = True
            self._post(InDoubt(incarnation=self.incarnation, error=str(error)))

    def _sign_off(self) -> SignedOff:
        readable = sign_off(
            self.incarnation, self._trail, self._writer, clock=self._clock, pause=self._pause,
            goes_on=lambda: not self._closed,
        )  # fmt: skip
        return SignedOff(incarnation=self.incarnation, readable=readable and not self._doubted)

    def _recover(self, batch: Batch, asks: Sequence[Ask], error: WriteError) -> ClaimsAnswered:
        home = (self._origin.namespace.attempts, self._origin.home)
        try:
            records = read_back(
                self._admin, [(home, self._attempts_from)], goes_on=lambda: not self._closed, pause=self._pause,
                serve=self._writer.serve,
            )  # fmt: skip
        except (Expired, Stuck) as gone:
            log.warning("claims cannot be read back: %s", gone, extra={"action": "worker.read-back-fails"})
            records = None
        stands = standing(records or [], self.incarnation)
        claimed = [ask for ask in asks if stands & {(ask.id[1], EventKind.CLAIMED, ""), (ask.id[1], EventKind.DECLINED, "")}]
        unclaimed = [ask for ask in asks if ask not in claimed]
        return ClaimsAnswered(
            incarnation=self.incarnation, batch=batch, claimed=claimed, unclaimed=unclaimed, writer_over=str(error)
        )

    def _events(self, ask: Ask, steps_from: int) -> list[Outgoing]:
        origin, dispatch = self._origin, ask.dispatch
        if dispatch is None:
            run = (ask.record.key or b"").decode(errors="replace")
            return [origin.declined(ask.id, run, 0, ask.declined, (header_term(ask.record), NONE))]
        offer = (dispatch.term, dispatch.seq)
        events = [origin.claimed(ask.id, dispatch.run, dispatch.attempt, offer, steps_from)]
        if ask.declined:
            events.append(origin.declined(ask.id, dispatch.run, dispatch.attempt, ask.declined, offer))
        return events


def header_term(record: Received) -> int:
    """The term an undecodable offer names in its headers, if it does."""
    for name, value in record.headers:
        if name == "term":
            try:
                return int(value)
            except ValueError:
                return NONE
    return NONE
