"""Wrong wall clocks: steps and drift, on a scheduler's host and on a broker.

A scheduler reads its wall clock through the port that `entry` replaces. A broker's clock is moved by libfaketime, if there is
one: it never is part of an installation, see `faketime`. Monotonic clocks stay right, as they do when a host's wall clock is set.
Only brokers' clocks stamp what the checker reads; it widens its bounds around such a fault, by the fault's own shift.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Final

from proof.faults import faketime
from proof.faults.kinds.kind import Attack, Kind, free_leader, free_node, free_standby
from proof.faults.world import Acts, World

HOUR_MS: Final = 3_600_000
STEP_S: Final = (2.0, 6.0)
"""How long a stepped clock stays wrong: shorter than the leader's patience, and longer."""
DRIFT_S: Final = 12.0
RATES: Final = (-0.5, -0.1, 0.1, 0.5, 3.0)
"""Seconds a second; the last goes beyond the skew that a leader accepts."""
BROKER_RATES: Final = (-0.2, 0.2, 0.5)
BROKER_STEPS_MS: Final = (2_000, 20_000)
EVERY_S: Final = 0.25
Shift = Callable[[float], int]
"""Milliseconds by which the clock is wrong so many seconds after the beginning."""


def step_scheduler(world: World, chance: Random) -> Attack | None:
    """An hour forward or back, all at once."""
    child = free_leader(world) if chance.random() < 0.7 else free_standby(world, chance)
    if child is None:
        return None
    shift, seconds = chance.choice((-HOUR_MS, HOUR_MS)), chance.uniform(*STEP_S) * chance.choice((1, 2))

    def acts() -> Acts:
        world.crew.clock_file(child.name).write_text(str(shift))
        fault = world.notes.fault("clock-step-scheduler", child.name, shift_ms=abs(shift), detail=f"{shift} ms, {seconds:.1f} s")
        yield from world.hold(seconds)
        world.crew.clock_file(child.name).unlink(missing_ok=True)
        fault.end()

    return Attack(targets=(child.name,), acts=acts())


def drift_scheduler(world: World, chance: Random) -> Attack | None:
    """It runs too fast or too slowly."""
    child = free_leader(world)
    if child is None:
        return None
    rate = chance.choice(RATES)
    most = round(abs(rate) * DRIFT_S * 1000)

    def acts() -> Acts:
        fault = world.notes.fault("clock-drift-scheduler", child.name, shift_ms=most, detail=f"{rate:+} s/s")
        began_s = time.monotonic()
        file = world.crew.clock_file(child.name)
        while time.monotonic() < began_s + DRIFT_S and not world.healing:
            file.write_text(str(round((time.monotonic() - began_s) * rate * 1000)))
            yield EVERY_S
        file.unlink(missing_ok=True)
        fault.end()

    return Attack(targets=(child.name,), acts=acts())


def step_broker(world: World, chance: Random) -> Attack | None:
    """Some seconds forward or back on a broker, which stamps what it appends."""
    shift, seconds = chance.choice((-1, 1)) * chance.randint(*BROKER_STEPS_MS), chance.uniform(*STEP_S)
    return _broker(world, chance, "clock-step-broker", lambda _: shift, (abs(shift), seconds, f"{shift} ms"))


def hour_broker(world: World, chance: Random) -> Attack | None:
    """An hour forward or back on a broker."""
    shift, seconds = chance.choice((-HOUR_MS, HOUR_MS)), chance.uniform(*STEP_S)
    return _broker(world, chance, "clock-hour-broker", lambda _: shift, (abs(shift), seconds, f"{shift} ms"))


def drift_broker(world: World, chance: Random) -> Attack | None:
    """A broker's clock runs too fast or too slowly."""
    rate = chance.choice(BROKER_RATES)
    most = round(abs(rate) * DRIFT_S * 1000)
    return _broker(world, chance, "clock-drift-broker", lambda s: round(s * rate * 1000), (most, DRIFT_S, f"{rate:+} s/s"))


def _broker(world: World, chance: Random, kind: str, shift_at: Shift, what: tuple[int, float, str]) -> Attack | None:
    node = free_node(world, chance)
    if node is None or node not in world.brokers.clock_files:
        return None
    most, seconds, detail = what
    name, file = world.brokers.name(node), world.brokers.clock_files[node]

    def acts() -> Acts:
        world.user_waits = True
        fault = world.notes.fault(kind, name, shift_ms=most, detail=detail)
        began_s = time.monotonic()
        while time.monotonic() < began_s + seconds and not world.healing:
            faketime.write(file, shift_at(time.monotonic() - began_s))
            yield EVERY_S
        faketime.write(file, 0)
        yield from world.hold(1.5)  # the library looks into the file once a second
        world.user_waits = False
        fault.end()

    return Attack(targets=(name,), acts=acts())


KINDS: Final = (
    Kind(name="clock-step-scheduler", weight=3, begin=step_scheduler),
    Kind(name="clock-drift-scheduler", weight=2, begin=drift_scheduler),
    Kind(name="clock-step-broker", weight=2, begin=step_broker, chosen=True),
    Kind(name="clock-drift-broker", weight=2, begin=drift_broker, chosen=True),
    Kind(name="clock-hour-broker", weight=2, begin=hour_broker, alone=True, chosen=True),
)
