"""The wires between clients and brokers: each request and each answer travels for a while, is lost, held back or repeated.

A call ends exactly once for its caller: with an answer, or with a `Broken` that says whether the connection failed or the time
was over. What the broker does with a request whose caller gave up is not undone: that is what makes an outcome unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, Protocol

from proof.simulation.kernel import Action, Host, Kernel, Timer
from proof.simulation.protocol import Answer, Request


class Broken(StrEnum):
    """Why no answer came. REFUSED: no connection came up, so the request was certainly not sent."""

    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"
    REFUSED = "refused"


OnEnd = Callable[[Answer | Broken], None]


TICK_S: Final = 1e-6  # between two arrivals on one connection


class Brokers(Protocol):
    """What the network delivers to."""

    def up(self, node: int) -> bool:
        """Whether the node's process runs."""
        ...

    def handle(self, node: int, request: Request, answer: Callable[[Answer], None]) -> None:
        """Carry a request out and answer, now or later. Without an answer the caller's time runs out."""
        ...


@dataclass(slots=True)
class Link:
    """Between one host and one node. `cut`: connections break and none comes up. `lose_requests`, `lose_answers`: one-way loss,
    found out by time-outs only. `delay_s`: on top of the usual, each way."""

    cut: bool = False
    lose_requests: bool = False
    lose_answers: bool = False
    delay_s: float = 0.0


@dataclass(slots=True)
class Meddling:
    """What a meddler wants done with one request: `hold_s` before it reaches the broker; `copy_after_s`: the broker gets it a
    second time, that long after the first; `lose_answer`: the caller never hears; `break_after_s`: the connection fails after
    that long, so that the client sends the request again while the first copy is still on its way."""

    hold_s: float = 0.0
    copy_after_s: float = -1.0
    lose_answer: bool = False
    break_after_s: float = -1.0


Meddler = Callable[[Host, int, Request], Meddling | None]
"""Looks at every request; None: leave it alone."""


class _Call:
    """One request under way. `among`: those of its host and node."""

    __slots__ = ("among", "ended", "host", "link", "node", "on_end", "timer")

    def __init__(self, host: Host, node: int, link: Link, on_end: OnEnd) -> None:
        self.host, self.node, self.link, self.on_end = host, node, link, on_end
        self.ended = False
        self.among: dict[_Call, None] | None = None
        self.timer: Timer | None = None


def _finish(call: _Call, result: Answer | Broken) -> None:
    """The caller learns, once."""
    if call.ended:
        return
    call.ended = True
    if call.timer is not None:
        call.timer.off = True
    if call.among is not None:
        call.among.pop(call, None)
    call.on_end(result)


class Network:
    """All wires. `base_s`: the usual time one way, at least; `jitter_s`: what chance adds."""

    def __init__(self, kernel: Kernel, brokers: Brokers, *, base_s: float = 0.0005, jitter_s: float = 0.002) -> None:
        self._kernel, self._brokers = kernel, brokers
        self._base_s, self._jitter_s = base_s, jitter_s
        self._links: dict[tuple[str, int], Link] = {}
        self._open: dict[tuple[str, int], dict[_Call, None]] = {}  # in order: a replay breaks them in the same one
        self._arrived: dict[tuple[str, str, int], float] = {}
        self._watched: dict[tuple[str, int], dict[Action, Host]] = {}
        self.meddlers: list[Meddler] = []

    def link(self, host: Host, node: int) -> Link:
        """The wire of a host to a node; change it to make a fault, then `broke` if connections shall fail at once."""
        link = self._links.get((host.name, node))
        if link is None:
            link = self._links[host.name, node] = Link()
        return link

    def call(self, host: Host, node: int, request: Request, on_end: OnEnd, timeout_s: float) -> None:
        """Send a request. `on_end` runs in the hub as a timer of the host, so it freezes and dies with it."""
        link = self._links.get((host.name, node)) or self.link(host, node)
        call = _Call(host, node, link, on_end)
        if link.cut or not self._brokers.up(node):
            self._end(call, Broken.REFUSED, self._way_s(link))
            return
        among = self._open.get((host.name, node))
        if among is None:
            among = self._open[host.name, node] = {}
        call.among = among
        among[call] = None
        after = self._kernel.after
        call.timer = after(timeout_s, partial(self._end, call, Broken.TIMED_OUT, 0.0), host)
        meddling = self._meddling(host, node, request)
        way_s = self._base_s + self._kernel.random.random() * self._jitter_s + link.delay_s
        arrives_s = way_s + meddling.hold_s if meddling else self._in_order_s(call, request, way_s)
        if not link.lose_requests:
            after(arrives_s, partial(self._deliver, call, request, meddling))
        if meddling is None:
            return
        if meddling.copy_after_s >= 0:
            self._kernel.after(arrives_s + meddling.copy_after_s, lambda: self._deliver(call, request, meddling))
        if meddling.break_after_s >= 0:
            self._kernel.after(meddling.break_after_s, lambda: self._end(call, Broken.DISCONNECTED, 0.0))

    def watch(self, host: Host, node: int, on_break: Action) -> None:
        """Have it called, once, when the connection fails, also an idle one: as a timer of the host."""
        self._watched.setdefault((host.name, node), {})[on_break] = host

    def unwatch(self, host: Host, node: int, on_break: Action) -> None:
        """The client closed the connection itself."""
        self._watched.get((host.name, node), {}).pop(on_break, None)

    def broke(self, host: Host, node: int) -> None:
        """The connection of a host to a node fails: what is under way ends so. What was sent may still arrive."""
        for call in list(self._open.get((host.name, node), ())):
            self._end(call, Broken.DISCONNECTED, 0.0)
        self._tell((host.name, node))

    def node_died(self, node: int) -> None:
        """All its connections fail."""
        for key in [key for key in self._watched if key[1] == node]:
            self._tell(key)
        for (_, number), calls in list(self._open.items()):
            if number == node:
                for call in list(calls):
                    self._end(call, Broken.DISCONNECTED, 0.0)

    def _tell(self, key: tuple[str, int]) -> None:
        for on_break, host in self._watched.pop(key, {}).items():
            self._kernel.after(0.0, on_break, host)

    def _in_order_s(self, call: _Call, request: Request, way_s: float) -> float:
        """Requests of one client to one node arrive in the order they were sent, as on one connection; what is held back does not
        hold up the others."""
        key = (call.host.name, request.client, call.node)
        now_s = self._kernel.now_s
        at_s = self._arrived[key] = max(now_s + way_s, self._arrived.get(key, 0.0) + TICK_S)
        return at_s - now_s

    def _meddling(self, host: Host, node: int, request: Request) -> Meddling | None:
        for meddler in self.meddlers:
            meddling = meddler(host, node, request)
            if meddling is not None:
                return meddling
        return None

    def _deliver(self, call: _Call, request: Request, meddling: Meddling | None) -> None:
        if not self._brokers.up(call.node):
            return
        silent = meddling is not None and meddling.lose_answer

        def back(answer: Answer) -> None:
            link = call.link
            if not (silent or link.cut or link.lose_answers):
                self._end(call, answer, self._way_s(link))

        self._brokers.handle(call.node, request, back)

    def _end(self, call: _Call, result: Answer | Broken, after_s: float) -> None:
        self._kernel.after(after_s, partial(_finish, call, result), call.host)

    def _way_s(self, link: Link) -> float:
        return self._base_s + self._kernel.random.random() * self._jitter_s + link.delay_s
