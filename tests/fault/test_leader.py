"""Leaders that are stopped, blocked and killed inside their transactions. Two schedulers and a worker go on from test to
test; each test judges everything that has happened so far."""

from __future__ import annotations

import signal

import pytest

from dueline.schemas.run import RunState
from dueline.schemas.work import Dispatch
from tests.fault.cluster import REFUSED, Cluster
from tests.fault.process import Process

PLAIN, AHEAD = "plain", "ahead"


@pytest.fixture
def pair(shared: Cluster) -> tuple[Process, Process]:
    """(leader, standby), both up and joined; a worker; two jobs, one of them dispatched ahead of time."""
    if not shared.processes:
        shared.publish(PLAIN, {"every": "1s"})
        shared.publish(AHEAD, {"every": "2s"}, dispatch_ahead="3s")
        shared.worker("w1")
        shared.scheduler("s1")
        shared.until_led_by(shared.processes["s1"])
        shared.scheduler("s2")
    schedulers = [shared.processes[name] for name in ("s1", "s2")]
    for process in schedulers:
        if not process.runs:
            shared.scheduler(process.name)
        process.arm("")
    leader = shared.until_both(*schedulers)
    standby = next(process for process in schedulers if process is not leader)
    return leader, standby


@pytest.mark.parametrize("point", ["leader.before-offsets", "leader.after-offsets", "leader.before-commit"])
def test_t4_t5_a_leader_frozen_inside_a_transaction_wakes_up_refused(
    shared: Cluster, pair: tuple[Process, Process], point: str
) -> None:
    """Given a leader stopped inside a transaction (before the offsets; between them and the records; before the commit),
    when the standby leads and the old leader is woken and goes on, then it is refused, nothing of that transaction is
    visible, and every due time has its one run."""
    old, standby = pair
    old.arm(f"{point}=stop")
    shared.until_stopped(old, point)
    before = len(shared.barriers())
    shared.until_led_by(standby)
    shared.until_goes_on(PLAIN)
    woken_at = old.log_size()
    old.signal(signal.SIGCONT)
    shared.until_said(old, *REFUSED, since=woken_at)
    shared.until_goes_on(PLAIN)
    assert len(shared.barriers()) > before
    world = shared.judged(PLAIN, AHEAD)
    if point == "leader.before-commit":
        written = shared.uncommitted(shared.rig.namespace.runs)
        assert len(written) > len(world.ledger), "the frozen transaction had written nothing: the test proves nothing"


def test_t6_t22_a_standby_frozen_before_its_init_fences_late_and_is_refused(
    shared: Cluster, pair: tuple[Process, Process]
) -> None:
    """Given a standby stopped between its assignment and the initialisation, while another one leads and writes, when it is
    woken, then it initialises late, its barrier is refused and no state of it used; the true leader comes back by itself."""
    first, late = pair
    late.arm("leader.before-init=stop")
    shared.kill(first)
    shared.until_stopped(late, "leader.before-init")
    true = shared.scheduler(first.name)
    shared.until_led_by(true)
    shared.until_goes_on(PLAIN)
    terms, true_at, late_at = len(shared.barriers()), true.log_size(), late.log_size()
    late.signal(signal.SIGCONT)
    shared.until_said(late, *REFUSED, since=late_at)
    shared.until_said(late, "holding 0 of the topic's partitions", since=late_at)
    assert all(not barrier.process.endswith(f":{late.pid}") for barrier in shared.barriers()[terms:])
    shared.until_said(true, "fenced by a newer producer", "refused this generation", "the group moved on", since=true_at)
    shared.until("another term", lambda: len(shared.barriers()) > terms)
    shared.until_goes_on(PLAIN)
    shared.judged(PLAIN, AHEAD)


def test_t8_a_standby_that_joins_inside_a_transaction_costs_one_refusal(
    shared: Cluster, pair: tuple[Process, Process]
) -> None:
    """Given a leader inside a transaction whose Python stands still, when a standby joins (the client's thread joins the new
    generation by itself) and the leader goes on, then that transaction is refused once, and the same process leads on."""
    leader, standby = pair
    shared.kill(standby)
    shared.until("one member", lambda: shared._settled(1))
    shared.until_goes_on(PLAIN, 1)
    leader.arm("leader.before-offsets=block")
    shared.until_said(leader, "failpoint leader.before-offsets: block")
    shared.scheduler(standby.name)
    shared.until("the standby has joined", lambda: shared._settled(2))
    at, terms = leader.log_size(), len(shared.barriers())
    leader.arm("")
    shared.until_said(leader, *REFUSED, since=at)
    shared.until("a term of the new generation", lambda: len(shared.barriers()) > terms)
    shared.until_goes_on(PLAIN)
    assert shared.leader() is leader
    shared.judged(PLAIN, AHEAD)


def test_t14_a_leader_killed_inside_a_transaction_has_dispatched_nothing(
    shared: Cluster, pair: tuple[Process, Process]
) -> None:
    """Given a leader killed before the commit of a transaction that holds an offer, then neither the run nor the offer is
    visible, and each run is dispatched and done once."""
    leader, standby = pair
    for _ in range(8):  # not every transaction of a leader holds an offer
        shared.may_end(leader)
        leader.arm("leader.before-commit=kill")
        assert leader.wait_ended() == -signal.SIGKILL
        shared.until_led_by(standby)
        torn = torn_offers(shared)
        if torn:
            break
        leader, standby = standby, shared.scheduler(leader.name)
        shared.until_both(leader, standby)
    else:
        raise AssertionError("no transaction that was torn held an offer")
    for offer in torn:
        shared.until_state(offer.run, RunState.SUCCEEDED)  # one that was offered ahead has its due time yet to come
        assert [effect.attempt for effect in shared.effects_of(offer.run)] == [1]
    shared.judged(PLAIN, AHEAD)


def torn_offers(shared: Cluster) -> list[Dispatch]:
    """Offers that were written and never committed."""
    committed = {(one.term, one.seq) for one in shared.dispatches()}
    written = shared.uncommitted(shared.rig.namespace.dispatch("default"), 4)
    return [one for one in written if isinstance(one, Dispatch) and (one.term, one.seq) not in committed]

