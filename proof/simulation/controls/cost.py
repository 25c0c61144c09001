"""What a world cost beyond its promise: figures in which a rule shows that guards a cost, and no promise."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor

from dueline.schemas.run import RunState
from dueline.schemas.work import EventKind
from proof.checker.reading import Log, read
from proof.simulation.runner import HASH_SEED, taken_out
from proof.simulation.setup import Setup
from proof.simulation.world import World


def costs(setup: Setup, rule: str) -> Mapping[str, int]:
    """Of one world, in a child process. `unanswered`: offers that no worker claimed or declined. `initialised`: how often a
    scheduler took the leader's ids. Raises ValueError when the promise was broken as well."""
    os.environ["PYTHONHASHSEED"] = HASH_SEED  # of the child, as in `runner`
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_costs, setup, rule).result()


def _costs(setup: Setup, rule: str) -> dict[str, int]:
    world = World(setup, sabotage=taken_out(rule))
    judgement = world.run()
    if not judgement.holds:
        raise ValueError(f"it is no cost, the promise is broken: {judgement.lines(3)}")
    taken = world.cluster.transactions.entries
    return {
        "unanswered": _unanswered(read(judgement.history)),
        "initialised": sum(taken[name].epoch + 1 for name in world.namespace.leader_ids),
    }


def _unanswered(log: Log) -> int:
    answers = (EventKind.CLAIMED, EventKind.DECLINED)
    count = 0
    for key, chain in log.runs.items():
        for attempt in {placed.record.attempt for placed in chain if placed.record.state == RunState.DISPATCHED}:
            events = log.finishes.get((key, attempt), ())
            count += not any(placed.record.kind in answers for placed in events)
    return count
