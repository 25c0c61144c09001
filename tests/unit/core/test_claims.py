"""W3, W4, W7: one grant an attempt, never a stale one; heartbeats are answered; a fenced worker's runs go on elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.scheduler.core.ports import FenceResult
from dueline.schemas.ledger import Fence, FencePhase
from dueline.schemas.run import RunState
from dueline.schemas.work import EventKind, HeldState, Outcome, SignalKind, WorkerState
from tests.unit.core.checker import faults
from tests.unit.core.world import World, at, fleet, holding, job, worker

KEY = "menu@2027-01-15T08:01:00Z"


def offered() -> World:
    """A run of second 60 on offer; two workers."""
    world = World(worker("w1"), worker("w2", partitions=[2, 3], home=4))
    world.publish(job(schedule='{"at": "2027-01-15T08:01:00Z"}'))
    world.round()
    world.round(at(60))
    return world


def kinds(signals: object) -> list[tuple[str, int]]:
    """Kind and claim of signals."""
    return [(str(each.kind), each.claim) for each in signals]  # type: ignore[attr-defined]


def test_one_claim_of_an_attempt_is_granted() -> None:
    """W3: given two claims of one offer, then the first is granted, in the ledger and on its home, the other declined."""
    world = offered()
    first, second = world.claim(by="w1"), world.claim(by="w2", home=4)
    decision = world.round(at(61))
    run = world.record(KEY)
    assert (run.state, run.incarnation, run.claim, run.home, run.granted_ms) == (RunState.RUNNING, "w1.0", first.claim, 3, at(61))
    assert run.deadline_ms == at(61) + run.job.timeout_ms
    assert [(s.kind, s.claim, home) for s, home in zip(decision.signals, decision.homes, strict=True)] == [
        (SignalKind.GRANT, first.claim, 3),
        (SignalKind.DECLINE, second.claim, 4),
    ]


@pytest.mark.parametrize("stale", [{"dispatch_term": 55}, {"dispatch_seq": 77}, {"attempt": 2}, {"attempt": 0}])
def test_a_stale_copy_of_a_dispatch_is_not_granted(stale: dict[str, int]) -> None:
    """W3: given a claim with another term, sequence or attempt than the offer that stands, then it is declined."""
    world = offered()
    world.take_over()
    claim = world.claim(**stale)  # type: ignore[arg-type]
    assert kinds(world.round().signals) == [("decline", claim.claim)]
    assert world.record(KEY).state == RunState.DISPATCHED


def test_a_claim_read_twice_is_granted_twice_to_the_same() -> None:
    """Given the granted claim read again, then the grant is sent again and the ledger does not change."""
    world = offered()
    claim = world.started(KEY)
    world.say(claim)
    decision = world.round()
    assert kinds(decision.signals) == [("grant", claim.claim)]
    assert [record for record in decision.ledger if record.key == KEY] == []


def test_claimed_and_declined_in_one_breath_sends_no_grant() -> None:
    """W2: given an offer that a worker claims and declines at once, then no grant goes out and the run rests."""
    world = offered()
    world.decline(world.claim())
    assert world.round().signals == []
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.WAITING, "declined")


def test_events_of_others_change_nothing() -> None:
    """Given a finish of another claim, attempt or incarnation, of an unknown run, or read twice, then nothing changes."""
    world = offered()
    claim = world.started(KEY)
    for stale in ({"claim": 99}, {"attempt": 2}, {"incarnation": "w1.9"}, {"run": "nobody@x"}):
        world.finish(replace(claim, **stale))
        world.decline(replace(claim, **stale))
    world.say(replace(claim, kind="grumbled"))
    assert world.round().ledger == []
    world.finish(claim)
    world.finish(claim, Outcome.FAILURE)
    world.round()
    assert world.record(KEY).state == RunState.SUCCEEDED
    world.say(claim)
    assert kinds(world.round().signals) == [("decline", claim.claim)]


def test_w4_a_grant_that_was_not_read_is_sent_again() -> None:
    """Given a heartbeat that still asks, or does not name the claim at all, then the grant comes again after a while."""
    world = offered()
    claim = world.started(KEY)
    asking, silent = holding(worker(), (claim, HeldState.REQUESTED)), worker()
    assert world.round(heartbeats=[asking]).signals == []
    assert kinds(world.round(at(61), heartbeats=[asking]).signals) == [("grant", claim.claim)]
    assert kinds(world.round(heartbeats=[silent]).signals) == [("grant", claim.claim)]
    assert world.round(heartbeats=[holding(worker(), (claim, HeldState.RUNNING))]).signals == []


def test_w4_a_claim_the_ledger_does_not_have_is_declined_again() -> None:
    """Given heartbeats that name a claim of an ended run, a superseded attempt or another's grant, then each is declined."""
    world = offered()
    lost = world.claim(by="w2", home=4)
    world.attempts_log.clear()
    granted = world.started(KEY, by="w1")
    beat = holding(worker("w2", home=4), (lost, HeldState.REQUESTED))
    assert kinds(world.round(heartbeats=[beat]).signals) == [("decline", lost.claim)]
    world.finish(granted)
    world.round()
    beat = holding(worker(), (granted, HeldState.RUNNING))
    assert kinds(world.round(heartbeats=[beat]).signals) == [("decline", granted.claim)]


def test_w4_a_claim_that_was_not_read_yet_is_left_alone() -> None:
    """Given a heartbeat that overtook its claim, then the claim is not declined: it may be granted when it is read."""
    world = offered()
    claim = world.claim()
    pending, world.attempts_log = world.attempts_log, []
    assert world.round(heartbeats=[holding(worker(), (claim, HeldState.REQUESTED))]).signals == []
    world.attempts_log = pending
    assert kinds(world.round().signals) == [("grant", claim.claim)]


