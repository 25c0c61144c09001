"""Where offers go and in which order; offers nobody answers; what a new term sends again."""

from __future__ import annotations

from dataclasses import replace

from dueline.scheduler.core.fleet import Fleet, Placement
from dueline.scheduler.core.state import State
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import WorkerState
from tests.unit.core.world import World, at, fleet, job, worker

ONCE = '{"at": "2027-01-15T08:01:00Z"}'


def test_offers_go_where_a_slot_is_free_and_the_handler_is_known() -> None:
    """Given two workers, one full and one without the handler, then nothing is placed there, and no more than there is room."""
    state = State()
    taken = worker("w1", slots=1, partitions=[0, 1, 2])
    other = worker("w2", handlers=["x"], partitions=[3])
    placement = Placement(fleet(taken, other), state)
    assert placement.take("default", "h") in (0, 1, 2)
    assert placement.take("default", "h") is None
    assert placement.take("default", "x") == 3
    assert placement.take("default", "nobody's") is None
    assert placement.take("elsewhere", "h") is None


def test_the_least_busy_worker_and_its_least_loaded_partition_come_first() -> None:
    """Given 3 and 1 free slots, then offers go to the freer worker until they are even, its partitions in turn."""
    placement = Placement(fleet(worker("w1", slots=3, partitions=[0, 1]), worker("w2", slots=1, partitions=[2])), State())
    assert [placement.take("default", "h") for _ in range(5)] == [0, 1, 0, 2, None]


def test_draining_workers_and_partitions_that_are_none_get_nothing() -> None:
    """Given a worker that drains, or names a partition that the topic does not have, then nothing is placed there."""
    drains = worker("w1", state=WorkerState.DRAINING)
    wrong = worker("w2", partitions=[8, -1])
    assert Placement(fleet(drains, wrong), State()).take("default", "h") is None


def test_a_slot_that_came_free_in_this_round_is_used_in_it() -> None:
    """Given one slot and a run that waits, then the round that reads the end of the first offers the second."""
    world = World(worker(slots=1))
    world.publish(job("a", schedule=ONCE))
    world.publish(job("b", schedule=ONCE))
    world.round()
    world.round(at(60))
    assert [world.due(60, name).state for name in "ab"] == [RunState.DISPATCHED, RunState.WAITING]
    world.finish(world.started(world.due(60, "a").key))
    world.round()
    assert [world.due(60, name).state for name in "ab"] == [RunState.SUCCEEDED, RunState.DISPATCHED]


def test_the_backlog_is_served_in_due_time_order() -> None:
    """Given no worker for a while, then the earliest due time goes first when one comes."""
    world = World(worker(slots=1))
    world.fleet = Fleet(queues={"default": 8})
    for name, second in (("c", 20), ("a", 40), ("b", 30)):
        world.publish(job(name, schedule=f'{{"at": "2027-01-15T08:00:{second}Z"}}'))
    world.round()
    world.round(at(45))
    world.fleet = fleet(worker(slots=2))
    assert [each.job.id for each in world.round().dispatches] == ["c", "b"]


def test_what_waits_for_a_worker_goes_before_what_comes_due_now() -> None:
    """Given one slot that is always taken, when it comes free just as another run is due, then the older one has it."""
    world = World(worker(slots=1))
    for name, second in (("a", 10), ("b", 20), ("c", 30)):
        world.publish(job(name, schedule=f'{{"at": "2027-01-15T08:00:{second}Z"}}'))
    world.round()
    world.round(at(10))
    claim = world.started(world.due(10, "a").key)
    world.round(at(20))
    world.finish(claim)
    assert [each.job.id for each in world.round(at(30)).dispatches] == ["b"]
    assert world.due(30, "c").state == RunState.WAITING


def test_a_handler_that_nobody_has_keeps_nobody_waiting() -> None:
    """Given 3,000 earlier runs of an unknown handler, then a run whose handler has room is offered all the same."""
    world = World()
    world.fleet = Fleet(queues={"default": 8})
    for number in range(3_000):
        world.publish(job(f"a{number}", schedule=ONCE, handler="nobody's"))
    world.publish(job("z", schedule='{"at": "2027-01-15T08:01:01Z"}'))
    world.rounds()
    world.rounds(at(62))
    world.fleet = fleet(worker())
    assert [each.job.id for each in world.round().dispatches] == ["z"]


def test_an_unanswered_offer_is_made_again_as_the_next_attempt() -> None:
    """Given no claim within the time-out, then attempt 2 goes out, and the claim of attempt 1 is not granted any more."""
    world = World(worker(slots=1, partitions=[0, 1]))
    world.publish(job(schedule=ONCE))
    world.round()
    world.round(at(60))
    assert world.round(at(65)).dispatches == []
    old = world.dispatches[0]
    world.round(at(65.001))
    assert world.due(60).state == RunState.WAITING, "its place counts as taken in this round: it goes out in the next one"
    world.round(at(65.002))
    assert (world.due(60).attempt, world.due(60).state) == (2, RunState.DISPATCHED)
    claim = world.claim(old)
    assert [(s.kind, s.claim) for s in world.round().signals] == [("decline", claim.claim)]


def test_a_new_term_sends_what_stands_again_and_waits_before_it_renews() -> None:
    """W4: given a take-over, then the same offer is sent again as it stands; it is renewed only after this term waited."""
    world = World()
    world.publish(job(schedule=ONCE))
    world.round()
    first = world.round(at(60)).dispatches[0]
    world.now = at(64)
    world.take_over()
    again = world.round()
    assert [replace(each, leader_ms=first.leader_ms) for each in again.dispatches] == [first]
    assert again.partitions == [world.due(60).partition]
    assert world.round(at(68)).dispatches == []
    assert [each.attempt for each in world.round(at(69)).dispatches] == [2]


def test_a_first_round_that_may_not_fire_sends_again_all_the_same() -> None:
    """Given clocks that disagree when a term begins, then what stands is sent again and nothing new fires."""
    world = World()
    world.publish(job(schedule='{"every": "30s"}'))
    world.round()
    world.round(at(30))
    world.take_over()
    decision = world.round(at(60), firing=False)
    assert [each.due_ms for each in decision.dispatches] == [at(30)]
    assert not [record for record in decision.ledger if isinstance(record, Run)]


def test_a_queue_whose_topic_is_gone_stops_nobody() -> None:
    """Given an offer in a queue without a topic any more, then a new term does not send it, and others go on."""
    world = World()
    world.publish(job(schedule=ONCE))
    world.round()
    world.round(at(60))
    world.take_over()
    world.fleet = Fleet(queues={"other": 4})
    assert world.round().dispatches == []


def test_a_flood_of_events_does_not_keep_due_times_waiting() -> None:
    """Given more events in a round than a slice holds, then due times are decided in the same round."""
    world = World(worker(slots=50), max_records=5)
    for number in range(12):
        world.publish(job(f"j{number:02}", schedule=ONCE))
    world.publish(job("next", schedule='{"at": "2027-01-15T08:01:05Z"}'))
    world.rounds()
    world.rounds(at(60))
    for offer in list(world.dispatches):
        world.claim(offer)
    world.round(at(65))
    assert world.due(65, "next").state == RunState.DISPATCHED
