"""The take-over (L3): captured assignment → new producers → one fenced barrier in both topics → fold until it is read → lead.

Two barriers are written where one cannot be read: what a broker that was killed forgot to end of an older leader's
transaction (docs/kafka.md) ends when the producer that has its id commits something in the same place, and either of the pair
may have it. What was torn so is a prefix, ledger first (L5).

No decision is made before the last step. Watermarks and end-of-partition events would not do: only the own marker shows
that everything an older leader committed has been read, and that nothing of it can follow.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from dueline.scheduler.core.ports import Assignment, Clock, GroupOffsets, Kafka, TransactionWriter
from dueline.scheduler.core.state import State
from dueline.scheduler.leader.clock import LeaderClock
from dueline.scheduler.leader.encode import barrier_groups
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

FOLD_WAIT_S = 0.1
SECOND_BARRIER_S = 3.0
"""A ledger that stands still for so long, or takes so long to read; a second barrier does no harm."""


class Overtaken(Exception):
    """Another leader took over while this one was taking over, or the assignment went away. Nothing was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """What a finished take-over hands to its term."""

    assignment: Assignment
    writer: TransactionWriter
    state: State
    clock: LeaderClock
    term: int
    began_ms: int


def take_over(
    kafka: Kafka,
    namespace: Namespace,
    *,
    assignment: Assignment,
    fold: Fold,
    clock: Clock,
    settings: SchedulerSettings,
    doubt_bound_s: float,
    barrier_id: str,
    keep_assigned: Callable[[], bool],
) -> Lead:
    """Take over, or raise: Overtaken, a WriteError, Unavailable. On any failure the writer is closed."""
    began_s = clock.monotonic_s()
    fold.follow()
    writer = kafka.writers().open(
        namespace.leader_ids, doubt_bound_s=doubt_bound_s, transaction_timeout_s=settings.transaction_timeout_s
    )
    try:
        own, wait_s = barrier_id, SECOND_BARRIER_S
        while True:
            offset, append_ms, received_s = _write_barrier(writer, namespace, assignment, fold, clock, settings, own)
            term = _fold_to_barrier(fold, own, offset, keep_assigned, clock, wait_s)
            if term is not None:
                break
            own, wait_s = f"{barrier_id}.2", math.inf
            log.warning(
                "a transaction stands open in the ledger: the take-over waits for its end, and writes a second barrier, "
                "in case it is an older leader's that a killed broker forgot",
                extra={"action": "take-over.waits"},
            )
    except BaseException:
        writer.close()
        raise
    state = fold.state.copy()
    leader_clock = LeaderClock(
        clock, append_ms=append_ms, received_s=received_s, not_before_ms=state.leader_ms, max_skew_s=settings.max_clock_skew_s
    )
    fold.lead()
    log.info(
        "leading: term %d, generation %d, taken over in %.0f ms",
        term,
        assignment.generation,
        (clock.monotonic_s() - began_s) * 1000,
        extra={"action": "lead", "term": term, "generation": assignment.generation},
    )
    return Lead(
        assignment=assignment,
        writer=writer,
        state=state,
        clock=leader_clock,
        term=term,
        began_ms=leader_clock.now(),
    )


def _write_barrier(
    writer: TransactionWriter,
    namespace: Namespace,
    assignment: Assignment,
    fold: Fold,
    clock: Clock,
    settings: SchedulerSettings,
    barrier_id: str,
) -> tuple[int, int, float]:
    """The marker's offset and append time in `runs`, and when that was received."""
    control = (namespace.control, 0)
    known = fold.state.positions.get(control)
    offsets = GroupOffsets(assignment=assignment, offsets={control: max(known.offset if known else 0, 0)})
    barrier = Barrier(id=barrier_id, process=settings.process, generation=assignment.generation)
    delivered = writer.write(barrier_groups(namespace, barrier), offsets=offsets)
    received_s = clock.monotonic_s()
    mine = next(place for place in delivered if place.topic == namespace.runs)
    return mine.offset, mine.append_ms, received_s


def _fold_to_barrier(
    fold: Fold, barrier_id: str, offset: int, keep_assigned: Callable[[], bool], clock: Clock, wait_s: float
) -> int | None:
    """The term; None when it could not be read in that time."""
    until_s = clock.monotonic_s() + wait_s
    while True:
        fold.poll(FOLD_WAIT_S)
        term = fold.saw_barrier(barrier_id)
        if term is not None or clock.monotonic_s() > until_s:
            return term
        if fold.overtaken(barrier_id, offset):
            raise Overtaken("a later barrier stands in the ledger: another scheduler leads")
        if not keep_assigned():
            raise Overtaken("the control partition was taken away during the take-over")
