"""A broker process: its clock, and what reached it while it stood still."""

from __future__ import annotations

from collections.abc import Callable

from proof.simulation.kernel import Host
from proof.simulation.protocol import Answer, Request

Reply = Callable[[Answer], None]


class Node:
    """States: up <-> frozen; any -> down -> up, as a new incarnation with a new `host` and the old one's clock.
    `fenced`: the controller has given its partitions away."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.host = Host(f"broker-{number}")
        self.up = True
        self.fenced = False
        self.incarnation = 1
        self.caught_up_s = 0.0  # from when it can have what the leaders have
        self.stops = 0  # of freezes and thaws: tells one freeze from the next
        self.backlog: list[tuple[Request, Reply]] = []
        self.outbox: list[tuple[Reply, Answer]] = []

    @property
    def frozen(self) -> bool:
        """Whether the process is stopped."""
        return self.host.frozen

    @property
    def well(self) -> bool:
        """Whether it does its work now."""
        return self.up and not self.host.frozen

    def later(self, reply: Reply) -> Reply:
        """The same reply for an answer that is given later: not while the process is stopped, never once it has died."""
        incarnation = self.incarnation

        def send(answer: Answer) -> None:
            if self.incarnation != incarnation or not self.up:
                return
            if self.host.frozen:
                self.outbox.append((reply, answer))
            else:
                reply(answer)

        return send

    def die(self) -> None:
        """SIGKILL: nothing that was under way is answered."""
        self.up = False
        self.incarnation += 1
        self.backlog, self.outbox = [], []

    def rise(self) -> None:
        """A new process on the same machine."""
        old = self.host
        self.host = Host(old.name)
        self.host.skew_ms, self.host.drift, self.host.drift_from_s = old.skew_ms, old.drift, old.drift_from_s
        self.up = True
