"""L1 to L10 and L12 taken out of the scheduler's real code, one at a time; L3 and L4 in `takeover.py`.

Each class or function stands where the real one is named and differs from it by the rule alone. What a rule that is out leads to
is found by `tests/simulation/test_controls.py`, with the plans beside it. Where another rule hides it, a second name takes that
one out as well: `L8+fence` is L8 on a broker that checks no generation.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, cast

from dueline.scheduler.core.ports import (
    LATEST,
    Aborted,
    Assignment,
    BeforeCommit,
    Contact,
    Delivered,
    Doubtful,
    GroupOffsets,
    GroupReader,
    Outgoing,
    Partition,
    Received,
    UnfencedOffset,
)
from dueline.scheduler.kafka.capture import Metadata, checked
from dueline.scheduler.kafka.group import KafkaGroupReader
from dueline.scheduler.kafka.transaction import TransactionalProducer
from dueline.scheduler.kafka.turns import TurnsWriter
from dueline.scheduler.kafka.watchdog import Watchdog
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.jobs_reader import JobsReader
from dueline.scheduler.leader.scheduler import Scheduler
from dueline.scheduler.leader.takeover import Lead
from dueline.schemas.topics import Namespace
from proof.simulation.controls.takeover import (
    Counting,
    Hasty,
    LateSecond,
    Unended,
    at_once,
    take_over_at_once,
    take_over_counting,
    to_the_end,
)
from proof.simulation.substitution import KAFKA, Names
from proof.simulation.world import Sabotage

LEADER_CODE: Final = "dueline.scheduler.leader"
NAMESPACE: Final = Namespace()
TRIES: Final = 20
INVALID: Final = -1001
"""librdkafka's "no offset": what `position()` answers before anything was read."""


# --- L1 ---------------------------------------------------------------------------------------------------------------


class Flagged(KafkaGroupReader):
    """Not L1 itself: a leader that does not notice that the partition was taken from it. L1 keeps it from doing harm."""

    _led: Assignment | None = None

    def poll(self, timeout_s: float, limit: int) -> tuple[Assignment | None, list[Received]]:
        """See KafkaGroupReader."""
        now, records = super().poll(timeout_s, limit)
        return self._flag(now), records

    def assignment(self) -> Assignment | None:
        """See KafkaGroupReader."""
        return self._flag(super().assignment())

    def _flag(self, now: Assignment | None) -> Assignment | None:
        if self._group != NAMESPACE.scheduler_group:
            return now
        if now is not None and now.partitions:
            self._led = now
        return self._led or now


class Live(Flagged):
    """L1: what it holds and under which generation are two things; the second is read when a transaction needs it."""

    def _flag(self, now: Assignment | None) -> Assignment | None:
        kept = super()._flag(now)
        if kept is None or self._group != NAMESPACE.scheduler_group:
            return kept
        return replace(kept, metadata=self._consumer.consumer_group_metadata)


def read_now(offsets: GroupOffsets) -> tuple[Mapping[Partition, int], bytes]:
    """L1: the group metadata as the client answers now."""
    live = offsets.assignment.metadata
    return (offsets.offsets, cast(bytes, live())) if callable(live) else checked(offsets)


# --- L2 ---------------------------------------------------------------------------------------------------------------


def invalid_offsets(offsets: GroupOffsets) -> tuple[Mapping[Partition, int], bytes]:
    """L2: the leader sends its position in `control`, where it has read nothing yet, as the client tells it."""
    known, raw = checked(offsets)
    if Metadata.parse(raw).group == NAMESPACE.scheduler_group:
        return dict.fromkeys(known, INVALID), raw
    return known, raw


# --- L5 ---------------------------------------------------------------------------------------------------------------


class Backwards(TransactionalProducer):
    """L5: the leader's positions and what is derived go out before the ledger's records that they follow from."""

    def _produce(self, groups: Sequence[Sequence[Outgoing]]) -> list[Delivered]:
        if self.transactional_id not in NAMESPACE.leader_ids:
            return super()._produce(groups)
        numbered = list(enumerate(record for group in groups for record in group))
        order = sorted(numbered, key=lambda one: _late(one[1]))
        stages = sorted({_late(record) for _, record in order})
        written = super()._produce([[record for _, record in order if _late(record) == stage] for stage in stages])
        places = {number: place for (number, _), place in zip(order, written, strict=True)}
        return [places[number] for number in range(len(places))]


class InOrder(Fold):
    """L5: what comes back is expected as it stands in the log."""

    def expect(self, delivered: Sequence[Delivered]) -> None:
        """See Fold."""
        super().expect(sorted(delivered, key=lambda place: place.offset))


def _late(record: Outgoing) -> int:
    if record.topic == NAMESPACE.runs:
        return 0 if record.key == b"!positions" else 3
    return 2 if record.topic == NAMESPACE.job_versions else 1


# --- L6 ---------------------------------------------------------------------------------------------------------------


class Forgetful(Scheduler):
    """L6: commands are read on from the group's committed offset, and where there is none from the end. (From the beginning would
    do no harm: each command is applied once, by its id.)"""

    def _take_over(self, election: GroupReader, assignment: Assignment, fold: Fold) -> Lead:
        control = (NAMESPACE.control, 0)
        known = fold.state.positions.get(control)
        if known is not None:
            committed = election.committed([control]).get(control, self._kafka.admin().end_offset(control))
            fold.state.positions.put(control, replace(known, offset=committed))
        return super()._take_over(election, assignment, fold)


# --- L7 ---------------------------------------------------------------------------------------------------------------


class Stubborn(TransactionalProducer):
    """L7: a producer goes on after an abort."""

    def write(self, *arguments: Any, **named: Any) -> list[Delivered]:
        """See TransactionalProducer."""
        try:
            return super().write(*arguments, **named)
        except Aborted:
            self._over = ""
            raise


