"""What a worker holds, as a pure state machine: inputs in, decisions out. No clock, no Kafka, no thread.

    claiming --committed--> requested --grant read--> held --its moment, a slot, the lease--> running --ended--> (written)
        |                       |                      |  \\-- earlier steps are read meanwhile (W9)
        +- not committed: gone  +- decline: gone       +- recall, cancel, no slot, drain: declined (written)

A claim leaves when its `declined` or `finished` event is committed, when the leader declines it, or when its incarnation is
over. Until then heartbeats name it. A run begins only here, in `_begin`, and only from `held`: after its grant (W3).
A slot is taken by a handler, and freed when its code has ended, not when its claim has: a thread cannot be killed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dueline.schemas.work import Dispatch, HeldClaim, HeldState, Signal, SignalKind
from dueline.workers.steps import Recorded

NO_SLOT: Final = "no slot"
LAPSED: Final = "lease lapsed"
RECALLED: Final = "recalled"
CANCELLED: Final = "cancelled"
DRAINING: Final = "draining"
UNKNOWN_CLAIM: Final = "unknown claim"

ClaimId = tuple[str, int]
"""Incarnation and claim number."""


class ClaimState(StrEnum):
    """See the module's text."""

    CLAIMING = "claiming"
    REQUESTED = "requested"
    HELD = "held"
    RUNNING = "running"
    LEAVING = "leaving"  # its last event is on its way to the log


