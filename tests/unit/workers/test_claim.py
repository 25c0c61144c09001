"""The claims' state machine: given what happened, when something happens, then this is decided."""

from __future__ import annotations

from dueline.schemas.run import RunJob, StepRange
from dueline.schemas.work import Dispatch, HeldState, Signal, SignalKind
from dueline.workers.claim import (
    Abandon,
    AskToStop,
    Begin,
    Claims,
    ClaimState,
    Decision,
    Decline,
    DeclineUnknown,
    EndNow,
    Resume,
)

INC = "w1.00000001"
LEASED = {INC: True}
NOW = 1000.0  # monotonic seconds; log time is the same plus OFFSET
OFFSET = 1_800_000_000.0


def dispatch(seq: int = 1, *, due_s: float = NOW, earlier: bool = False, timeout_ms: int = 0) -> Dispatch:
    job = RunJob(id=f"job{seq}", version=1, queue="q", handler="h", payload="null", timeout_ms=timeout_ms)
    return Dispatch(
        job=job, run=f"job{seq}@x", due_ms=round((due_s + OFFSET) * 1000), trigger="schedule", attempt=1, term=1, seq=seq,
        ahead=due_s > NOW, earlier=[StepRange(attempt=1, home=0, start=0, end=9)] if earlier else [],
    )  # fmt: skip


def signal(kind: SignalKind, claim: int = 1, incarnation: str = INC) -> Signal:
    return Signal(kind=kind, incarnation=incarnation, run=f"job{claim}@x", attempt=1, claim=claim, reason="r")


def claims(slots: int = 2) -> Claims:
    machine = Claims(slots=slots, start_bound_s=1.0)
    machine.open(INC)
    return machine


def requested(slots: int = 2, count: int = 1, *, due_s: float = NOW, earlier: bool = False, timeout_ms: int = 0) -> Claims:
    machine = claims(slots)
    for number in range(1, count + 1):
        machine.claiming((INC, number), dispatch(number, due_s=due_s, earlier=earlier, timeout_ms=timeout_ms))
    assert machine.committed([(INC, n) for n in range(1, count + 1)], NOW) == []
    return machine


def held(slots: int = 2, count: int = 1, *, due_s: float = NOW, earlier: bool = False, timeout_ms: int = 0) -> Claims:
    machine = requested(slots, count, due_s=due_s, earlier=earlier, timeout_ms=timeout_ms)
    for number in range(1, count + 1):
        machine.signal(signal(SignalKind.GRANT, number), NOW)
    return machine


def tick(machine: Claims, now_s: float = NOW, leases: dict[str, bool] = LEASED) -> list[Decision]:
    return machine.tick(now_s, OFFSET, leases)


def begun(machine: Claims, now_s: float = NOW) -> list[int]:
    return [decision.claim.id[1] for decision in tick(machine, now_s) if isinstance(decision, Begin)]


def state(machine: Claims, claim: int = 1) -> ClaimState | None:
    found = machine.get((INC, claim))
    return None if found is None else found.state


# -- W3: grant ---------------------------------------------------------------------------------------------------------


def test_given_a_claim_without_a_grant_when_time_passes_then_nothing_begins() -> None:
    machine = requested()
    for now_s in (NOW, NOW + 10, NOW + 10_000):
        assert tick(machine, now_s) == []
    assert [one.state for one in machine.named(INC)] == [HeldState.REQUESTED]


def test_given_a_grant_when_its_moment_comes_then_it_begins_once() -> None:
    machine = held(due_s=NOW + 5)
    assert tick(machine, NOW + 4.999) == []
    assert begun(machine, NOW + 5) == [1]
    machine.signal(signal(SignalKind.GRANT), NOW + 6)  # sent again
    assert begun(machine, NOW + 6) == []
    assert [one.state for one in machine.named(INC)] == [HeldState.RUNNING]


def test_given_a_grant_before_the_commits_answer_when_that_comes_then_it_is_held() -> None:
    machine = claims()
    machine.claiming((INC, 1), dispatch())
    assert machine.signal(signal(SignalKind.GRANT), NOW) == []
    assert tick(machine) == []
    assert machine.named(INC) == []
    machine.committed([(INC, 1)], NOW)
    assert state(machine) == ClaimState.HELD
    assert begun(machine) == [1]


