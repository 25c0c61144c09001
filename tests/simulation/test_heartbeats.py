"""Workers that send heartbeats are heard, whatever else stands in their topic."""

from __future__ import annotations

from dueline.schemas.codec import decode
from dueline.schemas.ledger import Fence
from proof.simulation.plan import FaultKind, Planned, Profile
from proof.simulation.setup import Setup
from proof.simulation.world import World


def test_a_strangers_open_transaction_in_workers_ends_no_incarnation() -> None:
    """Given a transaction that stands open before all heartbeats for longer than the worker time-out, then nobody is fenced."""
    stranger = Planned(kind=FaultKind.OPEN_TRANSACTION, at_s=75.0, for_s=25.0, word="workers")
    world = World(Setup(seed=20, hours=0.03, profile=Profile.QUIET, plan=(stranger,)))
    judgement = world.run()
    assert [one.kind for one in judgement.history.noted.faults if one.kind == stranger.kind.value] != []
    ledger = judgement.history.log[world.namespace.runs, 0]
    assert [record for one in ledger if one.value and isinstance(record := decode(one.value), Fence)] == []
    assert judgement.holds, judgement.lines()
