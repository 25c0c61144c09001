"""How many partitions a queue has: asked again when a worker owns one that was not there before."""

from __future__ import annotations

from dataclasses import replace

from dueline.scheduler.leader.queues import RETRY_S, Queues
from dueline.scheduler.leader.unusable import Unusable
from dueline.schemas.topics import Namespace
from tests.unit.core.world import World, job, worker
from tests.unit.leader.logs import ScriptedAdmin
from tests.unit.leader.manual import ManualClock

NAMESPACE = Namespace("t")


def test_a_queue_that_was_given_more_partitions_is_noticed() -> None:
    """Given a leader that knows two partitions, then four, and a worker that owns the last; then four are known, at once; and
    one that names what is not there has the broker asked now and then only."""
    clock, admin = ManualClock(), ScriptedAdmin(default=2)
    queues = Queues(admin, NAMESPACE, clock, Unusable(clock))
    world = World()
    world.publish(job())
    world.round()
    queues.begin(world.state)
    assert queues.known([], [worker(partitions=[0, 1])]) == {"default": 2}
    admin.default = 4
    assert queues.known([], [worker(partitions=[0])]) == {"default": 2}
    assert queues.known([], [worker(partitions=[3])]) == {"default": 4}
    admin.default = 8
    liar = worker(partitions=[99])
    clock.pass_s(RETRY_S)
    assert queues.known([], [liar, replace(liar, queue="nobody's")]) == {"default": 8}
    admin.default = 16
    assert queues.known([], [liar]) == {"default": 8}
