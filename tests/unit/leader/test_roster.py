"""Who is dead: silence in monotonic time since receipt, and only while it was heard (W7)."""

from __future__ import annotations

from dueline.scheduler.core.state import State
from dueline.scheduler.leader.roster import Roster
from dueline.schemas.ledger import Fence, FencePhase
from dueline.schemas.run import Run, RunJob, RunState
from dueline.schemas.topics import Namespace
from dueline.schemas.work import Heartbeat, WorkerState
from tests.unit.leader.manual import ManualClock, ManualContact


def heartbeat(incarnation: str = "w.1", state: str = WorkerState.RUNNING) -> Heartbeat:
    return Heartbeat(incarnation=incarnation, worker="w", queue="default", home=0, state=state, seq=1, slots=4, partitions=[0])


def roster(clock: ManualClock, contact: ManualContact | None = None, *, caught_up: bool = True) -> Roster:
    made = Roster(clock, contact or ManualContact(clock), Namespace("t"), timeout_s=10, fresh_s=3)
    if caught_up:
        made.catch_up()
    return made


def look_for(seconds: float, clock: ManualClock, workers: Roster, position: int = 0) -> None:
    """Time passes in a loop that goes round each second and has read to `position`, where `workers` ends unless told."""
    while seconds > 0:
        step = min(seconds, 1.0)
        clock.pass_s(step)
        workers.read_to(position)
        workers.dead(State())
        seconds -= step


def holding(incarnation: str) -> State:
    state = State()
    job = RunJob(id="j", version=1, queue="default", handler="h", payload="null")
    state.apply(
        Run(job=job, due_ms=1000, state=RunState.RUNNING, attempt=1, incarnation=incarnation, worker="w", home=3, term=0)
    )
    return state


def dead(found: list[Heartbeat]) -> list[str]:
    return [worker.incarnation for worker in found]


def test_a_worker_is_dead_after_the_timeout_without_a_heartbeat() -> None:
    clock = ManualClock()
    workers = roster(clock)
    workers.hear(heartbeat(), age_ms=0)
    look_for(9.9, clock, workers)
    assert workers.dead(State()) == []
    look_for(1.2, clock, workers)
    assert dead(workers.dead(State())) == ["w.1"]


def test_silence_does_not_count_while_the_broker_was_away() -> None:
    clock = ManualClock()
    contact = ManualContact(clock)
    workers = roster(clock, contact)
    workers.hear(heartbeat(), age_ms=0)
    for _ in range(60):
        contact.since_s = clock.monotonic_s() + 1  # the broker does not answer
        look_for(1, clock, workers)
    look_for(9.9, clock, workers)
    assert workers.dead(State()) == []
    look_for(1.2, clock, workers)
    assert dead(workers.dead(State())) == ["w.1"]


def test_after_a_take_over_everybody_has_the_whole_timeout_again() -> None:
    clock = ManualClock()
    workers = roster(clock)
    workers.hear(heartbeat(), age_ms=3_600_000)  # its last sign of life is an hour old
    look_for(9.9, clock, workers)
    assert workers.dead(State()) == []


def test_before_the_topic_was_read_to_its_end_nobody_is_silent() -> None:
    clock = ManualClock()
    workers = roster(clock, caught_up=False)
    workers.hear(heartbeat(), age_ms=3_600_000)
    look_for(60, clock, workers)
    assert workers.dead(holding("other.1")) == []
    workers.catch_up()
    look_for(9.9, clock, workers)
    assert workers.dead(State()) == []
    look_for(1.2, clock, workers)
    assert dead(workers.dead(State())) == ["w.1"]


def test_a_loop_that_was_held_up_takes_nobody_for_silent_before_it_has_read_on() -> None:
    clock = ManualClock()
    contact = ManualContact(clock)
    workers = roster(clock, contact)
    workers.hear(heartbeat(), age_ms=0)
    contact.end = 60
    clock.pass_s(60)  # nobody looked, so nothing was read either
    workers.read_to(0)
    assert workers.dead(State()) == []
    workers.hear(heartbeat(), age_ms=0)
    look_for(9.9, clock, workers, 60)
    assert workers.dead(State()) == []


