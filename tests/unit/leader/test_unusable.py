"""What cannot be written is left out, and comes back when the broker says so."""

from __future__ import annotations

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.leader.unusable import ASK_S, FORGOTTEN_S, UNUSABLE_S, Unusable
from dueline.schemas.topics import Namespace
from dueline.schemas.work import Heartbeat, Signal, SignalKind
from tests.unit.core.world import World, job, worker
from tests.unit.leader.logs import ScriptedAdmin
from tests.unit.leader.manual import ManualClock

NAMESPACE = Namespace("t")
DISPATCH = NAMESPACE.dispatch("default")


def fleet(*workers: Heartbeat) -> Fleet:
    """These workers, as the roster shows them."""
    return Fleet(workers={each.incarnation: each for each in workers}, queues={"default": 8})


def offers() -> Decision:
    """A decision with two offers on two partitions, and signals to two homes."""
    world = World(worker(partitions=[0, 1]))
    world.publish(job("a"))
    world.publish(job("b"))
    world.round()
    decision = world.round(world.now + 60_000)
    word = Signal(kind=SignalKind.GRANT, incarnation="w1.0", run="a", attempt=1, claim=1, term=1, leader_ms=0)
    return Decision(
        ledger=decision.ledger, dispatches=decision.dispatches, partitions=decision.partitions, signals=[word, word], homes=[0, 3]
    )


def test_offers_and_signals_for_it_are_left_out_and_the_ledger_stands() -> None:
    """Given an unusable partition of each topic, then only what was meant for it is missing."""
    unusable, decision = Unusable(ManualClock()), offers()
    assert sorted(decision.partitions) == [0, 1]
    assert unusable.without(decision, NAMESPACE) is decision
    unusable.mark_partitions([(DISPATCH, 0), (NAMESPACE.signals, 3)])
    left = unusable.without(decision, NAMESPACE)
    assert left.partitions == [1]
    assert [record.run for record in left.dispatches] == [decision.dispatches[decision.partitions.index(1)].run]
    assert left.homes == [0]
    assert left.ledger == decision.ledger


def test_nothing_is_offered_where_it_cannot_be_placed_or_answered() -> None:
    """Given one partition of a queue and one home, then workers keep the others, and who cannot be told is offered nothing."""
    unusable = Unusable(ManualClock())
    shown = fleet(worker("w1", partitions=[0, 1], home=1), worker("w2", partitions=[2], home=2))
    assert unusable.reachable(shown, NAMESPACE) is shown
    unusable.mark_partitions([(DISPATCH, 0), (NAMESPACE.signals, 2)])
    assert {name: each.partitions for name, each in unusable.reachable(shown, NAMESPACE).workers.items()} == {"w1.0": [1]}


def test_what_has_no_leader_waits_for_one_however_long_that_takes() -> None:
    """Given a partition without a leader for minutes, and a broker that does not always answer; then it is used again once it
    has one, and asked about only now and then."""
    clock, admin = ManualClock(), ScriptedAdmin(without_leader={DISPATCH: {0}})
    unusable = Unusable(clock)
    unusable.mark_partitions([(DISPATCH, 0)])
    for _ in range(200):
        clock.pass_s(1)
        admin.away = clock.monotonic % 7 < 3
        unusable.ask(admin, [DISPATCH])
    assert unusable.has_partition(DISPATCH, 0)
    assert 20 <= admin.asked <= 200 / ASK_S
    admin.away = False
    admin.without_leader.clear()
    clock.pass_s(ASK_S)
    unusable.ask(admin, [DISPATCH])
    assert not unusable.has_partition(DISPATCH, 0)


def test_what_has_a_leader_and_took_nothing_is_tried_again_after_a_while() -> None:
    """Given too few copies in sync, which no question shows, then it rests for a moment at first, since a broker may have been
    slow, and longer each time; after a good while without, for a moment again."""
    clock, admin = ManualClock(), ScriptedAdmin()
    unusable, rests = Unusable(clock), list[float]()
    for pause_s in (1, 1, 1, 1, FORGOTTEN_S, 1):
        unusable.mark_partitions([(DISPATCH, 0)])
        began_s = clock.monotonic
        while unusable.has_partition(DISPATCH, 0):
            clock.pass_s(0.5)
            unusable.ask(admin, [DISPATCH])
        rests.append(clock.monotonic - began_s)
        clock.pass_s(pause_s)
    assert [round(rest / ASK_S) for rest in rests] == [1, 2, 4, 6, 6, 1]
    assert max(rests) <= UNUSABLE_S + ASK_S


def test_where_one_has_no_leader_all_others_without_one_are_found_at_once() -> None:
    """Given several topics on a broker that went away, of which one was met; then the others are not stumbled over."""
    admin = ScriptedAdmin(without_leader={DISPATCH: {0, 2}, NAMESPACE.signals: {1}})
    unusable = Unusable(ManualClock())
    unusable.ask(admin, [DISPATCH, NAMESPACE.signals])
    assert admin.asked == 0
    unusable.mark_partitions([(DISPATCH, 0)])
    unusable.ask(admin, [DISPATCH, NAMESPACE.signals])
    assert unusable.has_partition(DISPATCH, 2)
    assert unusable.has_partition(NAMESPACE.signals, 1)
    assert not unusable.has_partition(DISPATCH, 1)
