"""Workers that are stopped and killed inside their transactions. One scheduler leads throughout; two workers are there at the
beginning of each test."""

from __future__ import annotations

import signal
import time

import pytest

from dueline.schemas.ledger import Fence
from dueline.schemas.run import RunState
from dueline.schemas.work import EventKind, Outcome
from tests.fault.cluster import Cluster
from tests.fault.judge import repeated
from tests.fault.process import Process

MANY, BARE = "many", "bare"
STEPS = 40
FENCE_S = 2.0
"""More than a fence takes once it is intended (60 ms; 0.6 s when a transaction was open)."""


@pytest.fixture
def crew(shared: Cluster) -> tuple[Process, Process]:
    """Two workers, both with partitions, nothing armed."""
    if not shared.processes:
        shared.scheduler("s1")
        shared.define(MANY, "many", payload=STEPS)
        shared.define(BARE, "bare")
    shared.gate.unlink(missing_ok=True)
    for name in ("w1", "w2"):
        if name not in shared.processes or not shared.processes[name].runs:
            shared.worker(name)
        shared.processes[name].arm("")
    shared.until("two workers with partitions", lambda: len(owners(shared)) == 2)
    return shared.processes["w1"], shared.processes["w2"]


def owners(shared: Cluster) -> set[str]:
    """Workers whose last heartbeat, of their present life, names partitions."""
    last = {beat.worker: beat for beat in shared.heartbeats() if time.time() * 1000 - beat.worker_ms < 1500}
    return {name for name, beat in last.items() if beat.partitions and beat.state == "running"}


def holder(shared: Cluster, run: str) -> tuple[Process, Process]:
    """(the worker that has begun the run, the other one)."""
    pid = shared.until_effects(run, 1).pid
    pair = [shared.processes["w1"], shared.processes["w2"]]
    first = next(process for process in pair if process.pid == pid)
    return first, next(process for process in pair if process is not first)


@pytest.mark.parametrize(("point", "doubled"), [("worker.before-commit", 1), ("worker.after-commit", 0)])
def test_t17_t18_a_worker_frozen_in_a_step_is_fenced_and_wakes_up_to_nothing(
    shared: Cluster, crew: tuple[Process, Process], point: str, doubled: int
) -> None:
    """Given a worker stopped in the middle of a run beyond --worker-timeout, when another one goes on with the run and the
    first is woken, then what it goes on with is refused, it comes back as a new incarnation, and only the step that was in
    flight was done twice, with the same key (T18); no id was ever initialised twice by a worker (T17a)."""
    for process in crew:
        process.arm(f"{point}=stop@10")
    run = shared.trigger(MANY)
    frozen, other = holder(shared, run)
    shared.until_stopped(frozen, point)
    other.arm("")
    shared.until_state(run, RunState.SUCCEEDED)
    at = frozen.log_size()
    frozen.signal(signal.SIGCONT)
    shared.until_said(frozen, "is open", since=at)
    assert "is over" in frozen.log(at), "it has learnt that its incarnation was fenced"
    shared.judged()
    last = shared.run(run)
    assert last is not None
    # One loss, but for a worker that a busy machine kept from its heartbeats.
    assert doubled <= len(repeated(shared.effects_of(run))) < last.losses + doubled
    assert len({effect.key for effect in shared.effects_of(run)}) == STEPS
    ids = [tuple(beat.transactional_ids) for beat in shared.heartbeats() if beat.worker == frozen.name]
    assert len({name for group in ids for name in group}) == 3 * len(set(ids))


def test_t16_t17_a_worker_frozen_in_a_claim_is_refused_and_its_offers_go_elsewhere(
    shared: Cluster, crew: tuple[Process, Process]
) -> None:
    """Given a worker stopped inside a claim beyond its session and --worker-timeout, so that its partitions and its offers
    went to another, when it is woken, then its claim is refused; no claim of it is granted, each run is done once."""
    for process in crew:
        process.arm("claim.before-commit=stop")
    runs = [shared.trigger(MANY)]
    shared.until("one of them stops", lambda: any(process.stopped for process in crew))
    frozen = next(process for process in crew if process.stopped)
    other = next(process for process in crew if process is not frozen)
    other.arm("")
    if other.stopped:  # the offer was made again, to it
        other.signal(signal.SIGCONT)
    runs += [shared.trigger(MANY) for _ in range(3)]
    for run in runs:
        shared.until_state(run, RunState.SUCCEEDED)
    at = frozen.log_size()
    frozen.signal(signal.SIGCONT)
    shared.until_said(frozen, "is open", since=at)
    shared.judged()
    for run in runs:
        assert {effect.pid for effect in shared.effects_of(run)} == {other.pid}
        assert len(shared.effects_of(run)) == STEPS
    claims = [event for event in shared.attempts() if event.kind == EventKind.CLAIMED and event.run in runs]
    assert {event.worker for event in claims} == {other.name}


