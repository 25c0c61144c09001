"""A member of a group as `KafkaGroupReader` opens it, which keeps what happened to it as short texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import TopicPartition

from dueline.scheduler.kafka.capture import Metadata
from tests.simulation.conformance.bench import DEADLINE_S, LONG_SESSION_MS, SLICE_S, Bench, told

ROUND_S: Final = 0.02


class Member:
    """Events: "assign [0]", "revoke [0]", "lost [0]", "error NAME". `generations`: of the metadata in each assign callback;
    `inside`: the metadata as read inside every callback, "N" or "sentinel" or "N without a member"."""

    def __init__(self, bench: Bench, group: str, topic: str, **own: Any) -> None:
        self._bench = bench
        self.topic = topic
        self.events: list[str] = []
        self.generations: list[int] = []
        self.inside: list[str] = []
        self.captured = b""
        self.values: list[bytes | None] = []
        session_ms = own.pop("session_timeout_ms", LONG_SESSION_MS)
        self.client = bench.consumer(
            **{
                "group_id": group,
                "group_protocol": "classic",
                "partition_assignment_strategy": "cooperative-sticky",
                "auto_offset_reset": "earliest",
                "session_timeout_ms": session_ms,
                "heartbeat_interval_ms": min(1000, session_ms // 5),
                "max_poll_interval_ms": max(session_ms, own.pop("max_poll_interval_ms", 30_000)),
                **own,
            }
        )
        self.client.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def poll(self, seconds: float = ROUND_S) -> None:
        """Once; what came is kept."""
        message = self.client.poll(seconds)
        if message is None:
            return
        error = message.error()
        if error is None:
            self.values.append(message.value())
        elif error.name() != "_PARTITION_EOF":
            self.events.append(f"error {told(error)}")

    def poll_for(self, seconds: float) -> None:
        """For so long."""
        end = self._bench.monotonic_s() + seconds
        while self._bench.monotonic_s() < end:
            self.poll(SLICE_S)

    def until(self, event: str, deadline_s: float = DEADLINE_S) -> None:
        """Until an event that begins so came."""

        def probe() -> bool | None:
            self.poll(SLICE_S)
            return True if any(one.startswith(event) for one in self.events) else None

        self._bench.until(probe, f"{event!r}, after {self.events}", deadline_s)

    def until_assigned(self) -> None:
        """Until the next assign callback."""
        count = len(self.generations)

        def probe() -> bool | None:
            self.poll(SLICE_S)
            return True if len(self.generations) > count else None

        self._bench.until(probe, f"an assignment, after {self.events}")

    def take(self) -> list[str]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events

    def metadata(self) -> str:
        """The metadata as the client answers now."""
        metadata = Metadata.parse(self.client.consumer_group_metadata())
        if metadata.generation < 0 and not metadata.member:
            return "sentinel"
        return str(metadata.generation) + ("" if metadata.member else " without a member")

    def held(self) -> list[int]:
        """The partitions of the client's own assignment."""
        return sorted(one.partition for one in self.client.assignment())

    def at(self, offset: int, partition: int = 0) -> list[TopicPartition]:
        """An offset to commit."""
        return [TopicPartition(self.topic, partition, offset)]

    def _assigned(self, consumer: Any, added: list[TopicPartition]) -> None:
        self.captured = consumer.consumer_group_metadata()
        self.generations.append(Metadata.parse(self.captured).generation)
        self._note("assign", added)

    def _revoked(self, _consumer: Any, removed: list[TopicPartition]) -> None:
        self._note("revoke", removed)

    def _lost(self, _consumer: Any, removed: list[TopicPartition]) -> None:
        self._note("lost", removed)

    def _note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.events.append(f"{what} {sorted(one.partition for one in partitions)}")
        self.inside.append(f"{what} {self.metadata()}")


def settled(bench: Bench, members: Iterable[Member], shares: list[int]) -> list[list[int]]:
    """Poll all until they hold so many partitions (sorted), in sum all of them; what each holds."""
    all_of_them = list(members)

    def probe() -> bool | None:
        for one in all_of_them:
            one.poll()
        return True if sorted(len(one.held()) for one in all_of_them) == sorted(shares) else None

    bench.until(probe, f"shares of {shares}")
    quiet(bench, all_of_them, 0.5)
    return [one.held() for one in all_of_them]


def quiet(bench: Bench, members: Iterable[Member], seconds: float) -> None:
    """Poll all in turns for so long."""
    end = bench.monotonic_s() + seconds
    all_of_them = list(members)
    while bench.monotonic_s() < end:
        for one in all_of_them:
            one.poll()


def rounds(bench: Bench, members: Iterable[Member], what: str, holds: Any) -> None:
    """Poll all in turns until `holds()`."""
    all_of_them = list(members)

    def probe() -> bool | None:
        for one in all_of_them:
            one.poll()
        return True if holds() else None

    bench.until(probe, what)
