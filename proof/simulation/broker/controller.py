"""The controller: notices that nodes come and go, and gives each partition a leader."""

from __future__ import annotations

from collections.abc import Callable

from proof.simulation.broker.node import Node
from proof.simulation.broker.seat import Seat
from proof.simulation.broker.settings import Settings
from proof.simulation.kernel import Kernel
from proof.simulation.protocol import Partition


class Controller:
    """`seats`: of every partition, internal ones too. `on_death`: called with the number of a node that dies, for the network."""

    def __init__(self, kernel: Kernel, nodes: dict[int, Node], settings: Settings) -> None:
        self._kernel, self._nodes, self._settings = kernel, nodes, settings
        self.seats: dict[Partition, Seat] = {}
        self.on_death: list[Callable[[int], None]] = []

    def kill(self, number: int) -> None:
        """SIGKILL of a node."""
        node = self._nodes[number]
        if not node.up:
            return
        self._kernel.kill(node.host)
        node.die()
        for action in self.on_death:
            action(number)
        if len(self._nodes) == 1:
            self._fence(node)
            return
        incarnation = node.incarnation
        self._later(self._settings.failover_s, lambda: self._fence(node) if node.incarnation == incarnation else None)

    def shut_down(self, number: int) -> None:
        """SIGTERM: its partitions move first, then it ends."""
        node = self._nodes[number]
        if not node.up:
            return
        for seat in self.seats.values():
            if seat.leader == number:
                others = [other for other in seat.replicas if other != number and other in seat.in_sync]
                for other in others:
                    if seat.leader == number and self._nodes[other].well:
                        seat.move(other)
        incarnation = node.incarnation
        self._later(self._settings.shutdown_s, lambda: self.kill(number) if node.incarnation == incarnation else None)

    def start(self, number: int) -> None:
        """Start a node's process; it answers a while later. Harmless when it runs."""
        node = self._nodes[number]
        if node.up:
            return
        node.incarnation += 1
        incarnation = node.incarnation

        def answers() -> None:
            if node.up or node.incarnation != incarnation:
                return
            if not node.fenced:
                self._fence(node)
            node.rise()
            self._unfence(node)

        self._later(self._settings.start_s, answers)

    def freeze(self, number: int) -> None:
        """SIGSTOP of a node. After a while the others do without it."""
        node = self._nodes[number]
        if not node.well:
            return
        self._kernel.freeze(node.host)
        node.stops += 1
        stops = node.stops
        if len(self._nodes) > 1:
            self._later(self._settings.failover_s, lambda: self._fence(node) if node.stops == stops and node.up else None)

    def thaw(self, number: int) -> bool:
        """SIGCONT. Whether the node was stopped."""
        node = self._nodes[number]
        if not (node.up and node.frozen):
            return False
        node.stops += 1
        self._kernel.thaw(node.host)
        if node.fenced:
            self._unfence(node)
        else:
            for seat in self.seats.values():
                if seat.leader == number:
                    seat.release()
                elif number in seat.in_sync:
                    seat.pump()
        return True

    def _fence(self, node: Node) -> None:
        node.fenced = True
        for seat in list(self.seats.values()):
            if node.number in seat.replicas:
                seat.node_out(node.number)

    def _unfence(self, node: Node) -> None:
        node.fenced = False
        for seat in list(self.seats.values()):
            if seat.leader < 0 and node.number in seat.in_sync:
                seat.elect()
        delay_s = self._kernel.random.uniform(*self._settings.catch_up_s)
        node.caught_up_s = self._kernel.now_s + delay_s
        self._kernel.after(delay_s, self._catch_up)

    def _catch_up(self) -> None:
        """Where there is a leader to copy from, whoever has had the time is in sync again."""
        ready = [
            node.number
            for node in self._nodes.values()
            if node.well and not node.fenced and node.caught_up_s <= self._kernel.now_s + 1e-9
        ]
        for seat in list(self.seats.values()):
            for number in ready:
                if seat.leader >= 0 and number in seat.replicas and number not in seat.in_sync:
                    seat.node_in(number)

    def _later(self, span: tuple[float, float], action: Callable[[], None]) -> None:
        self._kernel.after(self._kernel.random.uniform(*span), action)
