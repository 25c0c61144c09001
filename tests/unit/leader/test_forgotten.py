"""What a killed broker forgot to end in `rejected`: looked at once in a term, as soon as somebody can tell."""

from __future__ import annotations

from dueline.scheduler.leader.forgotten import LOOK_AGAIN_S, STANDS_S, ForgottenLetters
from dueline.scheduler.leader.unusable import UNUSABLE_S, Unusable
from dueline.schemas.codec import decode
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace
from tests.unit.leader.logs import ScriptedAdmin
from tests.unit.leader.manual import ManualClock

NAMESPACE = Namespace("t")
REJECTED = (NAMESPACE.rejected, 0)


class Ground:
    """A term over a log in which something stands open in `rejected`."""

    def __init__(self) -> None:
        self.clock, self.admin = ManualClock(wall_ms=0), ScriptedAdmin()
        self.admin.open.add(REJECTED)
        self.unusable = Unusable(self.clock)
        self.forgotten = ForgottenLetters(self.admin, self.clock, NAMESPACE, self.unusable, process="h:1")

    def after(self, seconds: float) -> list[list[Barrier]]:
        """What is to be written so much later."""
        self.clock.pass_s(seconds)
        return self.transactions()

    def transactions(self) -> list[list[Barrier]]:
        """What is to be written, one list a transaction."""
        found = []
        for groups in self.forgotten.endings(7, 3):
            records = [record for group in groups for record in group]
            assert {(record.topic, record.partition) for record in records} == {REJECTED}
            found.append([one for record in records if isinstance(one := decode(record.value or b""), Barrier)])
        return found


def test_a_barrier_for_each_producer_and_only_once_in_a_term() -> None:
    ground = Ground()
    assert ground.transactions() == []
    (first,), (second,) = ground.after(STANDS_S)
    assert first.id != second.id
    assert first.generation == second.generation == 3
    assert ground.after(LOOK_AGAIN_S) == []


def test_what_ends_by_itself_needs_no_barrier() -> None:
    """A letter that was committed just before the first look."""
    ground = Ground()
    assert ground.transactions() == []
    ground.admin.open.clear()
    assert ground.after(STANDS_S) == []
    ground.admin.open.add(REJECTED)
    assert ground.after(STANDS_S) == []


def test_nothing_is_written_where_nothing_stands_open() -> None:
    ground = Ground()
    ground.admin.open.clear()
    assert ground.transactions() == []
    assert ground.after(LOOK_AGAIN_S) == []
    assert ground.admin.asked == 1


def test_when_nobody_can_tell_it_is_asked_again_after_a_while() -> None:
    ground = Ground()
    ground.admin.away = True
    assert ground.transactions() == []
    ground.admin.away = False
    assert ground.after(STANDS_S) == []
    assert ground.admin.asked == 1
    ground.clock.pass_s(LOOK_AGAIN_S)
    assert ground.transactions() == []
    assert len(ground.after(STANDS_S)) == 2


def test_while_rejected_cannot_be_written_nobody_is_asked() -> None:
    ground = Ground()
    ground.unusable.mark(NAMESPACE.rejected)
    assert ground.transactions() == []
    assert ground.admin.asked == 0
    assert ground.after(UNUSABLE_S + 1) == []
    assert len(ground.after(STANDS_S)) == 2
