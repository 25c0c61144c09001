"""Links between each client process and each broker: a proxy each, which passes bytes on until a fault says otherwise.

All proxies run in one thread of their own. Requests and answers are cut into frames on the way, since some faults wait for a
certain request (see `wire`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from proof.faults.wire import Frames, Meddler

HOST: Final = "127.0.0.1"
READY_S: Final = 10.0


@dataclass(slots=True)
class Weather:
    """What a link does now. `swallow_up`: requests vanish; `swallow_down`: answers vanish; `cut`: connections are reset and
    refused. Delays in seconds, each with up to `jitter_s` more."""

    cut: bool = False
    swallow_up: bool = False
    swallow_down: bool = False
    delay_s: float = 0.0
    jitter_s: float = 0.0


@dataclass(slots=True)
class Link:
    """From a client to a broker. Only the proxies' thread touches it."""

    client: str
    node: int
    to: int
    weather: Weather = field(default_factory=Weather)
    meddler: Meddler | None = None
    pipes: set[Pipe] = field(default_factory=set)

    @property
    def name(self) -> str:
        """As notes call it."""
        return f"{self.client}>b{self.node}"


class Links:
    """All proxies. Its methods are called from other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()
        self._links: dict[tuple[str, int], Link] = {}
        self._servers: list[asyncio.Server] = []

    def open(self, client: str, node: int, *, listen: int, to: int) -> None:
        """Stand between that client and that broker: listen on one port of loopback, go on to the other."""
        link = Link(client=client, node=node, to=to)
        self._links[client, node] = link

        async def serve() -> None:
            server = await self._loop.create_server(lambda: Pipe(link, self._loop), HOST, listen)
            self._servers.append(server)

        asyncio.run_coroutine_threadsafe(serve(), self._loop).result(READY_S)

    def set(self, client: str, node: int, weather: Weather) -> None:
        """From now on. A cut also resets what is connected, and so does the end of a loss: what was swallowed would be
        missing in the middle of a stream."""
        link = self._links[client, node]

        def apply() -> None:
            lossy = link.weather.swallow_up or link.weather.swallow_down
            link.weather = weather
            if weather.cut or lossy:
                for pipe in list(link.pipes):
                    pipe.reset()

        self._do(apply)

    def meddle(self, client: str, make: Callable[[Link], Meddler | None]) -> None:
        """Set or take away what watches the requests of a client, on each of its links."""

        def apply() -> None:
            for link in self._links.values():
                if link.client == client:
                    link.meddler = make(link)

        self._do(apply)

    def do(self, work: Callable[[], None]) -> None:
        """Do something in the proxies' thread, and wait for it."""
        self._do(work)

    def clear(self) -> None:
        """Every link is as good as new."""
        for client, node in self._links:
            self.set(client, node, Weather())
            self.meddle(client, lambda _: None)

    def close(self) -> None:
        """End all proxies."""

        async def end() -> None:
            for server in self._servers:
                server.close()
            for link in self._links.values():
                for pipe in list(link.pipes):
                    pipe.reset()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), READY_S)
            await asyncio.sleep(0)  # aborted connections are released in the next round

        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(end(), self._loop).result(2 * READY_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(READY_S)
            self._loop.close()

    def _do(self, apply: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            apply()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(READY_S)


class Pipe(asyncio.Protocol):
    """One connection of a client, and the one to the broker behind it."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link, self._loop = link, loop
        self._client: asyncio.Transport | None = None
        self._broker: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._up, self._down = Frames(), Frames()
        self._chance = Random()
        self._waiting: dict[bool, deque[tuple[float, bytes]]] = {True: deque(), False: deque()}
        self._reaching: asyncio.Task[None] | None = None  # kept: a task that nobody holds may vanish
        self.closed = False

    # -- the client's side ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client = transport
        if self._link.weather.cut:
            transport.abort()
            return
        self._link.pipes.add(self)
        self._reaching = self._loop.create_task(self._reach())

    async def _reach(self) -> None:
        try:
            await self._loop.create_connection(lambda: Far(self), HOST, self._link.to)
        except OSError:
            self.reset()

    def reached(self, transport: asyncio.Transport) -> None:
        """The broker took the connection."""
        self._broker = transport
        if self.closed:
            transport.abort()
            return
        early, self._early = self._early, []
        for frame in early:
            self._send(frame, up=True)

    def data_received(self, data: bytes) -> None:
        for frame in self._up.take(data):
            meddler = self._link.meddler
            if meddler is None or meddler.request(frame, self):
                self._send(frame, up=True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's own signature
        self.reset()

    # -- the broker's side ---------------------------------------------------------------------------------------------

    def answered(self, data: bytes) -> None:
        """Bytes from the broker."""
        for frame in self._down.take(data):
            meddler = self._link.meddler
            if meddler is None or meddler.answer(frame, self):
                self._send(frame, up=False)

    @property
    def port(self) -> int:
        """The broker's own."""
        return self._link.to

    # -- both ----------------------------------------------------------------------------------------------------------

    def pass_on(self, frame: bytes) -> None:
        """Let a request that was held back go to the broker now."""
        self._send(frame, up=True)

    def pass_back(self, frame: bytes) -> None:
        """Let an answer that was held back go to the client; from any thread."""
        with contextlib.suppress(RuntimeError):  # all proxies have ended meanwhile
            self._loop.call_soon_threadsafe(lambda: self._send(frame, up=False))

    def reset(self) -> None:
        """Both connections end at once."""
        self.closed = True
        self._link.pipes.discard(self)
        for transport in (self._client, self._broker):
            if transport is not None:
                transport.abort()

    def _send(self, frame: bytes, *, up: bool) -> None:
        weather = self._link.weather
        if self.closed or (weather.swallow_up if up else weather.swallow_down):
            return
        if up and self._broker is None:
            self._early.append(frame)
            return
        delay_s = weather.delay_s + (self._chance.uniform(0, weather.jitter_s) if weather.jitter_s else 0.0)
        waiting = self._waiting[up]
        if not delay_s and not waiting:
            self._write(frame, up)
            return
        waiting.append((self._loop.time() + delay_s, frame))  # behind the others: a stream never overtakes itself
        if len(waiting) == 1:
            self._loop.call_later(delay_s, self._drain, up)

    def _drain(self, up: bool) -> None:
        waiting = self._waiting[up]
        while waiting and waiting[0][0] <= self._loop.time():
            self._write(waiting.popleft()[1], up)
        if waiting:
            self._loop.call_at(waiting[0][0], self._drain, up)

    def _write(self, frame: bytes, up: bool) -> None:
        transport = self._broker if up else self._client
        if transport is not None and not transport.is_closing():
            transport.write(frame)


class Far(asyncio.Protocol):
    """The connection to the broker."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._pipe.reached(transport)

    def data_received(self, data: bytes) -> None:
        self._pipe.answered(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's own signature
        self._pipe.reset()
