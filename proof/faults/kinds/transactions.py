"""Faults of single requests: EndTxn late, twice or unanswered, AddOffsetsToTxn late (T11)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from proof.faults.clock import now_ms
from proof.faults.endings import ANSWER_S, AnswerLost, Delayed, OffsetsDelayed, Repeated, Trick
from proof.faults.kinds.kind import Attack, Begin, Kind, free_child
from proof.faults.notes import OpenFault
from proof.faults.world import Acts, World

BEGIN_S: Final = 4.0
"""For the request to come."""
PATIENCE_S: Final = 8.0
"""For the trick to be over: the next transaction must come."""
HELD_S: Final = (0.2, 2.5)
FIRST: Final = 5
"""The trick is played at one of so many requests."""


def _attack(kind: str, make: Callable[[int], Trick]) -> Begin:
    def begin(world: World, chance: Random) -> Attack | None:
        child = free_child(world, chance)
        if child is None:
            return None
        trick, held_s = make(chance.randint(1, FIRST)), chance.uniform(*HELD_S)

        def acts() -> Acts:
            began_ms = now_ms()
            world.links.meddle(child.name, lambda _: trick)
            yield from world.until(lambda: trick.begun_ms, BEGIN_S)
            if not trick.begun_ms:
                world.links.do(trick.call_off)
            if trick.begun_ms:
                yield from _played(world, trick, world.notes.fault(kind, child.name), held_s)
            else:
                world.notes.missed(kind, child.name, began_ms, f"no such request came within {BEGIN_S:g} s")
            world.links.meddle(child.name, lambda _: None)

        return Attack(targets=(child.name,), acts=acts())

    return begin


def _played(world: World, trick: Trick, fault: OpenFault, held_s: float) -> Acts:
    if isinstance(trick, OffsetsDelayed):
        yield from world.hold(held_s)
        world.links.do(trick.release)
    if not (yield from world.until(trick.done.is_set, PATIENCE_S)):
        world.links.do(trick.call_off)
        yield from world.until(trick.done.is_set, ANSWER_S)
    story = "; ".join(trick.story)
    if isinstance(trick, Delayed) and not trick.struck:
        fault.end_instead("endtxn-request-lost", story)
    else:
        fault.end(story, struck=trick.struck)


KINDS: Final = (
    Kind(name="endtxn-answer-lost", weight=4, begin=_attack("endtxn-answer-lost", AnswerLost)),
    Kind(name="endtxn-delayed", weight=5, begin=_attack("endtxn-delayed", Delayed)),
    Kind(name="endtxn-repeated", weight=4, begin=_attack("endtxn-repeated", Repeated)),
    Kind(name="addoffsets-delayed", weight=3, begin=_attack("addoffsets-delayed", OffsetsDelayed)),
)