@dataclass(slots=True, kw_only=True)
class Claim:
    """One claim. Monotonic seconds where the name says so."""

    id: ClaimId
    dispatch: Dispatch
    state: ClaimState = ClaimState.CLAIMING
    named: HeldState = HeldState.REQUESTED  # what heartbeats say
    early: list[Signal] = field(default_factory=list)  # signals read before the claim's commit was acknowledged
    lapsed: bool = False  # the lease did while this was being written: it may be granted and fenced by now
    resumed: bool = False
    recorded: Mapping[str, Recorded] = field(default_factory=dict)  # steps that earlier attempts completed
    ready_s: float = 0.0  # granted, and earlier steps read
    deadline_s: float | None = None  # of a running attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Read the steps of earlier attempts; answer with `resumed`."""

    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Start the handler; answer with `ended` when its code has ended."""

    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    """Write `declined`; answer with `written`."""

    claim: Claim
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclineUnknown:
    """Write `declined` for a granted claim that is not held (W4)."""

    signal: Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class AskToStop:
    """Cancel the running handler cooperatively."""

    claim: Claim
    reason: str


class Ending(StrEnum):
    """Why a running attempt is ended without its handler."""

    TIMEOUT = "timeout"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndNow:
    """Close the attempt and write `finished`; answer with `written`."""

    claim: Claim
    ending: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """Close the attempt; nothing can be written for it any more."""

    claim: Claim


Decision = Resume | Begin | Decline | DeclineUnknown | AskToStop | EndNow | Abandon


class Claims:
    """Every claim of a worker process, in all its incarnations. See the module's text."""

    def __init__(self, *, slots: int, start_bound_s: float) -> None:
        self.slots = slots
        self._start_bound_s = start_bound_s
        self._claims: dict[ClaimId, Claim] = {}
        self._busy: set[ClaimId] = set()  # slots taken by code that has not ended
        self._highest: dict[str, int] = {}  # incarnation -> its highest claim number; an incarnation not here is over
        self._never: set[ClaimId] = set()  # numbers whose claim was not committed: rare, so kept
        self._answered: set[ClaimId] = set()  # unknown claims whose decline is written or on its way: rare, so kept
        self._startable: list[tuple[int, ClaimId]] = []  # held, earlier steps read; by due time
        self._draining = False

    # -- questions -----------------------------------------------------------------------------------------------------

    @property
    def free_slots(self) -> int:
        """Slots no handler code is in."""
        return self.slots - len(self._busy)

    def get(self, id: ClaimId) -> Claim | None:
        """The claim, while it is here."""
        return self._claims.get(id)

    def of(self, incarnation: str) -> list[Claim]:
        """The claims of an incarnation."""
        return [claim for claim in self._claims.values() if claim.id[0] == incarnation]

    def stuck(self) -> int:
        """Slots whose code goes on although its claim has left."""
        return sum(1 for id in self._busy if id not in self._claims)

    def named(self, incarnation: str) -> list[HeldClaim]:
        """What this incarnation's heartbeat says."""
        return [
            HeldClaim(run=claim.dispatch.run, attempt=claim.dispatch.attempt, claim=claim.id[1], state=claim.named)
            for claim in self.of(incarnation)
            if claim.state != ClaimState.CLAIMING
        ]

    # -- incarnations --------------------------------------------------------------------------------------------------

    def open(self, incarnation: str) -> None:
        """The incarnation has begun."""
        self._highest[incarnation] = 0

    def over(self, incarnation: str) -> list[Decision]:
        """The incarnation can write nothing any more."""
        self._highest.pop(incarnation, None)
        self._never = {id for id in self._never if id[0] != incarnation}
        self._answered = {id for id in self._answered if id[0] != incarnation}
        lost = self.of(incarnation)
        for claim in lost:
            self._unlist(claim)
            del self._claims[claim.id]
        return [Abandon(claim=claim) for claim in lost if claim.id in self._busy]

    def lapsed(self, incarnation: str) -> list[Decision]:
        """W8: a lease that had ended is about to begin again. What waited for it may have been given to another worker: it is
        handed back, which a fenced incarnation cannot write."""
        own = self.of(incarnation)
        for claim in own:
            claim.lapsed = claim.state == ClaimState.CLAIMING
        return [self._leave(claim, LAPSED) for claim in own if claim.state in (ClaimState.REQUESTED, ClaimState.HELD)]

    # -- a claim's life ------------------------------------------------------------------------------------------------

    def claiming(self, id: ClaimId, dispatch: Dispatch) -> None:
        """The claim transaction is being written."""
        self._claims[id] = Claim(id=id, dispatch=dispatch)
        self._count(id)

    def committed(self, ids: Iterable[ClaimId], now_s: float) -> list[Decision]:
        """Their claim transaction was committed."""
        decisions: list[Decision] = []
        for id in ids:
            claim = self._claims.get(id)
            if claim is None or claim.state != ClaimState.CLAIMING:
                continue
            claim.state = ClaimState.REQUESTED
            early, claim.early = claim.early, []
            if self._draining or claim.lapsed:
                decisions.append(self._leave(claim, DRAINING if self._draining else LAPSED))
                continue
            for signal in early:
                decisions += self.signal(signal, now_s)
        return decisions

    def not_committed(self, ids: Iterable[ClaimId]) -> None:
        """Their claim transaction was not committed: nobody else ever hears of them."""
        for id in ids:
            if self._claims.pop(id, None) is not None:
                self._never.add(id)

    def signal(self, signal: Signal, now_s: float) -> list[Decision]:
        """The leader's word about a claim (`fenced` is about an incarnation: see `over`)."""
        if signal.incarnation not in self._highest:
            return []
        id = (signal.incarnation, signal.claim)
        claim = self._claims.get(id)
        if claim is None:
            return self._told_unknown(id, signal)
        if claim.state == ClaimState.CLAIMING:
            claim.early.append(signal)
            return []
        return self._told(claim, signal, now_s)

    def _told_unknown(self, id: ClaimId, signal: Signal) -> list[Decision]:
        """A claim that has left is answered by its event. One that never was must be answered, once (W4)."""
        was_here = id[1] <= self._highest[id[0]] and id not in self._never
        if signal.kind != SignalKind.GRANT or was_here or id in self._answered:
            return []
        self._answered.add(id)
        return [DeclineUnknown(signal=signal)]

    def _told(self, claim: Claim, signal: Signal, now_s: float) -> list[Decision]:
        begun = claim.state == ClaimState.RUNNING
        waits = claim.state in (ClaimState.REQUESTED, ClaimState.HELD)
        match signal.kind:
            case SignalKind.GRANT if claim.state == ClaimState.REQUESTED:
                claim.state, claim.named = ClaimState.HELD, HeldState.HELD
                if claim.dispatch.earlier:
                    return [Resume(claim=claim)]
                self._list(claim, now_s)
            case SignalKind.DECLINE if waits:
                self._remove(claim)
            case SignalKind.RECALL if waits:
                return [self._leave(claim, RECALLED)]
            case SignalKind.CANCEL if waits:
                return [self._leave(claim, CANCELLED)]
            case SignalKind.CANCEL if begun:
                return [AskToStop(claim=claim, reason=signal.reason or CANCELLED)]
        return []

    def resumed(self, id: ClaimId, recorded: Mapping[str, Recorded], now_s: float) -> None:
        """The steps of earlier attempts were read."""
        claim = self._claims.get(id)
        if claim is not None and claim.state == ClaimState.HELD and not claim.resumed:
            claim.recorded = recorded
            self._list(claim, now_s)

    def leaving(self, id: ClaimId) -> Claim | None:
        """Its `finished` is being written, for a claim that is held or runs; None: it has left, write nothing."""
        claim = self._claims.get(id)
        if claim is None or claim.state not in (ClaimState.HELD, ClaimState.RUNNING):
            return None
        self._unlist(claim)
        claim.state = ClaimState.LEAVING
        return claim

    def ended(self, id: ClaimId) -> None:
        """The handler's code has ended: its slot is free."""
        self._busy.discard(id)

    def written(self, id: ClaimId) -> None:
        """Its `declined` or `finished` was committed."""
        claim = self._claims.get(id)
        if claim is not None:
            self._remove(claim)
        elif id not in self._answered:
            self._count(id)

    def _count(self, id: ClaimId) -> None:
        if id[0] in self._highest:
            self._highest[id[0]] = max(id[1], self._highest[id[0]])

    def _leave(self, claim: Claim, reason: str) -> Decline:
        self._unlist(claim)
        claim.state = ClaimState.LEAVING
        return Decline(claim=claim, reason=reason)

    def _remove(self, claim: Claim) -> None:
        self._unlist(claim)
        del self._claims[claim.id]

    # -- time ----------------------------------------------------------------------------------------------------------

    def tick(self, now_s: float, log_offset_s: float | None, leases: Mapping[str, bool]) -> list[Decision]:
        """What time alone decides. `log_offset_s`: log time is now_s + it (None: unknown yet); `leases`: by incarnation."""
        decisions: list[Decision] = []
        for claim in self._running():
            if claim.deadline_s is not None and claim.deadline_s <= now_s:
                claim.state = ClaimState.LEAVING
                decisions.append(EndNow(claim=claim, ending=Ending.TIMEOUT))
        if log_offset_s is None:
            return decisions
        for moment, claim in self._due(log_offset_s, now_s):
            if not leases.get(claim.id[0], False):
                continue
            if self.free_slots > 0:
                decisions.append(self._begin(claim, now_s))
            elif moment + self._start_bound_s <= now_s:
                decisions.append(self._leave(claim, NO_SLOT))
        return decisions

    def next_s(self, now_s: float, log_offset_s: float | None) -> float | None:
        """When `tick` has something to do if nothing else happens; for a run that waits for a lease, now and then."""
        moments = [claim.deadline_s for claim in self._running() if claim.deadline_s is not None]
        if log_offset_s is not None:
            due = self._due(log_offset_s, now_s)
            moments += [max(moment + self._start_bound_s, now_s + self._start_bound_s / 10) for moment, _ in due]
            if len(due) < len(self._startable):
                moments.append(self._startable[len(due)][0] / 1000 - log_offset_s)
        return min(moments, default=None)

    def _running(self) -> list[Claim]:
        if not self._busy:
            return []
        found = [self._claims[id] for id in self._busy if id in self._claims]
        return [claim for claim in found if claim.state == ClaimState.RUNNING]

    def _due(self, log_offset_s: float, now_s: float) -> list[tuple[float, Claim]]:
        """Runs whose moment has come, by due time, each with its moment: the later of due time and readiness."""
        if not self._startable:
            return []
        now_ms = (now_s + log_offset_s) * 1000
        due: list[tuple[float, Claim]] = []
        for due_ms, id in self._startable:
            if due_ms > now_ms:
                break
            claim = self._claims[id]
            due.append((max(due_ms / 1000 - log_offset_s, claim.ready_s), claim))
        return due

    def _begin(self, claim: Claim, now_s: float) -> Begin:
        self._unlist(claim)
        claim.state, claim.named = ClaimState.RUNNING, HeldState.RUNNING
        timeout_ms = claim.dispatch.job.timeout_ms
        claim.deadline_s = now_s + timeout_ms / 1000 if timeout_ms > 0 else None
        self._busy.add(claim.id)
        return Begin(claim=claim)

    def _list(self, claim: Claim, now_s: float) -> None:
        """Its earlier steps are read: it begins at its due time."""
        claim.resumed, claim.ready_s = True, now_s
        insort(self._startable, (claim.dispatch.due_ms, claim.id))

    def _unlist(self, claim: Claim) -> None:
        if claim.state == ClaimState.HELD and claim.resumed:
            del self._startable[bisect_left(self._startable, (claim.dispatch.due_ms, claim.id))]

    # -- drain (W10) -----------------------------------------------------------------------------------------------------

    def drain(self) -> list[Decision]:
        """Give back what has not begun, now and when it comes."""
        self._draining = True
        waits = (ClaimState.REQUESTED, ClaimState.HELD)
        return [self._leave(claim, DRAINING) for claim in list(self._claims.values()) if claim.state in waits]

    def end_drain(self) -> list[Decision]:
        """The time to finish is over: hand back what runs."""
        decisions: list[Decision] = []
        for claim in self._running():
            claim.state = ClaimState.LEAVING
            decisions.append(EndNow(claim=claim, ending=Ending.DRAIN))
        return decisions
