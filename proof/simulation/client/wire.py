"""The connections of one client: requests, what breaks, and what is then told in the log and to `error_cb`.

A connection is made with the first request to a node and stands until it breaks. One that broke is tried again after a pause
that grows; the requests that were on it end as failed. Log lines have librdkafka's facilities and wording where
`scheduler.kafka` reads them, and its suppression: a line that repeats the last one of its broker is dropped for 30 s.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.errors import NO_ERROR, failure, kafka_error
from proof.simulation.client.events import Events
from proof.simulation.client.settings import Settings
from proof.simulation.kernel import Action, Host, Kernel, Timer
from proof.simulation.network import Broken, Network
from proof.simulation.protocol import Answer, Request

OnAnswer = Callable[[int, Any], None]
"""Code and answer; without an answer the code is the client's own: `_TRANSPORT`, `_TIMED_OUT`."""

SUPPRESSED_S: Final = 30.0
IDLE_S: Final = 60.0  # the end of a connection that carried nothing for so long is not told
COUNTING_S: Final = 40.0  # statistics come for so long after a break, and else not at all: nobody looks at them then
YOUNG_S: Final = 2.0  # a connection that breaks sooner gets a hint in its line


@dataclass(slots=True, eq=False)
class _Ask:
    request: Request
    on_end: OnAnswer
    until_s: float
    over: bool = False


@dataclass(slots=True, eq=False)
class _Connection:
    node: int
    backoff_s: float
    front: str
    on_break: Action = lambda: None
    up: bool = False
    since_s: float = 0.0
    sent_s: float = 0.0
    retry_at_s: float = 0.0
    down_told: bool = False
    last_error: str = ""
    told_at_s: float = float("-inf")
    asks: dict[_Ask, None] = field(default_factory=dict)


