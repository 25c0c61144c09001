"""Faults of the network between a process and brokers: cut, loss in both directions or one, delay."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from proof.faults.kinds.kind import Attack, Begin, Kind, beyond, free_child
from proof.faults.links import Weather
from proof.faults.world import Acts, World

SHORTER: Final = (0.2, 0.8)
LONGER: Final = (1.4, 2.6)
"""Times what gives a silent process up."""
DELAY_S: Final = (0.03, 0.3)
JITTER_S: Final = 0.15
DELAYED_S: Final = (2.0, 5.0)
AFTER_S: Final = 0.8
"""Left alone afterwards."""


def cut(_: Random) -> Weather:
    """Connections are reset, new ones refused."""
    return Weather(cut=True)


def loss(_: Random) -> Weather:
    """Nothing arrives, in neither direction, and no connection breaks."""
    return Weather(swallow_up=True, swallow_down=True)


def loss_up(_: Random) -> Weather:
    """Requests vanish."""
    return Weather(swallow_up=True)


def loss_down(_: Random) -> Weather:
    """Requests arrive, answers vanish: what was asked for is done, and nobody learns of it."""
    return Weather(swallow_down=True)


def delay(chance: Random) -> Weather:
    """Everything arrives, later."""
    return Weather(delay_s=chance.uniform(*DELAY_S), jitter_s=JITTER_S)


def _attack(kind: str, make: Callable[[Random], Weather], *, slow: bool = False) -> Begin:
    def begin(world: World, chance: Random) -> Attack | None:
        child = free_child(world, chance)
        if child is None:
            return None
        nodes = sorted(world.brokers.nodes)
        if len(nodes) > 1 and chance.random() < 0.6:
            nodes = [chance.choice(nodes)]
        times = chance.choice((SHORTER, LONGER))
        seconds = chance.uniform(*DELAYED_S) if slow else beyond(world, child.role) * chance.uniform(*times)
        weather = make(chance)
        target = f"{child.name}>{','.join(f'b{node}' for node in nodes)}"

        def acts() -> Acts:
            for node in nodes:
                world.links.set(child.name, node, weather)
            fault = world.notes.fault(kind, target, detail=f"{seconds:.1f} s")
            yield from world.hold(seconds)
            for node in nodes:
                world.links.set(child.name, node, Weather())
            fault.end()
            yield from world.hold(AFTER_S)

        return Attack(targets=(child.name,), acts=acts())

    return begin


KINDS: Final = (
    Kind(name="link-cut", weight=5, begin=_attack("link-cut", cut)),
    Kind(name="link-loss", weight=4, begin=_attack("link-loss", loss)),
    Kind(name="link-loss-up", weight=4, begin=_attack("link-loss-up", loss_up)),
    Kind(name="link-loss-down", weight=5, begin=_attack("link-loss-down", loss_down)),
    Kind(name="link-delay", weight=3, begin=_attack("link-delay", delay, slow=True)),
)
