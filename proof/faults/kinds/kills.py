"""Ends of processes: kill -9 anywhere and inside a transaction, SIGTERM, rolling restarts, and too many starts at once."""

from __future__ import annotations

import signal
from random import Random
from typing import Final

from proof.faults.brokers import SPARE
from proof.faults.child import Child
from proof.faults.clock import now_ms
from proof.faults.kinds.kind import Attack, Kind, free_leader, free_standby, free_worker
from proof.faults.trouble import LATE, Ended
from proof.faults.world import Acts, World

UP_S: Final = 1.5
"""For a process to be up again, before another fault may hit it."""
REACH_S: Final = 4.0
"""For an armed failpoint to be reached."""
DISARMED_S: Final = 0.2
"""After it was disarmed, a process that had looked before may still reach it."""
END_S: Final = 25.0
STORM: Final = 8
STORM_S: Final = (3.0, 6.0)
LEADER_POINTS: Final = ("before-offsets", "after-offsets", "before-commit", "after-commit")
WORKER_POINTS: Final = (
    "claim.before-offsets", "claim.before-commit", "claim.after-commit", "worker.before-commit", "worker.after-commit",
)  # fmt: skip


def kill_leader(world: World, chance: Random) -> Attack | None:
    """SIGKILL, wherever it is."""
    return _kill(world, chance, "kill-leader", free_leader(world))


def kill_standby(world: World, chance: Random) -> Attack | None:
    """SIGKILL: a new generation for the leader."""
    return _kill(world, chance, "kill-standby", free_standby(world, chance))


def kill_worker(world: World, chance: Random) -> Attack | None:
    """SIGKILL."""
    return _kill(world, chance, "kill-worker", free_worker(world, chance))


def _kill(world: World, chance: Random, kind: str, child: Child | None) -> Attack | None:
    if child is None:
        return None

    def acts() -> Acts:
        world.notes.instant(kind, child.name, detail=f"pid {child.pid}")
        world.crew.kill(child)
        yield from revive(world, chance, child)

    return Attack(targets=(child.name,), acts=acts())


def kill_leader_inside(world: World, chance: Random) -> Attack | None:
    """SIGKILL at a named place of a transaction of the leader."""
    point = f"leader.{chance.choice(LEADER_POINTS)}"
    return _kill_inside(world, chance, "kill-leader-in-transaction", free_leader(world), point)


def kill_worker_inside(world: World, chance: Random) -> Attack | None:
    """SIGKILL at a named place of a transaction of a worker: a claim, or steps."""
    return _kill_inside(world, chance, "kill-worker-in-transaction", free_worker(world, chance), chance.choice(WORKER_POINTS))


def _kill_inside(world: World, chance: Random, kind: str, child: Child | None, point: str) -> Attack | None:
    if child is None:
        return None

    def acts() -> Acts:
        began_ms = now_ms()
        world.crew.expected_dead.add(child.name)
        child.arm(f"{point}=kill@{chance.randint(1, 3)}")
        yield from world.until(lambda: not child.runs, REACH_S)
        child.arm("")
        yield from world.until(lambda: not child.runs, DISARMED_S)  # it may be there this very moment
        if child.killed:
            world.notes.instant(kind, child.name, detail=f"pid {child.pid} at {point}")
        else:
            world.notes.missed(kind, child.name, began_ms, f"{point} was not reached within {REACH_S:g} s")
        yield from revive(world, chance, child)

    return Attack(targets=(child.name,), acts=acts())


def term_leader(world: World, chance: Random) -> Attack | None:
    """SIGTERM: it hands over."""
    return _term(world, chance, "term-leader", free_leader(world))


def term_worker(world: World, chance: Random) -> Attack | None:
    """SIGTERM: it drains."""
    return _term(world, chance, "term-worker", free_worker(world, chance))


def _term(world: World, chance: Random, kind: str, child: Child | None) -> Attack | None:
    if child is None:
        return None

    def acts() -> Acts:
        fault = world.notes.fault(kind, child.name, detail=f"pid {child.pid}")
        yield from terminate(world, child)
        fault.end()
        yield from revive(world, chance, child)

    return Attack(targets=(child.name,), acts=acts())


def roll_schedulers(world: World, _: Random) -> Attack | None:
    """One after the other is stopped in order and started again."""
    return _roll(world, "rolling-schedulers", world.crew.schedulers)


def roll_workers(world: World, _: Random) -> Attack | None:
    """The same with workers."""
    return _roll(world, "rolling-workers", world.crew.workers)


def _roll(world: World, kind: str, children: list[Child]) -> Attack | None:
    names = tuple(child.name for child in children)
    if world.held & set(names):
        return None

    def acts() -> Acts:
        fault = world.notes.fault(kind, ",".join(names))
        for child in children:
            yield from terminate(world, child)
            world.crew.back(child)
            yield from world.hold(UP_S)
        fault.end()

    return Attack(targets=names, acts=acts())


def start_storm(world: World, chance: Random) -> Attack | None:
    """Eight standbys start at once; then the leader is killed among them, and they go."""
    leader = free_leader(world)
    if leader is None:
        return None

    def acts() -> Acts:
        fault = world.notes.fault("start-storm", leader.name, detail=f"{STORM} standbys")
        crowd = [world.crew.new_scheduler(f"x{number}", SPARE) for number in range(1, STORM + 1)]
        world.crew.extras += crowd
        for child in crowd:
            child.start()
        yield from world.hold(chance.uniform(*STORM_S))
        if leader.runs:
            world.notes.instant("kill-leader", leader.name, detail=f"pid {leader.pid}, in a start storm")
            world.crew.kill(leader)
        yield from revive(world, chance, leader)
        fault.end()
        for child in crowd:
            if child in world.crew.extras:  # not yet removed by a healing
                world.crew.remove(child)
            yield 0.1

    return Attack(targets=(leader.name,), acts=acts())


# --- steps ------------------------------------------------------------------------------------------------------------


def terminate(world: World, child: Child) -> Acts:
    """SIGTERM, and wait for the end; SIGKILL if it does not come."""
    world.crew.expected_dead.add(child.name)
    child.signal(signal.SIGTERM)
    if not (yield from world.until(lambda: not child.runs, END_S)):
        world.crew.unexpected.append(Ended(process=child.name, at_ms=now_ms(), how=LATE, last_words=child.last_words()))
        child.kill()


def revive(world: World, chance: Random, child: Child) -> Acts:
    """Start it again after a moment, and leave it alone until it is up."""
    yield from world.hold(chance.uniform(0.1, 1.5))
    world.crew.back(child)
    yield from world.hold(UP_S)


KINDS: Final = (
    Kind(name="kill-leader", weight=10, begin=kill_leader),
    Kind(name="kill-standby", weight=3, begin=kill_standby),
    Kind(name="kill-worker", weight=10, begin=kill_worker),
    Kind(name="kill-leader-in-transaction", weight=8, begin=kill_leader_inside),
    Kind(name="kill-worker-in-transaction", weight=8, begin=kill_worker_inside),
    Kind(name="term-leader", weight=6, begin=term_leader),
    Kind(name="term-worker", weight=5, begin=term_worker),
    Kind(name="rolling-schedulers", weight=1, begin=roll_schedulers),
    Kind(name="rolling-workers", weight=1, begin=roll_workers),
    Kind(name="start-storm", weight=1, begin=start_storm),
)
