"""The fold: terms, idempotence, any order between the two topics; and the tables and indexes it is made of."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dueline.scheduler.core.state import State
from dueline.scheduler.core.tables import Entry, Index, Table
from dueline.schemas.base import NONE
from dueline.schemas.ledger import Position, Positions
from dueline.schemas.run import Run
from tests.unit.core.world import World, at, busy, fold, job, snapshot


def test_l4_a_term_is_the_barrier_s_offset_and_grows_with_every_take_over() -> None:
    """L4: given no term, then it is -1; a barrier's offset opens one; a smaller offset opens the next after the highest seen."""
    state = State()
    assert state.term == NONE == -1
    assert state.apply_barrier(0) == 0
    assert state.apply_barrier(40) == 40
    assert state.apply(Positions(term=90, leader_ms=5))
    assert state.apply_barrier(7) == 91
    assert state.apply_barrier(7) == 92


def test_l4_both_numbers_stand_in_every_record() -> None:
    """L4: then every record of a decision carries the term and the generation."""
    world = busy()
    world.take_over()
    world.settings = world.settings.__class__(generation=12)
    decision = world.plan()
    assert len({type(record) for record in (*decision.versions, *decision.ledger)}) == 4
    stamps = {(record.term, record.generation) for record in decision.versions}
    stamps |= {(record.term, record.generation) for record in decision.ledger}
    assert stamps == {(world.state.term, 12)}
    assert {each.term for each in decision.dispatches} == {each.term for each in decision.rejected} == {world.state.term}


def test_records_of_a_term_that_has_ended_change_nothing() -> None:
    """Given a barrier, then a record of the term before is refused by the fold, in `runs` and in `job-versions` alike."""
    world = World()
    world.publish(job())
    decision = world.plan()
    world.take_over()
    world.round()
    assert world.state.apply(world.versions[-1])
    before = snapshot(world.state)
    assert not world.state.apply(decision.versions[0])
    assert not world.state.apply(decision.ledger[-1])
    assert snapshot(world.state) == before


def test_leader_time_is_the_latest_in_the_ledger() -> None:
    """Then what a new leader starts at is the latest leader time of any record."""
    world = World()
    world.publish(job())
    world.round(at(70))
    world.now = at(10)
    world.take_over()
    assert world.state.leader_ms == at(70)


def test_every_order_between_the_topics_gives_the_same_state() -> None:
    """Given a busy ledger, then twenty different interleavings fold to the leader's own state, and a copy equals it."""
    world = busy()
    world.rounds()
    for seed in range(20):
        assert snapshot(fold(world.versions, world.runs, Random(seed))) == snapshot(world.state)
    twin = world.state.copy()
    assert snapshot(twin) == snapshot(world.state)
    twin.apply_barrier(10_000)
    assert twin.term != world.state.term


def test_applying_a_record_twice_changes_nothing() -> None:
    """Given each record applied twice in a row, then the state is the same."""
    world = busy()
    world.rounds()
    twice = State()
    twice.apply_barrier(0)
    for record in (*world.versions, *(record for record in world.runs[1:])):
        assert twice.apply(record)  # type: ignore[arg-type]
        assert twice.apply(record)  # type: ignore[arg-type]
    assert snapshot(twice) == snapshot(world.state)


def test_compaction_changes_nothing_that_is_decided_on() -> None:
    """Given only the last record of every key, then the fold gives the same state."""
    world = busy()
    world.rounds()
    for name in ("a", "b"):
        for _, _, key in list(world.state.live.prefixed(name)):
            if world.state.runs[key].state == "dispatched":
                world.finish(world.started(key))
        world.rounds()
    world.rounds(at(400))
    last = {getattr(record, "key", ""): place for place, record in enumerate(world.runs)}
    compacted = State()
    for version in world.versions:
        compacted.apply(version)
    for place, record in enumerate(world.runs):
        if last[record.key] == place:
            if record.key == "!barrier":
                compacted.apply_barrier(place)
            else:
                assert compacted.apply(record)  # type: ignore[arg-type]
    assert snapshot(compacted) == snapshot(world.state)
    assert any(isinstance(record, Run) and record.state == "succeeded" for record in world.runs)


def test_l6_positions_are_ledger_state_and_keep_what_is_not_read_now() -> None:
    """L6: given a position of a topic that this round does not read, then the next vector still has it."""
    world = World()
    world.round(positions=[Position(topic="attempts", topic_id="x", partition=7, offset=5)])
    decision = world.round(positions=[Position(topic="jobs", topic_id="y", partition=0, offset=9)], anchor=True)
    record = decision.ledger[-1]
    assert isinstance(record, Positions)
    assert [(p.topic, p.partition, p.offset) for p in record.positions] == [("attempts", 7, 5), ("jobs", 0, 9)]


def test_a_table_s_draft_keeps_its_changes_to_itself() -> None:
    """Given a draft that puts and drops, then its base is as before and the draft reads as changed."""
    base: Table[str, int] = Table()
    base.put("a", 1)
    base.put("b", 2)
    draft = Table(base)
    draft.drop("a")
    draft.put("c", 3)
    assert (dict(base.items()), dict(draft.items()), dict(draft.copy().items())) == (
        {"a": 1, "b": 2},
        {"b": 2, "c": 3},
        {"b": 2, "c": 3},
    )


OPERATIONS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), max_size=30)


@given(OPERATIONS, OPERATIONS, st.integers(0, 5))
def test_an_index_and_its_draft_are_sorted_sets(first: list[Entry], second: list[Entry], probe: int) -> None:
    """Given any additions and removals, then index and draft read as a plain sorted set does, and the base does not change."""
    base, plain = Index(), set[Entry]()
    _work(base, plain, first)
    draft, drafted = Index(base), set(plain)
    _work(draft, drafted, second)
    assert list(base.between()) == sorted(plain)
    assert list(draft.between()) == list(draft.copy().between()) == sorted(drafted)
    assert draft.first() == min(drafted, default=None)
    assert list(draft.prefixed(probe)) == sorted(entry for entry in drafted if entry[0] == probe)
    assert list(draft.between((probe,), (probe + 2,))) == sorted(e for e in drafted if probe <= e[0] < probe + 2)
    assert all((entry in draft) == (entry in drafted) for entry in plain | drafted)


def _work(index: Index, plain: set[Entry], operations: list[Entry]) -> None:
    for adds, left, right in operations:
        if adds:
            index.add((left, right))
            plain.add((left, right))
        else:
            index.discard((left, right))
            plain.discard((left, right))
