"""The bench on a real broker: threads, child processes, the wall clock."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dueline.scheduler.kafka.broker import EmbeddedBroker
from proof.faults.links import Links, Weather
from proof.faults.wire import END_TXN, Way, request_of
from tests.simulation.conformance.bench import DEADLINE_S, Bench
from tests.standstill import stand_still

ALL: Final = "all"
"""The links' name for every client."""
HOST: Final = "127.0.0.1"
FLEXIBLE: Final = 3
"""EndTxn's first version with tagged fields."""
CHILD: Final = "tests.simulation.conformance.child"


class Thread:
    """A task."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised again in `join`
            self._error = error

    def join(self) -> Any:
        self._thread.join(DEADLINE_S * 2)
        assert not self._thread.is_alive(), "a task of the scenario hangs"
        if self._error is not None:
            raise self._error
        return self._result


class Child:
    """A puppet: commands and answers are lines of JSON."""

    def __init__(self, servers: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", CHILD, servers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, act: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([act, *arguments]) + "\n")
        line = self._process.stdout.readline()
        assert line, f"the child ended in {act}"
        return json.loads(line)

    def freeze(self) -> None:
        stand_still(self._process.pid)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Copy:
    """What is between clients and broker sees the request, and keeps its bytes."""

    def __init__(self, client_id: str, *, breaks: bool) -> None:
        self._client_id, self._breaks = client_id, breaks
        self._frame = b""
        self._port = 0

    def request(self, frame: bytes, way: Way) -> bool:
        """See `proof.faults.wire.Meddler`."""
        request = request_of(frame)
        if self._frame or request.api != END_TXN or request.client != self._client_id:
            return True
        self._frame, self._port = frame, way.port
        if self._breaks:
            way.reset()
        return not self._breaks

    def answer(self, _frame: bytes, _way: Way) -> bool:
        """See there."""
        return True

    def taken(self) -> bool:
        return bool(self._frame)

    def deliver(self) -> int:
        assert self._frame, "no EndTxn came by"
        with socket.create_connection((HOST, self._port), timeout=DEADLINE_S) as connection:
            connection.sendall(self._frame)
            answer = connection.recv(4096)
        version = struct.unpack_from(">h", self._frame, 6)[0]
        at = 8 + 4 + (1 if version >= FLEXIBLE else 0)  # length and correlation, tagged fields, the throttle time
        return int(struct.unpack_from(">h", answer, at)[0])


def _close(consumer: Consumer) -> None:
    with suppress(KafkaException, RuntimeError, SystemError):  # closed by the scenario; the last is the binding's own
        consumer.close()


class RealBench(Bench):
    """`embedded`: needed by scenarios that stop the broker, `links` by those that meddle."""

    def __init__(self, servers: str, embedded: EmbeddedBroker | None = None, links: Links | None = None) -> None:
        super().__init__(servers)
        self._servers = servers
        self._embedded = embedded
        self._links = links
        self._children: list[Child] = []

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # awaited: what the scenario says

    def spawn(self, work: Callable[[], Any]) -> Thread:
        return Thread(work)

    def puppet(self) -> Child:
        child = Child(self._servers)
        self._children.append(child)
        return child

    def keep_end_txn(self, client_id: str, *, breaks: bool) -> Copy:
        assert self._links is not None
        copy = Copy(client_id, breaks=breaks)
        self._links.meddle(ALL, lambda _: copy)
        return copy

    def break_connections(self) -> None:
        assert self._links is not None
        self._links.set(ALL, 1, Weather(cut=True))
        self._links.set(ALL, 1, Weather())

    def delete_group(self, group: str) -> None:
        self.admin().delete_consumer_groups([group], request_timeout=DEADLINE_S)[group].result(DEADLINE_S)

    def delete_before(self, topic: str, offset: int) -> None:
        [answer] = self.admin().delete_records([TopicPartition(topic, 0, offset)], request_timeout=DEADLINE_S).values()
        answer.result(DEADLINE_S)

    def stop_broker(self) -> None:
        assert self._embedded is not None
        self._embedded.kill()

    def start_broker(self) -> None:
        assert self._embedded is not None
        self._embedded.start()

    def close(self) -> None:
        """Leave groups, end children."""
        for child in self._children:
            child.close()
        for consumer in self.consumers:
            closing = threading.Thread(target=partial(_close, consumer), daemon=True)
            closing.start()
            closing.join(DEADLINE_S)  # the client can hang in it (docs/kafka.md); what the scenario saw stands
        for producer in self.producers:
            producer.purge()
        self.producers.clear()
