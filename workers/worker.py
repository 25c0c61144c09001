"""The worker's protocol, one thread: every event in, every decision out. It waits for nothing; what blocks runs elsewhere
(see `threads`) and comes back as an event. `tick` is the whole of it, so a simulation can drive it by hand.

Owns: the claims and offers (pure state machines), the incarnations, the log clock, the running attempts.
Failure: a pair in doubt or a claim writer that is over -> a fresh incarnation beside the old one, which drains. An
incarnation that is over (fenced, no producer left) -> its attempts are closed, its claims dropped, a fresh one opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from dueline.scheduler.core.ports import Clock, Received
from dueline.schemas.codec import decode_as
from dueline.schemas.errors import DecodeError
from dueline.schemas.work import EventKind, Signal, SignalKind, WorkerState
from dueline.workers.acts import Acts
from dueline.workers.claim import Claims, Decision
from dueline.workers.events import (
    ClaimsAnswered,
    Event,
    HandlerEnded,
    HeartbeatAnswered,
    InDoubt,
    LeftGroup,
    OffersRead,
    Opened,
    SignalsRead,
    SignedOff,
    Sought,
    StepsRead,
    StepSubmitted,
    Written,
)
from dueline.workers.incarnation import Incarnation
from dueline.workers.logclock import LogClock
from dueline.workers.loop import answer_landed
from dueline.workers.offers import Offers, Seek
from dueline.workers.registry import Registry
from dueline.workers.settings import WorkerSettings

MAX_CLAIMS = 200
"""Offers in one claim transaction."""

SHORT_LIFE_S = 30.0
"""An incarnation lost sooner than this is followed after a pause, twice as long each time: what ended it may still stand."""

FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 30.0

SERVE_S = 1.0
"""How often idle producers are served. A connection that broke unheard would put the next commit in doubt, however long ago."""

MAX_WAIT_S = 0.2
"""Between two ticks at most, so that a stop is seen soon."""

log = logging.getLogger(__name__)


class Worker:
    """See the module's text."""

    def __init__(
        self,
        *,
        clock: Clock,
        registry: Registry,
        settings: WorkerSettings,
        claims: Claims,
        offers: Offers,
        acts: Acts,
        log_clock: LogClock,
        open_incarnation: Callable[[float], None],
        seek: Callable[[Seek], None],
    ) -> None:
        self._clock = clock
        self._registry = registry
        self._settings = settings
        self._open_incarnation = open_incarnation
        self._seek = seek
        self.claims = claims
        self.offers = offers
        self.acts = acts
        self.log_clock = log_clock
        self.incarnations: dict[str, Incarnation] = {}
        self.draining = False
        self._drain_ends_s = 0.0
        self._drain_ended = False
        self.left_group = False
        self._opening = False
        self._opened_s = 0.0
        self._pause_s = 0.0
        self._serve_s = 0.0

    # -- the whole of it -----------------------------------------------------------------------------------------------

    def tick(self, events: Sequence[Event]) -> float:
        """Take the events, act, and say in how many seconds to be called again at the latest."""
        for event in events:
            self._act(self._handle(event))
        now_s = self._clock.monotonic_s()
        leases = {name: one.lease.holds(now_s) for name, one in self.incarnations.items()}
        self._act(self.claims.tick(now_s, self.log_clock.offset_s, leases))
        self._end_drain(now_s)
        self._claim()
        for incarnation in list(self.incarnations.values()):
            incarnation.commits.flush()
            self._beat(incarnation)
            self._retire(incarnation)
        self._serve(now_s)
        return self._wait_s()

    def start(self) -> None:
        """Open the first incarnation."""
        self._open()

    def drain(self) -> None:
        """W10: give back what has not begun, stop claiming, let what runs finish within the time for that."""
        if self.draining:
            return
        self.draining = True
        self._drain_ends_s = self._clock.monotonic_s() + self._settings.drain_timeout_s
        for incarnation in self.incarnations.values():
            incarnation.state = WorkerState.DRAINING
            incarnation.heart.hasten()
        self._act(self.claims.drain())

    @property
    def over(self) -> bool:
        """Drained: every incarnation has sent its last heartbeat."""
        return self.draining and self.left_group and not self.incarnations

    def lease_holds(self, incarnation: str) -> bool:
        """Any thread."""
        one = self.incarnations.get(incarnation)
        return one is not None and one.lease.holds(self._clock.monotonic_s())

    # -- events --------------------------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> Sequence[Decision]:
        match event:
            case StepSubmitted():
                self._submit(event)
            case Written():
                return self._written(event)
            case HandlerEnded():
                self._ended(event)
            case SignalsRead():
                return self._signals(event.records)
            case OffersRead():
                if self.offers.received(event.assignment, event.records, event.epoch):
                    self._hasten()
            case ClaimsAnswered():
                return self._claims_answered(event)
            case HeartbeatAnswered():
                return self._heartbeat_answered(event)
            case StepsRead():
                self._steps_read(event)
            case Sought():
                self.offers.sought(event.epoch, done=event.done)
            case Opened():
                self._opened(event.incarnation)
            case InDoubt():
                self._succeed(event.incarnation, event.error)
            case SignedOff():
                self._signed_off(event)
            case LeftGroup():
                self.left_group = True
                self.offers.received(None, (), 0)
        return ()

    def _act(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            self.acts.act(decision, self._clock.monotonic_s(), self.incarnations)

    def _submit(self, event: StepSubmitted) -> None:
        incarnation = self.incarnations.get(event.id[0])
        write = self.acts.step_write(event)
        if incarnation is None:
            self.acts.refuse(write)
        else:
            incarnation.commits.add(write)

    def _written(self, event: Written) -> Sequence[Decision]:
        self._observe(event.append_ms, event.received_s)
        for write in event.landed:
            if write.kind in (EventKind.DECLINED, EventKind.FINISHED):
                self.claims.written(write.id)
        incarnation = self.incarnations.get(event.incarnation)
        if incarnation is None:  # it was lost while this was on its way
            if event.over:
                answer_landed(event)
            for write in event.again:
                self.acts.refuse(write)
            return ()
        decisions = self._lose(incarnation, event.over) if event.over else ()
        incarnation.commits.answered(event)
        return decisions

    def _ended(self, event: HandlerEnded) -> None:
        self.claims.ended(event.id)
        claim = self.claims.leaving(event.id)
        if claim is not None:
            self.acts.finish(claim, event.ended, self._clock.monotonic_s(), self.incarnations)
        self.acts.forget(event.id)

    def _signals(self, records: Sequence[Received]) -> Sequence[Decision]:
        decisions: list[Decision] = []
        for record in records:
            try:
                signal = decode_as(Signal, record.value or b"")
            except DecodeError as error:
                log.error("signal at %s/%d offset %d cannot be read: %s", record.topic, record.partition, record.offset, error,
                          extra={"action": "worker.signal-undecodable"})  # fmt: skip
                continue
            incarnation = self.incarnations.get(signal.incarnation)
            if incarnation is None:
                continue
            if signal.kind == SignalKind.FENCED:
                decisions += self._lose(incarnation, f"the leader fenced it: {signal.reason}")
            else:
                decisions += self.claims.signal(signal, self._clock.monotonic_s())
        return decisions

    def _claims_answered(self, event: ClaimsAnswered) -> Sequence[Decision]:
        self._observe(event.append_ms, event.received_s)
        if event.unclaimed:
            self.offers.not_claimed([ask.record for ask in event.unclaimed], refused=event.refused)
        else:
            self.offers.claimed()
        self.claims.not_committed(ask.id for ask in event.unclaimed)
        for ask in event.claimed:
            if ask.declined:
                self.claims.written(ask.id)
        incarnation = self.incarnations.get(event.incarnation)
        if incarnation is None:
            return ()
        incarnation.claiming.answered()
        if event.writer_over:
            incarnation.lost = True
            self._succeed(event.incarnation, event.writer_over)
        return self.claims.committed((ask.id for ask in event.claimed if not ask.declined), self._clock.monotonic_s())

    def _heartbeat_answered(self, event: HeartbeatAnswered) -> Sequence[Decision]:
        if event.delivered is not None:
            self._observe(event.delivered.append_ms, event.received_s)
        incarnation = self.incarnations.get(event.incarnation)
        if incarnation is None:
            return ()
        decisions: Sequence[Decision] = ()
        if event.delivered is not None and incarnation.lease.lapsed(self._clock.monotonic_s()):
            self.acts.doubt(incarnation.name)  # before the lease begins again
            decisions = self.claims.lapsed(incarnation.name)
        incarnation.heart.answered(event)
        return decisions

    def _steps_read(self, event: StepsRead) -> None:
        claim = self.claims.get(event.id)
        if claim is None:
            return
        if event.gone:
            if self.claims.leaving(event.id) is not None:
                self.acts.expire(claim, event.gone, self._clock.monotonic_s(), self.incarnations)
        else:
            self.claims.resumed(event.id, event.recorded, self._clock.monotonic_s())

    def _observe(self, append_ms: int, received_s: float) -> None:
        if append_ms >= 0:
            self.log_clock.observe(append_ms, received_s)

    # -- incarnations --------------------------------------------------------------------------------------------------

    def _opened(self, incarnation: Incarnation) -> None:
        self._opening = False
        self._opened_s = self._clock.monotonic_s()
        if self.draining:
            incarnation.close()
            return
        self.incarnations[incarnation.name] = incarnation
        self.claims.open(incarnation.name)
        log.info("incarnation %s is open", incarnation.name, extra={"action": "worker.incarnation-open"})
        self._hasten()

    def _succeed(self, name: str, why: str) -> None:
        """W6: a fresh incarnation takes new work; this one goes on with what it holds."""
        incarnation = self.incarnations.get(name)
        if incarnation is None or not incarnation.takes_work:
            return
        log.warning("incarnation %s takes no new work: %s", name, why, extra={"action": "worker.incarnation-drains"})
        incarnation.state = WorkerState.DRAINING
        incarnation.heart.hasten()
        self._open(self._pause_after_loss())  # what made it give up may still stand: not round and round without a rest

    def _lose(self, incarnation: Incarnation, why: str) -> Sequence[Decision]:
        """It can write nothing any more: drop all it holds, and come back as another."""
        if self.incarnations.pop(incarnation.name, None) is None:
            return ()
        log.error("incarnation %s is over: %s. What it held is closed here and comes back as another attempt",
                  incarnation.name, why, extra={"action": "worker.incarnation-over"})  # fmt: skip
        took_work = incarnation.takes_work
        incarnation.state = WorkerState.LOST
        self._beat(incarnation)  # with the claims it still names: the leader need not wait for its silence
        incarnation.lease.revoke()
        decisions = self.claims.over(incarnation.name)
        incarnation.commits.end(why)
        incarnation.close()
        if took_work and not self.draining:
            self._open(self._pause_after_loss())
        return decisions

    def _pause_after_loss(self) -> float:
        """Seconds to wait before the next one: none after a life of some length."""
        lived_s = self._clock.monotonic_s() - self._opened_s
        self._pause_s = min(max(self._pause_s * 2, FIRST_PAUSE_S), LAST_PAUSE_S) if lived_s < SHORT_LIFE_S else 0.0
        return self._pause_s

    def _open(self, pause_s: float = 0.0) -> None:
        if not self._opening and not self.draining:
            self._opening = True
            self._open_incarnation(pause_s)

    def _signed_off(self, event: SignedOff) -> None:
        if (incarnation := self.incarnations.get(event.incarnation)) is not None:
            incarnation.signed_off(readable=event.readable)

    def _retire(self, incarnation: Incarnation) -> None:
        """A draining incarnation that holds nothing has sent all it had; when all can be read its last heartbeat says so."""
        drained = incarnation.state == WorkerState.DRAINING and incarnation.idle
        if not drained or self.claims.of(incarnation.name) or (self.draining and not self.left_group):
            return
        if not incarnation.signs_off():
            return
        incarnation.state = WorkerState.LOST if incarnation.lost else WorkerState.STOPPED
        self._beat(incarnation)
        del self.incarnations[incarnation.name]
        self._act(self.claims.over(incarnation.name))
        incarnation.close()
        self._hasten()

    def _serve(self, now_s: float) -> None:
        if now_s >= self._serve_s:
            self._serve_s = now_s + SERVE_S
            for incarnation in self.incarnations.values():
                incarnation.serve()

    def _hasten(self) -> None:
        for incarnation in self.incarnations.values():
            incarnation.heart.hasten()

    def _beat(self, incarnation: Incarnation) -> None:
        if not incarnation.heart.due(incarnation.state):
            return
        own = self.claims.of(incarnation.name)
        others = sum(len(self.claims.of(name)) for name in self.incarnations if name != incarnation.name)
        free_of_others = max(0, self.claims.slots - self.claims.stuck() - others)
        incarnation.heart.beat(
            state=incarnation.state,
            slots=free_of_others if incarnation.takes_work else len(own),
            prefetch=self._settings.prefetch if incarnation.takes_work else 0,
            handlers=self._registry.names,
            partitions=[number for _, number in self.offers.partitions] if incarnation.takes_work else [],
            claims=self.claims.named(incarnation.name),
        )

    # -- claims and time -----------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        seek = self.offers.seek()
        if seek is not None:
            self._seek(seek)
        incarnation = next((one for one in self.incarnations.values() if one.takes_work), None)
        if incarnation is None or incarnation.claiming.flying or not self.lease_holds(incarnation.name):
            return
        batch = self.offers.take(MAX_CLAIMS)
        if batch is None:
            return
        for ask in incarnation.claiming.claim(batch, self._registry):
            if ask.dispatch is not None and not ask.declined:
                self.claims.claiming(ask.id, ask.dispatch)

    def _end_drain(self, now_s: float) -> None:
        if self.draining and not self._drain_ended and now_s >= self._drain_ends_s:
            self._drain_ended = True
            self._act(self.claims.end_drain())

    def _wait_s(self) -> float:
        now_s = self._clock.monotonic_s()
        moments = [now_s + MAX_WAIT_S]
        moments += [one.heart.next_s for one in self.incarnations.values()]
        next_s = self.claims.next_s(now_s, self.log_clock.offset_s)
        if next_s is not None:
            moments.append(next_s)
        if self.draining and not self._drain_ended:
            moments.append(self._drain_ends_s)
        return max(0.0, min(moments) - now_s)