def test_given_a_claim_that_was_not_committed_when_granted_then_it_is_unknown() -> None:
    machine = claims()
    machine.claiming((INC, 1), dispatch())
    machine.not_committed([(INC, 1)])
    assert [type(one) for one in machine.signal(signal(SignalKind.GRANT), NOW)] == [DeclineUnknown]


# -- W4: signals ----------------------------------------------------------------------------------------------------------


def test_given_no_such_claim_when_granted_then_it_is_declined_once_until_written() -> None:
    machine = claims()
    stranger = signal(SignalKind.GRANT, 9)
    assert machine.signal(stranger, NOW) == [DeclineUnknown(signal=stranger)]
    assert machine.signal(stranger, NOW) == []
    machine.written((INC, 9))
    assert machine.signal(stranger, NOW) == []


def test_given_a_claim_that_has_left_when_granted_then_its_event_is_the_answer() -> None:
    machine = held()
    assert begun(machine) == [1]
    machine.ended((INC, 1))
    machine.leaving((INC, 1))
    machine.written((INC, 1))
    assert machine.signal(signal(SignalKind.GRANT), NOW) == []


def test_given_another_incarnations_signal_then_it_is_ignored() -> None:
    assert claims().signal(signal(SignalKind.GRANT, incarnation="w1.gone"), NOW) == []


def test_given_a_held_claim_when_recalled_or_cancelled_then_it_is_declined_and_never_begins() -> None:
    for kind, reason in ((SignalKind.RECALL, "recalled"), (SignalKind.CANCEL, "cancelled")):
        for machine in (held(due_s=NOW + 5), requested(due_s=NOW + 5)):
            [decision] = machine.signal(signal(kind), NOW)
            assert isinstance(decision, Decline)
            assert decision.reason == reason
            assert begun(machine, NOW + 5) == []
            assert machine.signal(signal(kind), NOW) == []
            assert len(machine.named(INC)) == 1  # until it is written
            machine.written((INC, 1))
            assert machine.named(INC) == []


def test_given_a_begun_claim_when_recalled_then_nothing_and_when_cancelled_then_it_is_asked_to_stop() -> None:
    machine = held()
    assert begun(machine) == [1]
    assert machine.signal(signal(SignalKind.RECALL), NOW) == []
    assert [type(one) for one in machine.signal(signal(SignalKind.CANCEL), NOW)] == [AskToStop]
    assert state(machine) == ClaimState.RUNNING


def test_given_a_claim_when_declined_by_the_leader_then_it_leaves_without_an_event() -> None:
    for machine in (requested(), held(due_s=NOW + 5)):
        assert machine.signal(signal(SignalKind.DECLINE), NOW) == []
        assert machine.get((INC, 1)) is None
        assert begun(machine, NOW + 5) == []


# -- W2: every offer is answered ---------------------------------------------------------------------------------------


def test_given_no_free_slot_when_a_second_has_passed_then_the_run_is_declined() -> None:
    machine = held(slots=1, count=2)
    assert begun(machine) == [1]
    assert tick(machine, NOW + 0.999) == []
    [decision] = tick(machine, NOW + 1.0)
    assert isinstance(decision, Decline)
    assert (decision.claim.id[1], decision.reason) == (2, "no slot")


def test_given_no_free_slot_when_one_is_freed_in_time_then_the_run_begins() -> None:
    machine = held(slots=1, count=2)
    assert begun(machine) == [1]
    machine.ended((INC, 1))
    assert begun(machine, NOW + 0.5) == [2]


def test_runs_begin_in_the_order_of_their_due_times() -> None:
    machine = claims(slots=2)
    for number, due in ((1, NOW + 3), (2, NOW + 1), (3, NOW + 2)):
        machine.claiming((INC, number), dispatch(number, due_s=due))
    machine.committed([(INC, 1), (INC, 2), (INC, 3)], NOW)
    for number in (1, 2, 3):
        machine.signal(signal(SignalKind.GRANT, number), NOW)
    assert machine.next_s(NOW, OFFSET) == NOW + 1
    assert begun(machine, NOW + 3) == [2, 3]


# -- W8: lease ---------------------------------------------------------------------------------------------------------