class Wire:
    """One client's. Everything here runs in the hub or in the task that calls, and never waits."""

    def __init__(self, kernel: Kernel, network: Network, settings: Settings, logger: Any, name: str) -> None:
        self.kernel = kernel
        self.host: Host = kernel.current.host
        self.settings = settings
        self.name = name
        self.client_id = settings.text("client.id", "rdkafka")
        self.events = Events(kernel)
        self.closed = False
        self.nodes: list[int] = list(settings.nodes)
        self.on_node_down: list[Callable[[int], None]] = []
        self._network = network
        self._logger = logger
        self._connections: dict[tuple[int, bool], _Connection] = {}
        self._counts = {"disconnects": 0, "req_timeouts": 0}  # of connections to a transaction coordinator
        self._statistics = ""
        self._count_until_s = 0.0
        self._counting = False
        self._request_s = settings.seconds("socket.timeout.ms", 60_000)
        self._backoff_s = settings.seconds("reconnect.backoff.ms", 100)
        self._backoff_max_s = settings.seconds("reconnect.backoff.max.ms", 10_000)

    @property
    def now_s(self) -> float:
        """The simulation's time."""
        return self.kernel.now_s

    def after(self, delay_s: float, action: Action) -> Timer:
        """A timer of the client's own threads; nothing happens once the client is closed."""

        def fire() -> None:
            if not self.closed:
                action()

        return self.kernel.after(delay_s, fire, self.host)

    def close(self) -> None:
        """Drop everything: no callback comes any more."""
        self.closed = True
        for connection in self._connections.values():
            connection.asks.clear()
            self._network.unwatch(self.host, connection.node, connection.on_break)

    # -- requests ----------------------------------------------------------------------------------------------------

    def ask(
        self, node: int, request: Request, on_end: OnAnswer, timeout_s: float | None = None, *, coordinator: bool = False
    ) -> None:
        """Send, as soon as there is a connection. `timeout_s`: the request time-out unless given. `coordinator`: to the
        transaction coordinator, by the connection that the client keeps for that."""
        if self.closed:
            return
        request.client = self.client_id
        connection = self._connections.get((node, coordinator)) or self._connection(node, coordinator=coordinator)
        limit_s = self._request_s if timeout_s is None else timeout_s
        now_s = self.kernel.now_s
        ask = _Ask(request, on_end, now_s + limit_s)
        wait_s = 0.0 if connection.up else connection.retry_at_s - now_s
        if wait_s <= 0:
            self._send(connection, ask)
        elif wait_s < limit_s:
            self.after(wait_s, lambda: self._send(connection, ask))
        else:
            self.after(limit_s, lambda: self._finish(connection, ask, KafkaError._TIMED_OUT, None))

    def any_node(self) -> int:
        """One that is connected, else the one that may be tried first."""
        up = [one.node for (_, coordinator), one in self._connections.items() if one.up and not coordinator]
        if up:
            return min(up)
        return min(self.nodes, key=lambda node: (self._connection(node).retry_at_s, node))

    def _connection(self, node: int, *, coordinator: bool = False) -> _Connection:
        made = self._connections.get((node, coordinator))
        if made is None:
            front = f"TxnCoordinator: broker-{node}:9092" if coordinator else f"broker-{node}:9092/{node}"
            made = self._connections[node, coordinator] = _Connection(node, self._backoff_s, front)
            connection = made
            made.on_break = lambda: self._broke(connection, "Disconnected", NO_ERROR)
            if node not in self.nodes:
                self.nodes.append(node)
        return made

    def _send(self, connection: _Connection, ask: _Ask) -> None:
        connection.asks[ask] = None
        now_s = connection.sent_s = self.kernel.now_s
        left_s = ask.until_s - now_s
        self._network.call(
            self.host,
            connection.node,
            ask.request,
            partial(self._ended, connection, ask),
            left_s if left_s > 0.001 else 0.001,
        )

    def _ended(self, connection: _Connection, ask: _Ask, result: Answer | Broken) -> None:
        if self.closed or ask.over:
            return
        if isinstance(result, Answer):
            if not connection.up:
                self._came_up(connection)
            connection.asks.pop(ask, None)
            ask.over = True
            ask.on_end(result.code, result)
        elif result is Broken.REFUSED:
            self._refused(connection)
            self._finish(connection, ask, KafkaError._TRANSPORT, None)
        elif result is Broken.DISCONNECTED:
            self._came_up(connection)  # it carried the request
            self._broke(connection, "Disconnected", NO_ERROR)
        else:
            self._timed_out(connection, ask)

    def _finish(self, connection: _Connection, ask: _Ask, code: int, answer: Answer | None) -> None:
        connection.asks.pop(ask, None)
        if not ask.over and not self.closed:
            ask.over = True
            ask.on_end(code, answer)

    # -- connections -------------------------------------------------------------------------------------------------

    def _came_up(self, connection: _Connection) -> None:
        if connection.up:
            return
        connection.up, connection.since_s, connection.backoff_s = True, self.kernel.now_s, self._backoff_s
        for one in self._connections.values():
            one.down_told = False
        self._network.watch(self.host, connection.node, connection.on_break)

    def _timed_out(self, connection: _Connection, ask: _Ask) -> None:
        waited_ms = round((self.kernel.now_s - (ask.until_s - self._request_s)) * 1000)
        what = type(ask.request).__name__ if connection.up else "ApiVersion"
        front = connection.front
        self._count(connection, "req_timeouts")
        self.log(logging.INFO, "REQTMOUT", f"{front}: Timed out {what}Request in flight (after {waited_ms}ms, timeout #0)")
        counts = "1 in-flight, 0 retry-queued, 0 out-queue, 0 partially-sent requests"
        self.log(logging.WARNING, "REQTMOUT", f"{front}: Timed out {counts}")
        self._finish(connection, ask, KafkaError._TIMED_OUT, None)
        self._broke(connection, "1 request(s) timed out: disconnect", KafkaError._TRANSPORT)

    def _refused(self, connection: _Connection) -> None:
        if connection.up:
            self._broke(connection, "Disconnected", NO_ERROR)
            return
        self._fail(
            connection, "Connect to ipv4#127.0.0.1 failed: Connection refused", "CONNECT", KafkaError._TRANSPORT, logging.ERROR
        )
        self._down(connection)

    def _broke(self, connection: _Connection, why: str, code: int) -> None:
        """A connection that was up is no more. `code`: of an error event as well."""
        if self.closed:
            return
        state = "UP" if connection.up else "APIVERSION_QUERY"
        if not connection.up and not connection.asks:
            return
        quiet_s = self.kernel.now_s - max(connection.since_s, connection.sent_s)
        idle = not code and not connection.asks and quiet_s > max(IDLE_S, self._request_s)
        if why == "Disconnected" and self.kernel.now_s - connection.since_s < YOUNG_S:
            why += ": verify that security.protocol is correctly configured, broker might require SASL authentication"
        level = logging.ERROR if code else (logging.WARNING if len(connection.asks) > 1 else logging.INFO)
        if code or (not idle and self.settings.flag("log.connection.close", default=True)):
            self._fail(connection, why, state, code, level)
        self._network.unwatch(self.host, connection.node, connection.on_break)
        connection.up = False
        self._count(connection, "disconnects")
        self._down(connection)
        for ask in list(connection.asks):
            self._finish(connection, ask, KafkaError._TRANSPORT, None)

    def _down(self, connection: _Connection) -> None:
        connection.retry_at_s = self.kernel.now_s + connection.backoff_s
        connection.backoff_s = min(connection.backoff_s * 2, self._backoff_max_s)
        for told in list(self.on_node_down):
            told(connection.node)
        if connection.down_told:
            return
        connection.down_told = True
        if all(self._connection(node).down_told for node in list(self.nodes)):
            count = len(self.nodes)
            self.tell_error(KafkaError._ALL_BROKERS_DOWN, f"{count}/{count} brokers are down")

    def _fail(self, connection: _Connection, why: str, state: str, code: int, level: int) -> None:
        text = f"{connection.front}: {why}"
        repeated = connection.last_error == text and self.kernel.now_s - connection.told_at_s < SUPPRESSED_S
        connection.last_error = text
        if repeated:
            return
        connection.told_at_s = self.kernel.now_s
        passed_ms = round((self.kernel.now_s - connection.since_s) * 1000)
        text = f"{text} (after {passed_ms}ms in state {state})"
        self.log(level, "FAIL", f"[thrd:{connection.front.partition(chr(58))[0]}]: {text}")
        if code:
            self.tell_error(code, text)

    def _count(self, connection: _Connection, what: str) -> None:
        if connection is not self._connections.get((connection.node, True)):
            return
        self._counts[what] += 1
        self._statistics = json.dumps({"brokers": {"TxnCoordinator": self._counts}})
        self._count_until_s = self.kernel.now_s + COUNTING_S
        if not self._counting and self.settings.statistics_cb is not None:
            self._counting = True
            self.after(self.settings.seconds("statistics.interval.ms", 0), self._tell_counts)

    def _tell_counts(self) -> None:
        on_statistics, text = self.settings.statistics_cb, self._statistics
        assert on_statistics is not None
        self.events.add(lambda: on_statistics(text))
        self._counting = self.kernel.now_s < self._count_until_s
        if self._counting:
            self.after(self.settings.seconds("statistics.interval.ms", 0), self._tell_counts)

    # -- what the application is told --------------------------------------------------------------------------------

    def log(self, level: int, facility: str, text: str) -> None:
        """A line for the logger, served with the other events."""
        if self._logger is not None and not self.closed:
            logger = self._logger
            self.events.add(lambda: logger.log(level, "%s [%s] %s", facility, self.name, text))

    def raise_fatal(self, code: int, text: str) -> None:
        """Whatever serves this raises it."""

        def serve() -> None:
            raise failure(code, text, fatal=True)

        self.events.add(serve)

    def tell_error(self, code: int, text: str) -> None:
        """An error event for `error_cb`."""
        on_error = self.settings.error_cb
        if on_error is not None and not self.closed:
            self.events.add(lambda: on_error(kafka_error(code, text)))
