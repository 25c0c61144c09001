"""Whatever happens, each due time is decided exactly once, and the ledger alone tells the leader's state."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dueline.schemas.run import Run, RunState, Summary
from tests.property.plan_histories import History, Player, histories, replayed, stuck
from tests.unit.core.checker import faults
from tests.unit.core.world import World, every, job, snapshot

QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # a history costs too much to be made short; the example is printed
SLOW = settings(max_examples=60, deadline=None, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(histories())
def test_each_due_time_is_decided_exactly_once_and_replay_equals_state(history: History) -> None:
    """Given a random history of users, workers, clock and torn transactions; then no due time is lost, doubled or early."""
    world = Player(history).play()
    assert faults(world.versions, world.runs, world.now) == []
    assert replayed(world, history.seed)
    assert stuck(world) == []


@SLOW
@given(histories(16), st.integers(60, 4_000))
def test_slices_decide_what_one_round_decides(history: History, away_s: int) -> None:
    """Given some history, then nobody leads for a while; then many small transactions decide what a single one decides."""
    world = Player(history).play()
    ledgers = []
    for max_records in (1, 3, 100_000):
        fork = world.fork(max_records=max_records)
        fork.rounds(world.now + away_s * 1_000)
        assert faults(fork.versions, fork.runs, fork.now) == []
        ledgers.append(decided(fork))
    assert ledgers[0] == ledgers[1] == ledgers[2]


@SLOW
@given(histories(20))
def test_planning_changes_nothing_and_depends_on_nothing_else(history: History) -> None:
    """Given any state and inputs, then two plans are equal, and the state is as before."""
    world = Player(history).play()
    world.publish(job("a", schedule=every("20s")))
    before = snapshot(world.state)
    first = world.plan(world.now + 90_000)
    assert snapshot(world.state) == before
    assert world.plan() == first


def decided(world: World) -> dict[str, tuple[object, ...]]:
    """Each due time's last word, without what depends on how the work was cut: who was offered what, and when."""
    last: dict[str, tuple[object, ...]] = {}
    for record in world.runs:
        if isinstance(record, Summary):
            last[record.key] = (record.version, record.reason, record.first_ms, record.last_ms, record.count)
        elif isinstance(record, Run) and record.due_ms <= world.now:
            admitted = record.state in (RunState.DISPATCHED, RunState.RUNNING) or record.reason in ("no-worker", "catch-up-rate")
            end = "" if admitted else f"{record.state} {record.reason}"
            last[record.key] = (record.job.version, record.trigger, record.previous_due_ms, end)
    return last