def test_t17c_a_run_that_ended_just_before_the_fence_is_not_run_again(
    shared: Cluster, crew: tuple[Process, Process]
) -> None:
    """Given a `finished` that the leader can't read yet, because a stranger's transaction stands before it, when its worker
    dies and is fenced, then the leader reads the worker's partition out first, and does not run the run again."""
    run = shared.trigger(BARE)
    worker, _ = holder(shared, run)
    attempts, home = shared.rig.namespace.attempts, shared.home(worker.name)
    incarnation = shared.until_state(run, RunState.RUNNING).incarnation
    with shared.foreign_transaction(attempts, home, timeout_ms=60_000) as stranger:
        shared.may_end(worker)
        worker.arm("worker.after-commit=kill")  # its end is the only thing it commits
        shared.gate.touch()
        assert worker.wait_ended() == -signal.SIGKILL
        shared.until("the fence is intended", lambda: fences(shared, incarnation) == ["intent"])
        fenced_s = time.monotonic() + FENCE_S
        shared.until("the incarnation is fenced", lambda: time.monotonic() > fenced_s)
        before = shared.run(run)
        assert before is not None
        assert (before.state, before.attempt) == (RunState.RUNNING, 1), "decided before its worker's events were read out"
        stranger.abort_transaction(10)
    last = shared.until_state(run, RunState.SUCCEEDED)
    assert (last.attempt, last.outcome) == (1, Outcome.SUCCESS)
    shared.until("the fence is done", lambda: fences(shared, incarnation) == ["intent", "done"])
    shared.judged()
    assert len(shared.effects_of(run)) == 1


def fences(shared: Cluster, incarnation: str) -> list[str]:
    """Phases of an incarnation's fence."""
    return [one.phase for one in shared.ledger.records if isinstance(one, Fence) and one.incarnation == incarnation]


def test_t13_a_workers_events_are_late_by_a_strangers_time_out_at_most(
    shared: Cluster, crew: tuple[Process, Process]
) -> None:
    """Given a stranger's transaction that is left open on both workers' partitions of `attempts`, then a run's events are
    read once the broker has ended it (its time-out and the sweep of 0.5 s), and the run ends well, done once."""
    attempts = shared.rig.namespace.attempts
    shared.gate.touch()
    timeout_ms = 4_000
    began_s = time.monotonic()
    homes = sorted({shared.home(process.name) for process in crew})
    with shared.foreign_transaction(attempts, homes[0], timeout_ms), shared.foreign_transaction(attempts, homes[-1], timeout_ms):
        run = shared.trigger(BARE)
        shared.until_state(run, RunState.SUCCEEDED)
        took_s = time.monotonic() - began_s
    assert took_s >= timeout_ms / 1000, "nothing was held back: the test proves nothing"
    assert took_s < timeout_ms / 1000 + 0.5 + 10.0
    shared.judged()
    assert len(shared.effects_of(run)) == 1


def test_t17d_a_claim_that_was_made_while_nobody_led_is_granted(shared: Cluster, crew: tuple[Process, Process]) -> None:
    """Given a leader killed just after it committed an offer, and a claim of it that nobody has read, when the next one leads,
    then it reads that claim and grants it: the attempt is not superseded by another."""
    shared.gate.touch()
    run, runs = "", (shared.rig.namespace.runs, 0)
    for number in range(8):  # the transaction that kills may be another one than the offer's
        leader = shared.leader()
        shared.may_end(leader)
        leader.arm("leader.after-commit=kill")
        run = shared.trigger(BARE)
        assert leader.wait_ended() == -signal.SIGKILL
        ends = {runs: shared.rig.cluster.admin().end_offset(runs)}
        shared.ledger.settle(ends)
        last = shared.run(run)
        offered = last is not None and last.state == RunState.DISPATCHED
        if offered:
            shared.until("the claim is committed", lambda run=run: claims_of(shared, run) == 1)  # type: ignore[misc]
        shared.scheduler(leader.name)
        ended = shared.until_state(run, RunState.SUCCEEDED)
        if offered:
            assert ended.attempt == 1
            break
        assert number < 7, "the leader was never killed right after an offer"
    shared.judged()
    assert len(shared.effects_of(run)) == 1


def claims_of(shared: Cluster, run: str) -> int:
    """How many claims of it are committed."""
    return sum(event.kind == EventKind.CLAIMED and event.run == run for event in shared.attempts())
