"""Whether a plan that somebody wrote can strike: in the world of its seed each target is there, and each number is one."""

from __future__ import annotations

import math
from typing import Final

from proof.simulation.plan import PLACES, Cast, FaultKind, Planned
from proof.simulation.process import Action
from proof.simulation.setup import Setup, Sizes
from proof.simulation.wires import LINKS, MEDDLING

K = FaultKind
ON_PROCESSES: Final = frozenset({
    K.KILL, K.TERM, K.FREEZE, K.STICK, K.HANG, K.FAILPOINT, K.CLOCK_STEP, K.CLOCK_DRIFT, *MEDDLING,
})  # fmt: skip
ON_BROKERS: Final = frozenset({K.BROKER_KILL, K.BROKER_FREEZE, K.BROKER_CLOCK_STEP, K.BROKER_CLOCK_DRIFT})
USER: Final = "user"
"""The client that publishes the workload."""
ACTS: Final = tuple(act.value for act in Action)
WORDS: Final = frozenset(word for words in PLACES.values() for word in words)


def wrong_with(setup: Setup) -> str:
    """What is wrong with its plan, and where; "" if nothing is."""
    cast = Sizes.of(setup.seed).cast
    for number, fault in enumerate(setup.plan or ()):
        wrong = _wrong_with(fault, cast)
        if wrong:
            return f"plan[{number}] ({fault.kind.value}): {wrong}"
    return ""


def _wrong_with(fault: Planned, cast: Cast) -> str:
    for name in ("at_s", "for_s", "value"):
        number = getattr(fault, name)
        if not isinstance(number, int | float) or not math.isfinite(number) or (name != "value" and number < 0):
            return f"{name} {number!r} is no number" + ("" if name == "value" else " from 0 on")
    processes, brokers = [*cast.schedulers, *cast.workers], [str(broker) for broker in cast.brokers]
    if fault.kind in LINKS:
        client, to, broker = fault.target.partition(">")
        there = client in (*processes, USER) and bool(to) and broker in (*brokers, "*")
        return "" if there else f"no link {fault.target!r}: CLIENT>BROKER, of {', '.join([*processes, USER, *brokers])} and *"
    if fault.kind in ON_PROCESSES and fault.target not in processes:
        return f"no process {fault.target!r}: this seed has {', '.join(processes)}"
    if fault.kind in ON_BROKERS and fault.target not in brokers:
        return f"no broker {fault.target!r}: this seed has {', '.join(brokers)}"
    if fault.kind is K.FAILPOINT and fault.act not in ACTS:
        return f"no act {fault.act!r}: {', '.join(ACTS)}"
    if fault.kind is K.FAILPOINT and fault.word not in WORDS:
        return f"no failpoint {fault.word!r}: {', '.join(sorted(WORDS))}"
    return ""
