"""One term: read → plan → one transaction → apply, over and over, until something ends it.

A term never heals itself. Whatever goes wrong ends it, and the next one begins from what was read back (L7).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.inputs import Inputs, Settings
from dueline.scheduler.core.ports import Clock, Delivered, Fencer, GroupOffsets, Outgoing, Unavailable
from dueline.scheduler.core.quarantine import Planned, plan_around
from dueline.scheduler.leader.early import Early
from dueline.scheduler.leader.encode import groups, without_letters
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.forgotten import ForgottenLetters
from dueline.scheduler.leader.intake import Intake
from dueline.scheduler.leader.letters import Letters
from dueline.scheduler.leader.quarantine import Quarantine
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.scheduler.leader.takeover import Lead
from dueline.scheduler.leader.unusable import Unusable
from dueline.scheduler.leader.witness import Witness
from dueline.schemas.base import NONE
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

CATCH_UP_S = 2.0
"""How long the first due times of a term wait for its inputs to be read up to their ends."""

ASK_AGAIN_S = 60.0
"""How long after a broker of `jobs` that did not answer it is asked for the end again: what is recorded may be days old (L12)."""


class Term:
    """The leader's loop, one `tick` a round."""

    def __init__(
        self,
        lead: Lead,
        *,
        namespace: Namespace,
        clock: Clock,
        fold: Fold,
        intake: Intake,
        fencer: Fencer,
        witness: Witness,
        settings: SchedulerSettings,
        unusable: Unusable,
        letters: Letters,
        forgotten: ForgottenLetters,
        early: Early,
        tzdata: str,
    ) -> None:
        self._lead, self._namespace, self._clock = lead, namespace, clock
        self._fold, self._intake, self._fencer, self._witness = fold, intake, fencer, witness
        self._settings, self._unusable, self._letters, self._early = settings, unusable, letters, early
        self._forgotten = forgotten
        forgotten.begin()
        self._state = lead.state
        self._began_s = self._anchored_s = self._ask_jobs_from_s = clock.monotonic_s()
        self._quarantine = Quarantine()
        self._quarantine.say_uncompiled(lead.state)
        self._first = True
        self._more = False
        self._firing = False
        self._plan_settings = Settings(
            tzdata=tzdata,
            max_records=settings.max_records,
            offer_timeout_ms=settings.offer_timeout_ms,
            allowed_skew_ms=settings.allowed_skew_ms,
            generation=lead.assignment.generation,
        )

    def tick(self) -> None:
        """One round. Raises a WriteError, EchoLost or Unavailable when the term is over."""
        inputs = self._read()
        now = self._lead.clock.now()
        planned, records = self._plan(inputs, now)
        decision = planned.decision
        if not decision.empty:
            self._commit(inputs, decision, records)
        self._leave_out(planned)
        self._more = decision.more
        self._fence()
        self._end_forgotten()
        self._fold.poll(0.0)
        self._fold.check_echo_age(self._settings.echo_timeout_s)

    def close(self) -> None:
        """Give the term up."""
        self._fold.follow()
        self._lead.writer.close()

    # -- steps -----------------------------------------------------------------------------------------------------------

    def _read(self) -> Inputs:
        clock = self._lead.clock
        inputs = self._intake.read(self._wait_s(), self._settings.max_events, clock.now, self._state)
        anchor = self._anchor_due()
        firing = self._firing = self._witness.agrees(clock) and self._early.over(clock) and self._caught_up()
        return replace(
            inputs,
            fleet=self._unusable.reachable(inputs.fleet, self._namespace),
            first=self._first,
            led_ms=self._lead.began_ms,
            anchor=anchor,
            read_jobs_ms=self._read_jobs_ms() if anchor else NONE,
            firing=firing,
        )

    def _anchor_due(self) -> bool:
        """Whether positions must be written in this round, and with them that `jobs` was read to its end. By a timer of its own:
        a leader that is never idle must say so too, or its heirs take `jobs` for unread (L12)."""
        now_s = self._clock.monotonic_s()
        due = self._first or now_s - self._anchored_s >= self._settings.anchor_s
        if due:
            self._anchored_s = now_s
        return due

    def _plan(self, inputs: Inputs, now: int) -> tuple[Planned, Sequence[Sequence[Outgoing]]]:
        """The decision and its records. One that cannot be encoded is decided anew without whoever is to blame."""
        planned = plan_around(self._state, inputs, self._plan_settings, now)
        try:
            return planned, self._records(planned.decision)
        except Exception:
            log.exception("a bug: a decision cannot be encoded; deciding anew without it", extra={"action": "quarantine"})
            planned = plan_around(self._state, inputs, self._plan_settings, now, probing=True)
            return planned, self._records(planned.decision)

    def _records(self, decision: Decision) -> Sequence[Sequence[Outgoing]]:
        return groups(self._namespace, self._unusable.without(decision, self._namespace))

    def _leave_out(self, planned: Planned) -> None:
        """After the decision was applied, since a new version of a job lifts what was said of the one before."""
        for job_id, trouble in planned.culprits.jobs.items():
            self._state.set_aside(job_id, trouble)
        self._quarantine.left_out(planned.culprits)
        self._quarantine.set_aside(self._state)

    def _caught_up(self) -> bool:
        """Due times wait for what was written before the term began, but not for somebody's open transaction there."""
        late = self._clock.monotonic_s() - self._began_s > CATCH_UP_S  # leader time may stand still, or leap
        return late or self._intake.caught_up()

    def _wait_s(self) -> float:
        """Until the next instant at which time alone decides something, but no longer than the idle wait."""
        if self._more or self._first:
            return 0.0
        now = self._lead.clock.now()
        self._state.settle()
        wake = self._state.next_wake(now)
        idle = self._settings.idle_wait_s
        if wake is None or not self._firing:
            return idle
        return min(max(wake - now, 0) / 1000, idle)

    def _read_jobs_ms(self) -> int:
        """Asks the broker, and so holds the loop up if that of `jobs` does not answer: then not again for a while."""
        if self._clock.monotonic_s() < self._ask_jobs_from_s:
            return NONE
        try:
            return self._intake.read_jobs_ms(self._lead.clock.now())
        except Unavailable:
            self._ask_jobs_from_s = self._clock.monotonic_s() + ASK_AGAIN_S
            return NONE

    def _commit(self, inputs: Inputs, decision: Decision, records: Sequence[Sequence[Outgoing]]) -> None:
        first_ledger, end_ledger = len(decision.versions), len(decision.versions) + len(decision.ledger)

        def check(delivered: Sequence[Delivered]) -> str | None:
            places = zip(decision.ledger, delivered[first_ledger:end_ledger], strict=True)
            return self._early.reason(decision, ((record.key, place.append_ms) for record, place in places))

        follow = [] if self._unusable.takes_letters(self._namespace) else decision.rejected
        self._letters.say(follow)
        delivered = self._lead.writer.write(
            without_letters(self._namespace, records) if follow else records,
            offsets=self._offsets(),
            before_commit=check,
        )
        received_s = self._clock.monotonic_s()
        self._fold.expect(delivered)
        for version in decision.versions:
            self._state.apply(version)
        for record in decision.ledger:
            self._state.apply(record)
        self._intake.committed(inputs, self._state)
        ledger = delivered[first_ledger:end_ledger]
        if ledger:
            self._lead.clock.anchor(ledger[-1].append_ms, received_s)
        self._first = False
        self._letters.follow(follow)

    def _offsets(self) -> GroupOffsets:
        """The group's fence (L2)."""
        offsets = {(self._namespace.control, 0): self._intake.control_offset()}
        return GroupOffsets(assignment=self._lead.assignment, offsets=offsets)

    def _end_forgotten(self) -> None:
        for records in self._forgotten.endings(self._lead.term, self._lead.assignment.generation):
            self._lead.writer.write(records, offsets=self._offsets())

    def _fence(self) -> None:
        """Fence, outside this loop, every incarnation whose end the ledger intends (W7)."""
        for entry in self._state.fencing.between():
            fence = self._state.fences.get(str(entry[0]))
            if fence is not None:
                self._fencer.start(
                    fence.incarnation, fence.transactional_ids, fence.home, self._namespace.worker_group(fence.queue)
                )
