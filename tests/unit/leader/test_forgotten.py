"""What a killed broker forgot to end in `rejected`: looked at now and then, and ended where it stands."""

from __future__ import annotations

from dueline.scheduler.leader.forgotten import ASK_AGAIN_S, TRY_AGAIN_S, ForgottenLetters
from dueline.scheduler.leader.unusable import UNUSABLE_S, Unusable
from dueline.schemas.codec import decode
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace
from tests.unit.leader.logs import ScriptedAdmin
from tests.unit.leader.manual import ManualClock

NAMESPACE = Namespace("t")
LOOK_S = 30.0
REJECTED = (NAMESPACE.rejected, 0)


class Ground:
    """A term over a log in which something stands open in `rejected` from offset 5."""

    def __init__(self) -> None:
        self.clock, self.admin = ManualClock(wall_ms=0), ScriptedAdmin()
        self.admin.open[REJECTED] = 5
        self.unusable = Unusable(self.clock)
        self.forgotten = ForgottenLetters(
            lambda: self.admin, self.clock, NAMESPACE, self.unusable, process="h:1", rejected_look_s=LOOK_S
        )
        self.forgotten.begin()

    def after(self, seconds: float) -> list[list[Barrier]]:
        """What is to be written so much later, one list a transaction."""
        self.clock.pass_s(seconds)
        found = []
        for groups in self.forgotten.endings(7, 3):
            records = [record for group in groups for record in group]
            assert {(record.topic, record.partition) for record in records} == {REJECTED}
            found.append([one for record in records if isinstance(one := decode(record.value or b""), Barrier)])
        return found


def test_what_stands_at_two_looks_is_ended_by_two_barriers() -> None:
    ground = Ground()
    assert ground.after(LOOK_S) == []
    (first,), (second,) = ground.after(LOOK_S)
    assert first.id != second.id
    assert first.generation == second.generation == 3


def test_nobody_is_asked_before_what_came_due_in_a_gap_was_decided() -> None:
    ground = Ground()
    assert ground.after(LOOK_S / 2) == []
    assert ground.admin.asked == 0


def test_letters_of_this_leader_are_no_reason() -> None:
    """Each is just being committed when it is looked at: something is always open, and never the same."""
    ground = Ground()
    for offset in range(5, 100, 5):
        ground.admin.open[REJECTED] = offset
        assert ground.after(LOOK_S) == []


def test_nothing_is_written_where_nothing_stands_open() -> None:
    ground = Ground()
    ground.admin.open.clear()
    assert [ground.after(LOOK_S) for _ in range(3)] == [[], [], []]
    assert ground.admin.asked == 3


def test_what_is_forgotten_later_in_a_term_is_ended_too() -> None:
    ground = Ground()
    ground.admin.open.clear()
    assert ground.after(LOOK_S) == []
    ground.admin.open[REJECTED] = 9
    assert ground.after(LOOK_S) == []
    assert len(ground.after(LOOK_S)) == 2


def test_a_strangers_transaction_is_met_again_only_after_a_long_while_and_in_later_terms_too() -> None:
    ground = Ground()
    ground.after(LOOK_S)
    assert len(ground.after(LOOK_S)) == 2
    ground.forgotten.begin()
    assert [ground.after(LOOK_S) for _ in range(3)] == [[], [], []]
    assert len(ground.after(TRY_AGAIN_S)) == 2


def test_another_one_is_ended_soon() -> None:
    """Given a broker that is killed and forgets twice in a row."""
    ground = Ground()
    ground.after(LOOK_S)
    assert len(ground.after(LOOK_S)) == 2
    ground.admin.open[REJECTED] = 12
    assert ground.after(LOOK_S) == []
    assert len(ground.after(LOOK_S)) == 2


def test_when_nobody_can_tell_it_is_asked_again_after_a_while() -> None:
    ground = Ground()
    ground.admin.away = True
    assert ground.after(LOOK_S) == []
    ground.admin.away = False
    assert ground.after(ASK_AGAIN_S - 1) == []
    assert ground.admin.asked == 1
    assert ground.after(1.0) == []
    assert len(ground.after(LOOK_S)) == 2


def test_while_rejected_cannot_be_written_nobody_is_asked() -> None:
    ground = Ground()
    ground.unusable.mark(NAMESPACE.rejected)
    assert ground.after(UNUSABLE_S) == []
    assert ground.admin.asked == 0
    assert ground.after(1.0) == []
    assert len(ground.after(LOOK_S)) == 2
