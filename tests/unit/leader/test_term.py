"""When a term fires: by the clock of `runs`, and not before its inputs were read, or only a moment later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from dueline.scheduler.core.inputs import Inputs, Problem, Read
from dueline.scheduler.core.ports import Aborted, BeforeCommit, Delivered, GroupOffsets, Outgoing, Unavailable
from dueline.scheduler.core.state import State
from dueline.scheduler.leader.clock import LeaderClock
from dueline.scheduler.leader.early import Early
from dueline.scheduler.leader.forgotten import TRY_AGAIN_S, ForgottenLetters
from dueline.scheduler.leader.letters import Letters
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.scheduler.leader.term import ASK_AGAIN_S, CATCH_UP_S, Term
from dueline.scheduler.leader.unusable import UNUSABLE_S, Unusable
from dueline.scheduler.leader.witness import Witness
from dueline.schemas.codec import decode
from dueline.schemas.command import Rejected
from dueline.schemas.job import Job
from dueline.schemas.ledger import Positions
from dueline.schemas.run import Run
from dueline.schemas.topics import Namespace
from tests.unit.core.world import T0, World, at, job
from tests.unit.leader.logs import ScriptedAdmin, ScriptedPlainWriter
from tests.unit.leader.manual import ManualClock

NAMESPACE = Namespace("t")
LOOK_S = 30.0


class Broker:
    """Port `TransactionWriter`, and the clock of `runs`: `behind_ms` behind the host's."""

    def __init__(self, clock: ManualClock, behind_ms: int = 0) -> None:
        self._clock, self.behind_ms = clock, behind_ms
        self.fired: list[int] = []
        self.letters: list[Rejected] = []
        self.positions: list[Positions] = []
        self.written: list[list[tuple[str, str]]] = []  # topic and type of each record, by transaction
        self.aborts = 0
        self.torn = False
        self.closed: frozenset[str] = frozenset()  # topics that take no record

    def append_ms(self) -> int:
        return self._clock.wall_ms() - self.behind_ms

    def write(
        self, groups: Sequence[Sequence[Outgoing]], *, offsets: GroupOffsets, before_commit: BeforeCommit = lambda _: None
    ) -> list[Delivered]:
        assert min(offsets.offsets.values()) >= 0
        records = [record for group in groups for record in group]
        delivered = [Delivered(topic=one.topic, partition=0, offset=0, append_ms=self.append_ms()) for one in records]
        if (reason := before_commit(delivered)) is not None:
            self.aborts += 1
            raise Aborted(reason)
        if self.torn or self.closed & {one.topic for one in records}:
            raise Aborted("torn")
        self.written.append([(one.topic, type(decode(one.value or b"")).__name__) for one in records])
        self.positions += [found for one in records if isinstance(found := decode(one.value or b""), Positions)]
        self.letters += [letter for one in records if isinstance(letter := decode(one.value or b""), Rejected)]
        self.fired += [run.due_ms for one in records if isinstance(run := decode(one.value or b""), Run) and run.due_ms > T0]
        return delivered

    def close(self) -> None:
        pass


class Leader:
    """Terms one after the other over one ledger, with a job that is due each minute."""

    def __init__(self, *, caught_up: bool = True) -> None:
        self.clock = ManualClock(wall_ms=at(50))
        self.broker, self.admin = Broker(self.clock), ScriptedAdmin()
        self.early, self.unusable, self.letters = Early(), Unusable(self.clock), Letters(lambda: self.plain, NAMESPACE)
        self.plain = ScriptedPlainWriter()
        self.forgotten = ForgottenLetters(
            lambda: self.admin, self.clock, NAMESPACE, self.unusable, process="h:1", rejected_look_s=LOOK_S
        )
        self.answer: Callable[[int], int] = lambda now: now
        self.jobs: list[Read[Job]] = []
        self.caught_up = caught_up
        self.terms = 1
        world = World(now=at(0))
        world.publish(job())
        world.round()
        self.state: State = world.state
        self.term = self.begin()

    def begin(self, not_before_ms: int = T0) -> Term:
        clock: Any = LeaderClock(
            self.clock, append_ms=self.broker.append_ms(), received_s=self.clock.monotonic_s(),
            not_before_ms=not_before_ms, max_skew_s=30.0,
        )  # fmt: skip
        lead: Any = SimpleNamespace(
            state=self.state.copy(), clock=clock, writer=self.broker, assignment=SimpleNamespace(generation=1),
            began_ms=clock.now(), term=7,
        )  # fmt: skip
        quiet: Any = SimpleNamespace(
            read=lambda *_: Inputs(jobs=self.jobs), committed=lambda *_: self.jobs.clear(),
            read_jobs_ms=lambda now: self.answer(now), caught_up=lambda: self.caught_up,
            control_offset=lambda: 0, expect=lambda _: None, poll=lambda _: 0, check_echo_age=lambda _: None,
            follow=lambda: None, start=lambda *_: None,
        )  # fmt: skip
        return Term(
            lead, namespace=NAMESPACE, clock=self.clock, fold=quiet, intake=quiet, fencer=quiet,
            witness=Witness(self.clock, max_skew_s=30.0, patience_s=60.0), settings=SchedulerSettings(),
            unusable=self.unusable, letters=self.letters, early=self.early, tzdata="",
            forgotten=self.forgotten,
        )  # fmt: skip

    def live(self, seconds: float) -> None:
        """Rounds, ten a second; a term that is aborted is followed by the next, from what was committed."""
        for _ in range(round(seconds * 10)):
            try:
                self.term.tick()
            except Aborted:
                self.terms += 1
                self.term = self.begin(not_before_ms=at(61))
            self.clock.pass_s(0.1)