def test_w7_intent_then_done_and_the_next_attempt() -> None:
    """Given a silent worker, then its fence is intended first; after it was fenced and read out its run goes on elsewhere."""
    world = offered()
    world.started(KEY)
    world.fleet = fleet(worker("w2", partitions=[2]))
    intent = world.round(at(70), dead=[worker()])
    assert [(f.phase, f.home, f.transactional_ids) for f in intent.ledger if isinstance(f, Fence)] == [
        (FencePhase.INTENT, 3, ["w1.0.claim", "w1.0.a", "w1.0.b"])
    ]
    assert [entry[0] for entry in world.state.fencing.between()] == ["w1.0"]
    assert world.record(KEY).state == RunState.RUNNING
    assert world.round(dead=[worker()]).ledger == []
    done = world.round(at(71), fenced=[FenceResult(incarnation="w1.0", attempts_end=5, steps_end=900)])
    assert isinstance(done.ledger[-2], Fence)
    assert (done.ledger[-2].phase, done.ledger[-2].steps_end, done.ledger[-2].attempts_end) == (FencePhase.DONE, 900, 5)
    run = world.record(KEY)
    assert (run.state, run.attempt, run.partition, run.losses) == (RunState.DISPATCHED, 2, 2, 1)
    assert list(world.state.fencing.between()) == []


def test_w7_a_worker_that_stopped_is_fenced_only_for_what_it_still_holds() -> None:
    """Given a last heartbeat that says so, then nothing is fenced in the round that decides its last event, and a run of which it
    told no end is taken from it."""
    world = offered()
    claim = world.started(KEY)
    world.finish(claim)
    stopped = replace(worker(), state=WorkerState.STOPPED)
    assert [each for each in world.round(dead=[stopped]).ledger if isinstance(each, Fence)] == []
    assert world.record(KEY).state == RunState.SUCCEEDED
    world = offered()
    world.started(KEY)
    assert [each.reason for each in world.round(dead=[stopped]).ledger if isinstance(each, Fence)] == ["it stopped and held runs"]


def test_t17c_a_finish_that_stands_before_the_fence_counts_first() -> None:
    """Given a `finished` read in the round of the read-out, then the run is not run again."""
    world = offered()
    claim = world.started(KEY)
    world.round(dead=[worker()])
    world.finish(claim)
    decision = world.round(fenced=[FenceResult(incarnation="w1.0", attempts_end=5, steps_end=900)])
    assert world.record(KEY).state == RunState.SUCCEEDED
    assert decision.dispatches == []


def test_w7_a_claim_of_a_fenced_incarnation_yields_the_next_attempt() -> None:
    """Given a claim read after the fence was intended, then it is told so, and the run is offered to another as attempt 2."""
    world = offered()
    world.round(dead=[worker()])
    world.fleet = fleet(worker("w1"), worker("w2", partitions=[2]))
    claim = world.claim(by="w1")
    decision = world.round()
    assert kinds(decision.signals) == [("fenced", claim.claim)]
    run = world.record(KEY)
    assert (run.state, run.attempt, run.partition, run.losses) == (RunState.DISPATCHED, 2, 2, 0)


def test_w7_a_worker_that_wakes_up_is_told_and_gets_nothing() -> None:
    """Given a heartbeat of a fenced incarnation, then it is told so, and nothing is offered on its partitions."""
    world = offered()
    world.round(dead=[worker("w1"), worker("w2")])
    world.decline(world.claim(by="w3"))
    world.round()
    decision = world.round(at(62), heartbeats=[worker("w1")])
    assert [(s.kind, s.incarnation) for s in decision.signals] == [(SignalKind.FENCED, "w1.0")]
    assert (world.record(KEY).state, world.record(KEY).reason) == (RunState.WAITING, "no-worker")


def test_w7_a_fence_that_was_torn_is_done_again() -> None:
    """Given the round of the read-out torn anywhere, then no run stays with the dead worker, and its loss counts once."""
    for keep in range(4):
        world = offered()
        world.started(KEY)
        world.fleet = fleet(worker("w2", partitions=[2]))
        world.round(dead=[worker()])
        result = [FenceResult(incarnation="w1.0", attempts_end=5, steps_end=900)]
        assert len(world.crash(keep=keep, fenced=result).ledger) == 3
        if list(world.state.fencing.between()):
            world.round(fenced=result)
        else:
            world.round()
        run = world.record(KEY)
        assert (run.state, run.attempt, run.losses, len(run.earlier)) == (RunState.DISPATCHED, 2, 1, 1)
        assert world.state.fences["w1.0"].phase == FencePhase.DONE
        assert faults(world.versions, world.runs, world.now) == []


def test_every_kind_of_event_is_idempotent_over_a_torn_transaction() -> None:
    """Given a claim, a decline, a failure, each read again after any prefix stood, then each counts once."""
    for kind in EventKind:
        for keep in range(3):
            world = offered()
            claim = world.claim()
            if kind != EventKind.CLAIMED:
                world.round()
                world.say(replace(claim, kind=kind, outcome=Outcome.FAILURE if kind == EventKind.FINISHED else ""))
            world.crash(at(61), keep=keep)
            world.round()
            run = world.record(KEY)
            expected = {"claimed": ("running", 0), "declined": ("waiting", 0), "finished": ("failed", 1)}[kind]
            assert (run.state, run.failures) == expected
