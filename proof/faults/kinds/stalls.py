"""Processes that stand still and go on: shorter and longer than what gives them up, and in the middle of a transaction."""

from __future__ import annotations

import signal
from collections.abc import Callable
from random import Random
from typing import Final

from proof.faults.child import Child
from proof.faults.clock import now_ms
from proof.faults.kinds.kills import DISARMED_S, LEADER_POINTS, REACH_S
from proof.faults.kinds.kind import Attack, Kind, beyond, free_leader, free_worker
from proof.faults.world import Acts, World

SHORTER: Final = (0.2, 0.8)
LONGER: Final = (1.4, 3.0)
"""Times what gives the process up."""
BEYOND_TRANSACTION_S: Final = (0.6, 2.0)
"""After the transaction time-out, which the broker looks at twice a second."""
AFTER_S: Final = 0.8
"""Left alone after it was woken."""


def stop_leader_shorter(world: World, chance: Random) -> Attack | None:
    """SIGSTOP for less than its session."""
    return _stop(world, chance, "stop-leader-shorter", free_leader(world), SHORTER)


def stop_leader_longer(world: World, chance: Random) -> Attack | None:
    """SIGSTOP for longer than its session: another one leads when it wakes."""
    return _stop(world, chance, "stop-leader-longer", free_leader(world), LONGER)


def stop_worker_shorter(world: World, chance: Random) -> Attack | None:
    """SIGSTOP for less than the worker time-out."""
    return _stop(world, chance, "stop-worker-shorter", free_worker(world, chance), SHORTER)


def stop_worker_longer(world: World, chance: Random) -> Attack | None:
    """SIGSTOP for longer than the worker time-out: it is fenced, its runs are given away, and it wakes."""
    return _stop(world, chance, "stop-worker-longer", free_worker(world, chance), LONGER)


def _stop(world: World, chance: Random, kind: str, child: Child | None, times: tuple[float, float]) -> Attack | None:
    if child is None:
        return None
    seconds = beyond(world, child.role) * chance.uniform(*times)

    def acts() -> Acts:
        child.signal(signal.SIGSTOP)
        fault = world.notes.fault(kind, child.name, detail=f"{seconds:.1f} s")
        yield from world.hold(seconds)
        child.signal(signal.SIGCONT)
        fault.end()
        yield from world.hold(AFTER_S)

    return Attack(targets=(child.name,), acts=acts())


def stop_leader_inside(world: World, chance: Random) -> Attack | None:
    """SIGSTOP inside a transaction, for longer than the session."""
    seconds = world.plan.session_s * chance.uniform(*LONGER)
    return _stop_inside(world, "stop-leader-in-transaction", chance.choice(LEADER_POINTS), seconds)


def stop_leader_transaction(world: World, chance: Random) -> Attack | None:
    """SIGSTOP inside a transaction, for longer than the broker keeps it open."""
    seconds = float(str(world.plan.scheduler_fields["transaction_timeout_s"])) + chance.uniform(*BEYOND_TRANSACTION_S)
    return _stop_inside(world, "stop-leader-beyond-transaction", chance.choice(("after-offsets", "before-commit")), seconds)


def _stop_inside(world: World, kind: str, point: str, seconds: float) -> Attack | None:
    leader = free_leader(world)
    if leader is None:
        return None
    wake = lambda: leader.signal(signal.SIGCONT)  # noqa: E731 - given to `_held_inside`, as its counterpart below is
    return _held_inside(world, kind, (leader, f"leader.{point}=stop"), seconds, lambda: leader.stopped, wake)


def block_leader(world: World, chance: Random) -> Attack | None:
    """Its Python hangs inside a transaction while its client beats on, until the poll interval ends it (T27)."""
    leader = free_leader(world)
    if leader is None:
        return None
    seconds = float(str(world.plan.scheduler_fields["max_poll_interval_s"])) + chance.uniform(0.5, 2.0)
    said = f"failpoint leader.{chance.choice(('before-offsets', 'before-commit'))}"
    began = leader.log_file.stat().st_size

    def blocked() -> bool:
        with open(leader.log_file, "rb") as log:
            log.seek(began)
            return f"{said}: block".encode() in log.read()

    arm = f"{said.removeprefix('failpoint ')}=block"
    return _held_inside(world, "block-leader", (leader, arm), seconds, blocked, lambda: leader.arm(""))


def _held_inside(
    world: World, kind: str, armed: tuple[Child, str], seconds: float, reached: Callable[[], bool], release: Callable[[], None]
) -> Attack:
    child, arm = armed

    def acts() -> Acts:
        began_ms = now_ms()
        child.arm(arm)
        yield from world.until(lambda: reached() or not child.runs, REACH_S)
        if not reached():
            child.arm("")
            yield from world.until(reached, DISARMED_S)  # it may be there this very moment
        if child.runs and reached():
            fault = world.notes.fault(kind, child.name, detail=f"{arm}, {seconds:.1f} s")
            yield from world.hold(seconds)
            child.arm("")
            release()
            fault.end()
        else:
            world.notes.missed(kind, child.name, began_ms, f"{arm} was not reached within {REACH_S:g} s")
            child.signal(signal.SIGCONT)  # it may have got there after all
        yield from world.hold(AFTER_S)

    return Attack(targets=(child.name,), acts=acts())


KINDS: Final = (
    Kind(name="stop-leader-shorter", weight=4, begin=stop_leader_shorter),
    Kind(name="stop-leader-longer", weight=6, begin=stop_leader_longer),
    Kind(name="stop-worker-shorter", weight=3, begin=stop_worker_shorter),
    Kind(name="stop-worker-longer", weight=6, begin=stop_worker_longer),
    Kind(name="stop-leader-in-transaction", weight=6, begin=stop_leader_inside),
    Kind(name="stop-leader-beyond-transaction", weight=2, begin=stop_leader_transaction),
    Kind(name="block-leader", weight=1, begin=block_leader),
)
