"""What a scenario may use, so that the same function runs on a real broker and on the simulated one.

The clients are opened with the very settings of `scheduler.kafka.client`: what is compared is what dueline relies on.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from dueline.scheduler.kafka import client
from dueline.scheduler.kafka.config import KafkaConfig

DEADLINE_S: Final = 30.0
SLICE_S: Final = 0.05
SHORT_SESSION_MS: Final = 1000
"""The least that the embedded broker takes: for scenarios in which it runs out."""
LONG_SESSION_MS: Final = 6000
"""For those in which it must not."""
T = TypeVar("T")


class Task(Protocol):
    """Something that runs at the same time."""

    def join(self) -> Any:
        """Its result, once it has ended; raises what it raised."""


class Puppet(Protocol):
    """A process of its own, which can be stopped and woken. It holds clients by name and runs functions of `acts`."""

    def run(self, act: str, *arguments: Any) -> Any:
        """The result of one function of `acts`, which must be plain JSON."""

    def freeze(self) -> None:
        """Stop the whole process: its threads, and those of the clients in it."""

    def thaw(self) -> None:
        """Let it go on."""


def ignored(_error: KafkaError) -> None:
    """Error events: what a scenario looks at comes from calls and messages."""


class Kept(Protocol):
    """A copy of a request to end a transaction, on its way to the broker for as long as the scenario likes."""

    def taken(self) -> bool:
        """Whether the request came by."""

    def deliver(self) -> int:
        """Let it arrive; the broker's error code, 0 for none."""


class Bench(ABC):
    """A broker, clients and a clock. `servers`: what clients are given."""

    def __init__(self, servers: str) -> None:
        self.config = KafkaConfig(bootstrap_servers=servers)
        self._mark = uuid.uuid4().hex[:8]
        self._count = 0
        self._admin: Any = None
        self.producers: list[Any] = []
        self.consumers: list[Any] = []

    def producer(self, **own: Any) -> Any:
        """A `Producer` as `client.producer` opens it; `own`: its further settings, underscores for dots."""
        self.producers.append(client.producer(self.config, ignored, **own))
        return self.producers[-1]

    def consumer(self, **own: Any) -> Any:
        """A `Consumer` as `client.consumer` opens it."""
        self.consumers.append(client.consumer(self.config, ignored, **own))
        return self.consumers[-1]

    def admin(self) -> Any:
        """An `AdminClient`. It is kept: answers that are on their way die with their client."""
        self._admin = self._admin or client.admin(self.config, ignored)
        return self._admin

    def name(self, stem: str) -> str:
        """A name for a topic, group or transactional id that nobody else uses."""
        self._count += 1
        return f"{stem}-{self._mark}-{self._count}"

    def new_topic(self, partitions: int = 1) -> str:
        """Create a topic as dueline's are, and return its name when the broker knows it."""
        topic, admin = self.name("topic"), self.admin()
        new = NewTopic(
            topic, num_partitions=partitions, replication_factor=1, config={"message.timestamp.type": "LogAppendTime"}
        )
        admin.create_topics([new], request_timeout=10.0, operation_timeout=10.0)[topic].result(DEADLINE_S)
        self.until(lambda: True if topic in admin.list_topics(timeout=5).topics else None, "the topic")
        return topic

    @abstractmethod
    def now_ms(self) -> int:
        """The wall clock."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """The clock of time-outs."""

    @abstractmethod
    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def spawn(self, work: Callable[[], Any]) -> Task:
        """Run it at the same time."""

    @abstractmethod
    def puppet(self) -> Puppet:
        """A new process."""

    @abstractmethod
    def keep_end_txn(self, client_id: str, *, breaks: bool) -> Kept:
        """Keep a copy of the next EndTxn of that client (scenarios with `meddles` only). `breaks`: it does not arrive, and its
        connection breaks, so that the client sends another one; else it arrives as if nothing were."""

    @abstractmethod
    def break_connections(self) -> None:
        """Each connection fails once (scenarios with `meddles` only)."""

    @abstractmethod
    def delete_group(self, group: str) -> None:
        """Of a group without members, with its offsets."""

    @abstractmethod
    def delete_before(self, topic: str, offset: int) -> None:
        """The log of partition 0 starts there, as when retention has run out."""

    @abstractmethod
    def stop_broker(self) -> None:
        """Kill the broker (scenarios with `restarts` only)."""

    @abstractmethod
    def start_broker(self) -> None:
        """Start it again, with what it had acknowledged."""

    def until(self, probe: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
        """The probe's first value that is not None. The probe waits by itself, or is asked again a little later."""
        end = self.monotonic_s() + deadline_s
        while self.monotonic_s() < end:
            value = probe()
            if value is not None:
                return value
            self.sleep(0.005)  # awaited: the probe's answer
        raise AssertionError(f"{what}: not within {deadline_s} s")


def told(error: KafkaError) -> str:
    """Name and flags: "ILLEGAL_GENERATION abort"."""
    flags = [
        word
        for word, holds in (
            ("fatal", error.fatal()),
            ("retriable", error.retriable()),
            ("abort", error.txn_requires_abort()),
        )
        if holds
    ]
    return " ".join([error.name(), *flags])


def tried(call: Callable[..., Any], *arguments: Any) -> str:
    """What the call returned, "ok" for None; or what it raised."""
    try:
        with client.callbacks_served():
            result = call(*arguments)
    except KafkaException as exception:
        return told(exception.args[0])
    return "ok" if result is None else str(result)