def test_silence_counts_only_up_to_a_probe_whose_end_was_read() -> None:
    """Given fetches of `workers` that are lost while probes are answered, then nobody is silent, however long it lasts; what
    is read afterwards decides: one that is not among it is dead at once."""
    clock = ManualClock()
    contact = ManualContact(clock)
    workers = roster(clock, contact)
    for incarnation in ("alive.1", "dead.1"):
        workers.hear(heartbeat(incarnation), age_ms=0)
    for second in range(60):
        contact.end = second
        look_for(1, clock, workers, 2)
        assert workers.dead(State()) == []
    workers.hear(heartbeat("alive.1"), age_ms=0)
    look_for(1.1, clock, workers, 60)
    assert dead(workers.dead(State())) == ["dead.1"]


def test_a_reader_that_lags_behind_each_probe_still_finds_the_dead() -> None:
    clock = ManualClock()
    contact = ManualContact(clock)
    workers = roster(clock, contact)
    workers.hear(heartbeat(), age_ms=0)
    for second in range(13):
        contact.end = 10 * second
        look_for(1, clock, workers, 10 * second - 9)  # never as far as the last probe was told
    assert dead(workers.dead(State())) == ["w.1"]


def test_an_old_heartbeat_alone_makes_nobody_a_candidate_for_work() -> None:
    clock = ManualClock()
    workers = roster(clock, caught_up=False)
    workers.hear(heartbeat("old.1"), age_ms=60_000)
    workers.hear(heartbeat("old.1"), age_ms=59_000)
    workers.hear(heartbeat("new.1"), age_ms=100)
    assert set(workers.fleet({"default": 8}).workers) == {"new.1"}
    workers.catch_up()
    workers.hear(heartbeat("old.1"), age_ms=5_000)  # brokers' clocks differ; what comes now is a sign of life
    assert set(workers.fleet({"default": 8}).workers) == {"old.1", "new.1"}


def test_who_was_not_heard_of_lately_or_drains_is_offered_nothing() -> None:
    clock = ManualClock()
    workers = roster(clock)
    workers.hear(heartbeat("silent.1"), age_ms=0)
    clock.pass_s(3.1)
    workers.hear(heartbeat("draining.1", WorkerState.DRAINING), age_ms=0)
    assert workers.fleet({"default": 8}).workers == {}


def test_one_that_stopped_is_dead_at_once_only_if_the_ledger_still_has_runs_with_it() -> None:
    clock = ManualClock()
    workers = roster(clock)
    workers.hear(heartbeat(state=WorkerState.STOPPED), age_ms=0)
    assert workers.dead(State()) == []
    assert dead(workers.dead(holding("w.1"))) == ["w.1"]


def test_one_that_is_lost_is_dead_at_once_though_it_holds_nothing() -> None:
    """What it left open would hold up its home partition."""
    clock = ManualClock()
    workers = roster(clock)
    workers.hear(heartbeat(state=WorkerState.LOST), age_ms=0)
    assert dead(workers.dead(State())) == ["w.1"]


def test_a_holder_without_any_heartbeat_is_dead_after_the_timeout_with_its_ids() -> None:
    clock = ManualClock()
    workers = roster(clock)
    look_for(11.1, clock, workers)
    [found] = workers.dead(holding("gone.1"))
    assert found.home == 3
    assert found.transactional_ids == list(Namespace("t").worker_ids("gone.1"))


def test_one_that_is_being_fenced_is_not_found_again() -> None:
    clock = ManualClock()
    workers = roster(clock)
    workers.hear(heartbeat(), age_ms=0)
    look_for(9, clock, workers)
    clock.pass_s(2)
    state = State()
    state.apply(
        Fence(incarnation="w.1", worker="w", queue="default", home=0, phase=FencePhase.INTENT, reason="", term=0)
    )
    assert workers.dead(state) == []