class Undoubting(TransactionalProducer):
    """L7: a commit that was acknowledged is believed, however often it may have been sent."""

    def _commit(self) -> None:
        with suppress(Doubtful):
            super()._commit()


class UndoubtingBackwards(Undoubting, Backwards):
    """That and L5."""


class Again(TurnsWriter):
    """L7: what was aborted is written again from memory, by the same producer."""

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> list[Delivered]:
        """See TurnsWriter."""
        for _ in range(TRIES):
            try:
                return super().write(groups, offsets=offsets, before_commit=before_commit)
            except Aborted:
                self._over = ""
        return super().write(groups, offsets=offsets, before_commit=before_commit)


class Unheard(Fold):
    """L7: what comes back is not held against what was written."""

    def _check_echo(self, record: Received) -> None:
        """Nothing."""

    def check_echo_age(self, timeout_s: float) -> None:
        """Nothing."""


# --- L8 ---------------------------------------------------------------------------------------------------------------


class Unbowed(Scheduler):
    """L8: a fenced leader takes it for an ordinary abort, and tries again with new producers without asking whether it leads."""

    _fenced = False

    def _suspect_rival(self, election: GroupReader, assignment: Assignment) -> None:
        self._fenced = True
        super()._suspect_rival(election, assignment)

    def _lead(
        self,
        election: GroupReader,
        assignment: Assignment,
        fold: Fold,
        jobs: JobsReader,
        contact: Contact,
        stop: threading.Event,
    ) -> bool:
        while True:
            self._fenced = False
            if super()._lead(election, assignment, fold, jobs, contact, stop):
                return True
            if not self._fenced or stop.is_set():
                return False


# --- L10 --------------------------------------------------------------------------------------------------------------


class Blind(Watchdog):
    """L10: nobody watches."""

    @contextmanager
    def guard(self, what: str, bound_s: float) -> Iterator[None]:
        """See Watchdog."""
        del what, bound_s
        yield


# --- L12 --------------------------------------------------------------------------------------------------------------


class FromTheEnd(JobsReader):
    """L12: each take-over begins to read `jobs` at its end."""

    def start(self, offset: int | None) -> None:
        """See JobsReader."""
        if offset is not None:
            super().start(LATEST)

    def restart(self, offset: int) -> None:
        """See JobsReader."""
        del offset


class Partial(Scheduler):
    """L12: `jobs` is never read whole, however long nobody has read it."""

    def _must_read_whole(self, lead: Lead) -> bool:
        del lead
        return False


def _named(names: Names) -> Callable[[], Names]:
    return lambda: dict(names)


PROGRAM: Final = ("proof.simulation.programs", "Scheduler")
PRODUCER: Final = (f"{KAFKA}.writers", "TransactionalProducer")
RULES: Final[Mapping[str, Names]] = {
    "L1": {(f"{KAFKA}.cluster", "KafkaGroupReader"): Live, (f"{KAFKA}.transaction", "checked"): read_now},
    "L1-flag": {(f"{KAFKA}.cluster", "KafkaGroupReader"): Flagged},
    "L2": {(f"{KAFKA}.transaction", "checked"): invalid_offsets},
    "L3": {
        (f"{LEADER_CODE}.scheduler", "Fold"): Hasty,
        (f"{LEADER_CODE}.takeover", "_fold_to_barrier"): at_once,
        (f"{LEADER_CODE}.scheduler", "take_over"): take_over_at_once,
    },
    "L3-end": {
        (f"{LEADER_CODE}.scheduler", "Fold"): Hasty,
        (f"{LEADER_CODE}.takeover", "_fold_to_barrier"): to_the_end,
        (f"{LEADER_CODE}.scheduler", "take_over"): take_over_at_once,
    },
    "L3-one": {PRODUCER: LateSecond},
    "L3-second": {(f"{LEADER_CODE}.takeover", "SECOND_BARRIER_S"): math.inf},
    "L3-rejected": {(f"{LEADER_CODE}.scheduler", "ForgottenLetters"): Unended},
    "L4": {
        (f"{LEADER_CODE}.scheduler", "Fold"): Counting,
        (f"{LEADER_CODE}.scheduler", "take_over"): take_over_counting,
    },
    "L5": {PRODUCER: Backwards, (f"{LEADER_CODE}.scheduler", "Fold"): InOrder},
    "L6": {PROGRAM: Forgetful},
    "L7": {
        PRODUCER: Stubborn,
        (f"{KAFKA}.writers", "TurnsWriter"): Again,
        (f"{LEADER_CODE}.scheduler", "Fold"): Unheard,
    },
    "L7-doubt": {PRODUCER: Undoubting},
    "L7-doubt+L5": {PRODUCER: UndoubtingBackwards, (f"{LEADER_CODE}.scheduler", "Fold"): InOrder},
    "L8": {PROGRAM: Unbowed},
    "L10": {(f"{KAFKA}.cluster", "Watchdog"): Blind},
    "L12": {(f"{LEADER_CODE}.scheduler", "JobsReader"): FromTheEnd},
    "L12-part": {PROGRAM: Partial},
}

LEADER: Final[Mapping[str, Sabotage]] = {
    **{rule: Sabotage(rule=rule, names=_named(names)) for rule, names in RULES.items()},
    "fence": Sabotage(rule="fence", brokers={"fenceless": True}, self_test=False),
    "L8+fence": Sabotage(rule="L8+fence", names=_named(RULES["L8"]), brokers={"fenceless": True}, self_test=False),
    "L9": Sabotage(rule="L9", brokers={"fenceless": True}, self_test=False),
}