def test_when_the_clock_of_runs_went_back_one_transaction_is_aborted_and_what_is_due_waits() -> None:
    """Given a ledger whose leader time is ahead of the clock of `runs`, which was set back by 5 s just before a due time."""
    leader = Leader()
    leader.live(9.8)
    leader.broker.behind_ms = 5_000
    leader.live(5.0)
    assert (leader.broker.aborts, leader.broker.fired) == (1, [])
    leader.live(1.0)
    assert leader.broker.fired == [at(60)]
    assert leader.broker.aborts == 1


@pytest.mark.parametrize("behind_ms", [0, 5_000])
def test_due_times_wait_a_moment_for_inputs_that_are_not_read_though_leader_time_stands_still(behind_ms: int) -> None:
    leader = Leader(caught_up=False)
    leader.clock.pass_s(15)
    leader.broker.behind_ms = behind_ms
    leader.term = leader.begin(not_before_ms=at(65))
    leader.live(CATCH_UP_S)
    assert leader.broker.fired == []
    leader.live(0.3)
    assert leader.broker.fired == [at(60)]


def test_a_leader_that_is_never_idle_records_that_it_read_jobs_all_the_same() -> None:
    """L12. Negative control: with the age of the last transaction as its timer it never would."""
    leader = Leader()
    for second in range(30):
        leader.jobs += [refused(second)]
        leader.live(1.0)
    recorded = sorted({found.jobs_read_ms for found in leader.broker.positions})
    assert len(recorded) >= 30 / SchedulerSettings().anchor_s
    assert max(after - before for before, after in pairwise(recorded)) <= (SchedulerSettings().anchor_s + 1) * 1000


def test_a_broker_of_jobs_that_does_not_answer_is_not_asked_at_each_turn() -> None:
    """Given an answer that takes as long as an anchor lasts, then the loop is held up once, and goes on."""
    leader, asked = Leader(), 0

    def away(_: int) -> int:
        nonlocal asked
        asked += 1
        leader.clock.pass_s(5.0)
        raise Unavailable("no answer")

    leader.answer = away
    leader.live(ASK_AGAIN_S - 10)
    assert asked == 1
    leader.live(15.0)
    assert asked == 2


def test_refusals_follow_their_transaction_when_it_cannot_carry_them() -> None:
    """Given `rejected`, which cannot be written when two records are refused, then they are sent apart once the transaction
    stands, and not before; what is refused later goes with its transaction again."""
    leader = Leader()
    leader.live(1.0)
    leader.unusable.mark(NAMESPACE.rejected)
    leader.broker.torn = True
    leader.jobs += [refused(7), refused(8)]
    leader.live(1.0)
    assert leader.plain.sent == [], "it is not decided yet"
    leader.broker.torn = False
    leader.live(1.0)
    sent = [decode(record.value or b"") for record in leader.plain.sent]
    assert [each.offset for each in sent if isinstance(each, Rejected)] == [7, 8]
    assert leader.broker.letters == []
    leader.clock.pass_s(UNUSABLE_S)
    leader.jobs += [refused(9)]
    leader.live(1.0)
    assert [each.offset for each in leader.broker.letters] == [9]
    assert len(leader.plain.sent) == 2


def refused(offset: int) -> Read[Job]:
    return Read(
        topic=NAMESPACE.jobs, partition=0, offset=offset, append_ms=at(50), key=b"x", raw=b"{}", value=None,
        problem=Problem(error="invalid-job", detail="handler: is missing"),
    )  # fmt: skip


def test_what_stands_open_in_rejected_is_ended_by_two_transactions_after_what_is_due() -> None:
    """By a pair two in a row are one of each."""
    leader = Leader()
    leader.admin.open[NAMESPACE.rejected, 0] = 5
    leader.live(3 * LOOK_S)
    assert leader.broker.fired
    ending = [(NAMESPACE.rejected, "Barrier")]
    first = leader.broker.written.index(ending)
    assert any(("t.runs", "Run") in records for records in leader.broker.written[:first])
    assert leader.broker.written[first + 1] == ending
    assert len([records for records in leader.broker.written if NAMESPACE.rejected in dict(records)]) == 2


def test_a_rejected_that_cannot_be_written_ends_one_term_and_no_other() -> None:
    """Given something that stands open there, and a right to write there that is missing."""
    leader = Leader()
    leader.admin.open[NAMESPACE.rejected, 0] = 5
    leader.broker.closed = frozenset({NAMESPACE.rejected})
    leader.live(TRY_AGAIN_S - 1)
    assert leader.terms == 2