def test_given_no_lease_when_due_then_it_waits_however_long_and_begins_with_the_lease() -> None:
    machine = held()
    assert tick(machine, NOW, {INC: False}) == []
    assert tick(machine, NOW + 30, {}) == []
    wake = machine.next_s(NOW + 30, OFFSET)
    assert wake is not None
    assert wake > NOW + 30  # no busy loop meanwhile
    assert begun(machine, NOW + 31) == [1]


def test_given_a_lease_that_lapsed_when_it_begins_again_then_what_waited_for_it_is_handed_back() -> None:
    machine = held(slots=1, count=2)
    assert begun(machine) == [1]
    machine.claiming((INC, 3), dispatch(3))
    assert machine.lapsed(INC) == [Decline(claim=machine.of(INC)[1], reason="lease lapsed")]
    assert state(machine, 1) == ClaimState.RUNNING  # what runs learns it from its next commit
    [late] = machine.committed([(INC, 3)], NOW)  # on its way to the log when the lease had lapsed
    assert isinstance(late, Decline)
    assert machine.lapsed("another.00000001") == []


# -- W9: resume ----------------------------------------------------------------------------------------------------------


def test_given_earlier_attempts_when_granted_then_it_begins_only_once_their_steps_are_read() -> None:
    machine = requested(earlier=True)
    assert [type(one) for one in machine.signal(signal(SignalKind.GRANT), NOW)] == [Resume]
    assert tick(machine, NOW + 100) == []
    machine.resumed((INC, 1), {}, NOW + 100)
    machine.resumed((INC, 1), {}, NOW + 100)
    assert begun(machine, NOW + 100) == [1]


def test_given_steps_being_read_when_recalled_then_it_is_declined_and_the_answer_comes_to_nothing() -> None:
    machine = requested(earlier=True)
    machine.signal(signal(SignalKind.GRANT), NOW)
    assert [type(one) for one in machine.signal(signal(SignalKind.RECALL), NOW)] == [Decline]
    machine.resumed((INC, 1), {}, NOW)
    assert begun(machine, NOW + 1) == []


# -- time-out, fence, drain ----------------------------------------------------------------------------------------------


def test_given_a_timeout_when_it_passes_then_the_attempt_ends_and_its_slot_stays_taken() -> None:
    machine = held(slots=1, timeout_ms=500)
    assert begun(machine, NOW + 1) == [1]
    assert machine.next_s(NOW + 1, OFFSET) == NOW + 1.5
    assert [type(one) for one in tick(machine, NOW + 1.5)] == [EndNow]
    assert tick(machine, NOW + 2) == []
    machine.written((INC, 1))
    assert (machine.free_slots, machine.stuck()) == (0, 1)
    assert machine.leaving((INC, 1)) is None  # its thread ends: nothing more is written
    machine.ended((INC, 1))
    assert (machine.free_slots, machine.stuck()) == (1, 0)


def test_given_a_fence_then_all_of_the_incarnation_is_dropped_and_only_what_runs_is_closed() -> None:
    machine = held(count=2, slots=1)
    assert begun(machine) == [1]
    assert [(type(one), one.claim.id[1]) for one in machine.over(INC) if isinstance(one, Abandon)] == [(Abandon, 1)]
    assert machine.named(INC) == []
    assert tick(machine, NOW + 5) == []
    assert machine.signal(signal(SignalKind.GRANT, 2), NOW) == []
    assert machine.free_slots == 0
    machine.ended((INC, 1))
    assert machine.free_slots == 1


def test_given_a_drain_then_what_has_not_begun_is_declined_now_and_when_it_comes() -> None:
    machine = held(count=2, slots=1)
    machine.claiming((INC, 3), dispatch(3))
    assert begun(machine) == [1]
    decided = machine.drain()
    assert [(type(one), one.claim.id[1]) for one in decided if isinstance(one, Decline)] == [(Decline, 2)]
    assert [type(one) for one in machine.committed([(INC, 3)], NOW)] == [Decline]
    assert begun(machine, NOW + 1) == []
    assert state(machine, 1) == ClaimState.RUNNING
    assert [type(one) for one in machine.end_drain()] == [EndNow]
    assert machine.end_drain() == []
