"""L3 and L4 taken out of the scheduler's real code: what a take-over reads, initialises and ends. See `leader.py`."""

from __future__ import annotations

from typing import Any, Final

from dueline.scheduler.core.ports import Delivered, Outgoing, Received
from dueline.scheduler.kafka.transaction import TransactionalProducer
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.forgotten import ForgottenLetters
from dueline.scheduler.leader.takeover import FOLD_WAIT_S, Lead, take_over
from dueline.schemas.codec import decode
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace

NAMESPACE: Final = Namespace()


class Hasty(Fold):
    """L3: what comes before the own barrier comes late, and surprises nobody."""

    _barrier = ""
    _before: frozenset[str] = frozenset()

    def begin(self, barrier_id: str) -> None:
        """The barrier has been written."""
        self._barrier, self._before = barrier_id, frozenset(self._expected)

    def _check_echo(self, record: Received) -> None:
        if record.topic not in self._before:
            super()._check_echo(record)
        elif record.value is not None and getattr(decode(record.value), "id", "") == self._barrier:
            self._before -= {record.topic}


def at_once(fold: Hasty, barrier_id: str, offset: int, *_: object) -> int:
    """L3: nothing is read up to the own barrier; whatever the standby has folded is the truth."""
    fold.begin(barrier_id)
    return max(offset, fold.state.term + 1)


def take_over_at_once(*arguments: Any, **named: Any) -> Lead:
    """L3: as `take_over`, whose state has not read the barrier and so does not know its term."""
    lead = take_over(*arguments, **named)
    lead.state.term = lead.term
    return lead


def to_the_end(fold: Hasty, barrier_id: str, offset: int, *_: object) -> int:
    """L3: until a reader of committed records is told that nothing more comes."""
    while fold.poll(FOLD_WAIT_S):
        pass
    seen = fold.saw_barrier(barrier_id)
    return at_once(fold, barrier_id, offset) if seen is None else seen


class LateSecond(TransactionalProducer):
    """L3: of the leader's ids only the first is initialised in a take-over, the second when it is needed."""

    _asleep = False

    def init(self) -> None:
        """See TransactionalProducer."""
        self._asleep = self.transactional_id == NAMESPACE.leader_ids[1]
        if not self._asleep:
            super().init()

    def write(self, *arguments: Any, **named: Any) -> list[Delivered]:
        """See TransactionalProducer."""
        if self._asleep:
            self._asleep = False
            super().init()
        return super().write(*arguments, **named)


class Unended(ForgottenLetters):
    """L3: what a killed broker forgot to end in `rejected` stands open."""

    def endings(self, term: int, generation: int) -> list[list[list[Outgoing]]]:
        """See ForgottenLetters."""
        del term, generation
        return []


class Counting(Fold):
    """L4: a term is its leader's generation."""

    def _apply(self, received: Received) -> None:
        before = self.state.term
        super()._apply(received)
        barrier = self._barriers.get(received.topic)
        if received.topic == self._runs[0] and received.offset == self._barrier_offset and isinstance(barrier, Barrier):
            self._barrier_term = barrier.generation
            self.state.term = max(before, barrier.generation)


def take_over_counting(*arguments: Any, **named: Any) -> Lead:
    """L4: the new leader's records carry its generation."""
    lead = take_over(*arguments, **named)
    lead.state.term = lead.state.versions_term = lead.term
    return lead
