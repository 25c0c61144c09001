"""What a kind of fault is to the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from proof.faults.child import Child
from proof.faults.world import Acts, World
from proof.history.acts import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One fault about to begin. `targets` are left alone by others until `acts` has ended; `acts` notes it as it happens."""

    targets: tuple[str, ...]
    acts: Acts


Begin = Callable[[World, Random], Attack | None]
"""Chooses targets and parameters; None when it can't be done now (nobody leads, all are taken)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`weight`: how often, beside the others. `nodes`: how many brokers it takes. `alone`: nothing else goes on meanwhile.
    `chosen`: only if asked for by name."""

    name: str
    weight: int
    begin: Begin
    nodes: int = 1
    alone: bool = False
    chosen: bool = False


def free_leader(world: World) -> Child | None:
    """The leader, unless there is none now, another fault is at it, or it is one of those that a fault added: they share their
    links, and go with their fault."""
    leader = world.leader()
    return leader if leader in world.crew.schedulers and leader.name not in world.held else None


def free_standby(world: World, chance: Random) -> Child | None:
    """A scheduler that runs and does not lead."""
    leader = world.leader()
    return _one(world, chance, [child for child in world.crew.schedulers if child is not leader])


def free_worker(world: World, chance: Random) -> Child | None:
    """A worker that runs."""
    return _one(world, chance, world.crew.workers)


def free_child(world: World, chance: Random) -> Child | None:
    """A scheduler or worker that runs, the leader as often as all workers."""
    leader = free_leader(world)
    if leader is not None and chance.random() < 0.4:
        return leader
    return _one(world, chance, [*world.crew.schedulers, *world.crew.workers])


def _one(world: World, chance: Random, children: list[Child]) -> Child | None:
    found = [child for child in children if child.runs and not child.stopped and child.name not in world.held]
    return chance.choice(found) if found else None


def free_node(world: World, chance: Random) -> int | None:
    """A broker that runs; none while another one is down, since two of three are needed."""
    if world.brokers.down or any(name.startswith("b") for name in world.held):
        return None
    return chance.choice(sorted(world.brokers.nodes))


def beyond(world: World, role: Role) -> float:
    """Seconds after which a process that is silent is given up."""
    return world.plan.session_s if role is Role.SCHEDULER else world.plan.worker_timeout_s
