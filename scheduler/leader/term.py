"""One term: read → plan → one transaction → apply, over and over, until something ends it.

A term never heals itself. Whatever goes wrong ends it, and the next one begins from what was read back (L7).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.inputs import Inputs, Settings
from dueline.scheduler.core.plan import plan
from dueline.scheduler.core.ports import Clock, Delivered, Fencer, GroupOffsets, Unavailable
from dueline.scheduler.core.schedule import tzdata_version
from dueline.scheduler.leader.encode import groups, too_early
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.intake import Intake
from dueline.scheduler.leader.queues import Unusable
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.scheduler.leader.takeover import Lead
from dueline.scheduler.leader.witness import Witness
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

CATCH_UP_MS = 2_000
"""How long the first due times of a term wait for its inputs to be read up to their ends."""


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
    ) -> None:
        self._lead, self._namespace, self._clock = lead, namespace, clock
        self._fold, self._intake, self._fencer, self._witness = fold, intake, fencer, witness
        self._settings, self._unusable = settings, unusable
        self._state = lead.state
        self._first = True
        self._more = False
        self._firing = False
        self._plan_settings = Settings(
            tzdata=tzdata_version(),
            max_records=settings.max_records,
            offer_timeout_ms=settings.offer_timeout_ms,
            allowed_skew_ms=settings.allowed_skew_ms,
            generation=lead.assignment.generation,
        )

    def tick(self) -> None:
        """One round. Raises a WriteError, EchoLost or Unavailable when the term is over."""
        inputs = self._read()
        now = self._lead.clock.now()
        decision = self._without_unusable(plan(self._state, inputs, self._plan_settings, now))
        if not decision.empty:
            self._commit(inputs, decision)
        self._more = decision.more
        self._fence()
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
        anchor = self._first or clock.age_s >= self._settings.anchor_s
        firing = self._firing = self._witness.agrees(clock) and self._caught_up()
        return replace(
            inputs,
            first=self._first,
            led_ms=self._lead.began_ms,
            anchor=anchor,
            read_jobs=anchor and self._jobs_at_end(),
            firing=firing,
        )

    def _caught_up(self) -> bool:
        """Due times wait for what was written before the term began, but not for somebody's open transaction there."""
        late = self._lead.clock.now() - self._lead.began_ms > CATCH_UP_MS
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

    def _jobs_at_end(self) -> bool:
        try:
            return self._intake.jobs_at_end()
        except Unavailable:
            return False

    def _commit(self, inputs: Inputs, decision: Decision) -> None:
        first_ledger, end_ledger = len(decision.versions), len(decision.versions) + len(decision.ledger)

        def check(delivered: Sequence[Delivered]) -> str | None:
            places = zip(decision.ledger, delivered[first_ledger:end_ledger], strict=True)
            return too_early(decision, [(record.key, place.append_ms) for record, place in places])

        delivered = self._lead.writer.write(
            groups(self._namespace, decision),
            offsets=GroupOffsets(
                assignment=self._lead.assignment,
                offsets={(self._namespace.control, 0): self._intake.control_offset()},
            ),
            before_commit=check,
        )
        received_s = self._clock.monotonic_s()
        self._fold.expect(delivered)
        for version in decision.versions:
            self._state.apply(version)
        for record in decision.ledger:
            self._state.apply(record)
        self._intake.committed(inputs)
        ledger = delivered[first_ledger:end_ledger]
        if ledger:
            self._lead.clock.anchor(ledger[-1].append_ms, received_s)
        self._first = False

    def _without_unusable(self, decision: Decision) -> Decision:
        """Dead letters that cannot be written are said in the log instead."""
        if not decision.rejected or self._namespace.rejected not in self._unusable:
            return decision
        for letter in decision.rejected:
            log.error(
                "refused, and %s cannot be written: %s[%d] offset %d: %s",
                self._namespace.rejected,
                letter.topic,
                letter.partition,
                letter.offset,
                letter.detail,
                extra={"action": "rejected_unwritten"},
            )
        return replace(decision, rejected=[])

    def _fence(self) -> None:
        """Fence, outside this loop, every incarnation whose end the ledger intends (W7)."""
        for entry in self._state.fencing.between():
            fence = self._state.fences.get(str(entry[0]))
            if fence is not None:
                self._fencer.start(fence.incarnation, fence.transactional_ids, fence.home)
