"""Leaders that stall, take over behind a stranger's transaction, or stand on a host with a wrong clock: one scheduler leads
at a time, with time-outs short enough to wait for."""

from __future__ import annotations

import time

from dueline.schemas.ledger import Barrier
from tests.fault.cluster import REFUSED, Cluster
from tests.fault.process import Process
from tests.fault.raw import stolen

JOB = "plain"
QUICK: dict[str, dict[str, object]] = {
    "patient": {"transaction_timeout_s": 3.0, "doubt_bound_s": 1.0},
    "impatient": {"max_poll_interval_s": 3.0},
    "behind": {},
}
BEHIND_MS = -20_000
"""Less than --max-clock-skew, so that it fires."""


def alone(shared: Cluster, name: str) -> Process:
    """This scheduler leads, and it is the only one."""
    for process in shared.processes.values():
        if process.name in QUICK and process.name != name:
            shared.kill(process)
    started(shared, name)
    shared.until_led_by(shared.processes[name])
    return shared.processes[name]


def started(shared: Cluster, name: str) -> Process:
    """It runs, leading or not."""
    if "w1" not in shared.processes:
        shared.publish(JOB, {"every": "1s"})
        shared.worker("w1")
    if name not in shared.processes or not shared.processes[name].runs:
        environ = {"FAULT_WALL_MS": str(BEHIND_MS)} if name == "behind" else {}
        shared.scheduler(name, quick=QUICK[name], **environ)
    return shared.processes[name]


def test_t15_a_leader_that_outlives_its_transaction_takes_over_anew(shared: Cluster) -> None:
    """Given a leader whose Python stands still inside a transaction until the broker has ended that, while its membership goes
    on, when it commits, then it is refused, checks its assignment, initialises anew and leads on; no due time is doubled."""
    leader = alone(shared, "patient")
    leader.arm("leader.before-commit=block")
    shared.until_said(leader, "failpoint leader.before-commit: block")
    shared.read(shared.rig.namespace.runs)  # returns when nothing is open any more: the broker has aborted it
    at, terms = leader.log_size(), len(shared.barriers())
    leader.arm("")
    shared.until_said(leader, "timed out on the broker", since=at)
    shared.until("another term", lambda: len(shared.barriers()) > terms)
    shared.until_goes_on(JOB)
    assert shared.leader() is leader
    shared.judged(JOB)


def test_t7_t27_a_leader_whose_python_is_stuck_is_replaced_though_its_client_lives(shared: Cluster) -> None:
    """Given a leader whose Python stands still while the client's thread goes on with heartbeats, then `max.poll.interval`
    ends its leadership and a standby leads; and when it goes on, still believing to lead, its write is refused."""
    old = alone(shared, "impatient")
    standby = started(shared, "patient")
    shared.until_said(standby, f"{shared.rig.namespace.scheduler_group} generation")
    shared.until_goes_on(JOB, 2)
    old = shared.leader()
    assert old.name == "impatient", "the leader keeps its partition when a standby joins"
    old.arm("leader.before-offsets=block")
    shared.until_said(old, "failpoint leader.before-offsets: block")
    shared.until_led_by(standby)
    shared.until_goes_on(JOB)
    at = old.log_size()
    old.arm("")
    shared.until_said(old, *REFUSED, since=at)
    shared.until_said(old, "holding 0 of the topic's partitions", since=at)
    shared.until_goes_on(JOB)
    shared.judged(JOB)


def test_t13_a_take_over_waits_for_a_strangers_transaction_on_the_ledger(shared: Cluster) -> None:
    """Given a stranger's open transaction on the ledger and a standby that has folded all before it, when the leader dies,
    then the standby's barrier stands behind the stranger's record, and it does not lead before it has read it; once the
    stranger is gone it leads, and nothing is lost or doubled."""
    runs = shared.rig.namespace.runs
    first = alone(shared, "patient")
    standby = started(shared, "impatient")
    shared.until_said(standby, f"{shared.rig.namespace.scheduler_group} generation")
    shared.until_goes_on(JOB)
    assert shared.leader() is first, "the leader keeps its partition when a standby joins"
    with shared.foreign_transaction(runs, 0, timeout_ms=60_000) as stranger:
        shared.kill(first)
        shared.until("the standby's barrier is written", lambda: barrier_of(shared, standby))
        due_ms = shared.rig.cluster.admin().end_offset((runs, 0)), time.time() * 1000 + 1_500
        shared.until("a due time has passed", lambda: time.time() * 1000 > due_ms[1])
        assert "leading: term" not in standby.log()
        assert shared.rig.cluster.admin().end_offset((runs, 0)) == due_ms[0], "it wrote before it had read its barrier"
        stranger.abort_transaction(10)
    shared.until_led_by(standby)
    shared.until_goes_on(JOB)
    shared.judged(JOB)


def barrier_of(shared: Cluster, process: Process) -> bool:
    """Whether it has written a barrier, readable or not."""
    written = shared.uncommitted(shared.rig.namespace.runs)
    return any(isinstance(one, Barrier) and one.process.endswith(f":{process.pid}") for one in written)


def test_t29_a_leader_whose_host_clock_is_behind_runs_nothing_twice_or_early(shared: Cluster) -> None:
    """Given a new leader on a host whose wall clock is 20 s behind, then due times go on by the clock of `runs`: those that
    have a record get no second one, and nothing is early."""
    alone(shared, "patient")
    shared.until_goes_on(JOB)
    alone(shared, "behind")
    shared.until_goes_on(JOB)
    shared.judged(JOB)


def test_t24_another_deployment_that_uses_the_same_transactional_ids_is_told_loudly(shared: Cluster) -> None:
    """Given somebody outside of the namespace's group who initialises its transactional ids again and again, then the leader
    comes back each time, says as an error what is wrong and what to do, and no due time is lost or doubled."""
    leader = alone(shared, "patient")
    shared.until_goes_on(JOB)
    wanted = "another deployment uses the transactional ids"
    for _ in range(12):
        terms = len(shared.barriers())
        stolen(shared.servers, shared.rig.namespace.leader_ids)
        shared.until("another term", lambda terms=terms: len(shared.barriers()) > terms)  # type: ignore[misc]
        shared.until_goes_on(JOB, 1)
        if wanted in leader.log():
            break
    assert wanted in leader.log()
    assert "--namespace" in leader.log().partition(wanted)[2]
    shared.judged(JOB)

