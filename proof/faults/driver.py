"""Brings the faults about, several at a time, in the order that the seed gives, until there were as many as asked for."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from random import Random
from typing import Final

from proof.faults.clock import now_ms
from proof.faults.kinds.kind import Attack, Kind
from proof.faults.kinds.outages import back, revive
from proof.faults.trouble import Ended
from proof.faults.workload import Workload
from proof.faults.world import World

log = logging.getLogger(__name__)

PATIENCE_S: Final = 4.0
"""How long a kind whose target is not there is waited for before the next one takes its turn."""
ALONE_S: Final = 60.0
"""The same for a kind beside which nothing else goes on: all others must be over first."""
STALL_S: Final = 240.0
"""When no fault has found its target for so long, perhaps since nobody leads, there are no more of them: that is a trouble."""
TRIES: Final = 3
"""Faults that take no effect count for nothing; a run is given up that tried so many for each that was asked for, and `TRIED`."""
TRIED: Final = 20
HEAL_S: Final = 180.0
LOOK_S: Final = 1.0
"""How often the brokers' logs are looked at."""
LOST: Final = Kind(name="lost-broker", weight=0, begin=lambda *_: None)
"""A broker that ended though no fault asked for it is started again; that goes on beside the faults."""


@dataclass(slots=True)
class Active:
    """An attack that goes on."""

    kind: Kind
    attack: Attack
    next_s: float


class Driver:
    """One thread, the world's."""

    def __init__(self, world: World, workload: Workload, kinds: list[Kind]) -> None:
        self._world, self._workload, self._kinds = world, workload, kinds
        self._order = Random(f"{world.plan.seed}/order")
        self._active: list[Active] = []
        self._drawn = 0
        self._look_s = 0.0
        self.trouble: list[str] = []
        """Why there were not as many faults as were asked for."""

    def run(self) -> None:
        """All the faults; those that last are brought to their end. Raises RuntimeError if most of them take no effect."""
        while self._world.notes.injected < self._world.plan.faults and not self.trouble:
            self._inject()
            self.heal()  # of what goes on, some may turn out to have struck nothing

    def _inject(self) -> None:
        world = self._world
        next_fault_s = next_act_s = time.monotonic()
        kind, drawn_s, begun_s = self._draw(), time.monotonic(), time.monotonic()
        while world.notes.injected < world.plan.faults:
            if world.notes.tried > TRIES * world.plan.faults + TRIED:
                raise RuntimeError(f"of {world.notes.tried} faults only {world.notes.injected} struck")
            self.round()
            now_s = time.monotonic()
            begun_s = now_s if self._active else begun_s
            if now_s - begun_s > STALL_S + world.plan.apart_s:
                self.trouble.append(f"no fault has begun for {now_s - begun_s:.0f} s, after {world.notes.injected} of them")
                return
            if world.plan.apart_s and (self._active or world.leader() is None or not world.stands_by()):
                next_fault_s = now_s + world.plan.apart_s
            if now_s >= next_act_s and not world.user_waits:
                self._workload.act()
                next_act_s = now_s + self._workload.next_pause_s()
            if now_s < next_fault_s:
                drawn_s = now_s
                continue
            begun = self._begin(kind)
            if begun:
                next_fault_s = now_s + self._order.uniform(*world.plan.pause_s) + world.plan.apart_s
            if begun or now_s - drawn_s > (ALONE_S if kind.alone else PATIENCE_S):
                kind, drawn_s = self._draw(), now_s

    def heal(self) -> None:
        """Every fault ends now."""
        self._world.healing = True
        end_s = time.monotonic() + HEAL_S
        while self._active:
            if time.monotonic() > end_s:
                raise TimeoutError(f"still going on: {[active.kind.name for active in self._active]}")
            self.round()
        self._world.links.clear()
        self._world.crew.heal()
        self._world.healing = False

    def round(self) -> None:
        """Let the world and every active attack move."""
        self._world.pump()
        for node in self._world.brokers.lost():
            self._world.brokers.down.add(node)
            self._world.brokers.halted(node)
            words = self._world.brokers.nodes[node].folder.last_lines()
            ended = Ended(process=self._world.brokers.name(node), at_ms=now_ms(), how="halted", last_words=words)
            self._world.crew.unexpected.append(ended)
            self._active.append(Active(kind=LOST, attack=Attack(targets=(), acts=back(self._world, node)), next_s=0.0))
        if time.monotonic() >= self._look_s:
            self._look_s = time.monotonic() + LOOK_S
            for node in self._world.brokers.failed():
                self._active.append(Active(kind=LOST, attack=revive(self._world, node), next_s=0.0))
        for active in list(self._active):
            if time.monotonic() < active.next_s:
                continue
            try:
                active.next_s = time.monotonic() + next(active.attack.acts)
            except StopIteration:
                self._active.remove(active)
                self._world.held.difference_update(active.attack.targets)

    def _draw(self) -> Kind:
        self._drawn += 1
        return self._order.choices(self._kinds, weights=[kind.weight for kind in self._kinds])[0]

    def _begin(self, kind: Kind) -> bool:
        room = 1 if kind.alone else self._world.plan.at_once
        if len(self._active) >= room or any(active.kind.alone for active in self._active):
            return False
        attack = kind.begin(self._world, Random(f"{self._world.plan.seed}/{self._drawn}"))
        if attack is None:
            return False
        self._world.held.update(attack.targets)
        self._active.append(Active(kind=kind, attack=attack, next_s=time.monotonic()))
        return True
