"""A member of a consumer group. What it holds is captured in the rebalance callbacks, and nowhere else (L1).

States: no assignment -> (assign) -> captured -> (assign) captured anew -> (revoke of all | loss) -> no assignment.
A cooperative rebalance that changes nothing still ends in an assign callback, with an empty list: a new capture.
A standby is a captured assignment without partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dueline.scheduler.core.ports import Assignment, Partition, Received

from . import client
from .capture import capture, without
from .clock import monotonic_s
from .config import KafkaConfig
from .errors import ConfigError, NotAuthorized
from .outage import AWAY, Outage
from .reader import received, unavailable
from .watchdog import Watchdog

log = logging.getLogger(__name__)

SLICE_S: Final = 0.05  # a rebalance served inside a wait is reported this late at most
COMMITTED_S: Final = 5.0
CLOSE_S: Final = 20.0  # it takes one answer; a hang lasts for ever
SYNC_MS: Final = 3_000  # by so much SyncGroup may outlast the session, and the request time-out must not end it sooner


class KafkaGroupReader:
    """Port `GroupReader`. Classic protocol, cooperative-sticky, dynamic member. One thread uses it."""

    def __init__(
        self,
        config: KafkaConfig,
        name: str,
        *,
        group: str,
        topic: str,
        session_timeout_s: float,
        max_poll_interval_s: float,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._name = name
        self._group = group
        self._topic = topic
        self._watchdog = watchdog
        self._outage = Outage(name)
        self._held: frozenset[Partition] = frozenset()
        self._assignment: Assignment | None = None
        self._said: set[int] = set()
        self._fault: ConfigError | NotAuthorized | None = None
        session_ms = round(session_timeout_s * 1000)
        self._consumer = client.consumer(
            config,
            self._outage.note,
            client_id=name,
            group_id=group,
            group_protocol="classic",
            partition_assignment_strategy="cooperative-sticky",
            auto_offset_reset="earliest",
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=min(1000, session_ms // 5),
            max_poll_interval_ms=max(session_ms, round(max_poll_interval_s * 1000)),
            socket_timeout_ms=max(client.REQUEST_MS, session_ms + SYNC_MS),
        )
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def poll(self, timeout_s: float, limit: int) -> tuple[Assignment | None, list[Received]]:
        """Serve rebalances; the records are of partitions that the returned assignment holds. Returns early when the
        assignment changed. Raises NotAuthorized, ConfigError."""
        before = self._assignment
        deadline = monotonic_s() + timeout_s
        while True:
            self._raise_fault()
            message = self._consumer.poll(max(0.0, min(SLICE_S, deadline - monotonic_s())))
            records = self._take([message] if message is not None else [])
            if records and limit > 1:
                # Without a time-out it takes what is there; with one it would wait for all it was asked for.
                records += self._take(self._consumer.consume(limit - 1, 0))
            if records or self._assignment is not before or monotonic_s() >= deadline:
                held = self._assignment.partitions if self._assignment is not None else frozenset()
                return self._assignment, [one for one in records if (one.topic, one.partition) in held]

    def assignment(self) -> Assignment | None:
        """The value captured last."""
        return self._assignment

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The group's committed offsets; absent: none. Raises Unavailable, NotAuthorized."""
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        try:
            answers = self._consumer.committed(asked, COMMITTED_S)
        except KafkaException as exception:
            if client.kafka_error(exception).code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise NotAuthorized(f"group {self._group!r}", "READ") from None
            raise unavailable(f"committed offsets of group {self._group!r}", exception) from None
        for answer in answers:
            if answer.error is not None:
                raise unavailable(f"committed offset of {answer.topic!r}", KafkaException(answer.error))
        return {(answer.topic, answer.partition): answer.offset for answer in answers if answer.offset >= 0}

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from here. Nothing happens when the partition is not held any more."""
        try:
            self._consumer.seek(TopicPartition(*partition, offset))
        except KafkaException as exception:
            if partition in self._held:
                raise unavailable(f"seek in {partition}", exception) from None

    def close(self) -> None:
        """Leave the group. The client can hang in it, if a rebalance is served while its group ends (librdkafka #4041): then
        the watchdog ends the process."""
        if not self._held:
            # The client's own close leaves the group only if it holds a partition: without this, the next rebalance would
            # wait for a standby that is gone until its session ends.
            with suppress(RuntimeError, KafkaException):  # closed already, or failed for good
                self._consumer.unsubscribe()
        self._assignment = None
        self._held = frozenset()
        with self._watchdog.guard(f"leaving the group {self._group}", CLOSE_S) if self._watchdog is not None else nullcontext():
            self._consumer.close()

    # --- callbacks, served inside poll --------------------------------------------------------------------------------

    def _on_assign(self, consumer: Consumer, added: list[TopicPartition]) -> None:
        self._outage.back()
        self._said.clear()
        self._held |= _names(added)
        self._assignment = capture(consumer.consumer_group_metadata(), self._held)
        if self._assignment is None:
            log.warning(
                "%s: an assignment of group %s came with the metadata of a member that fell out; not used",
                self._name,
                self._group,
                extra={"action": "group.unfenced-metadata", "group": self._group},
            )
            return
        log.info(
            "%s: group %s generation %d, holding %d of the topic's partitions",
            self._name,
            self._group,
            self._assignment.generation,
            len(self._held),
            extra={"action": "group.assigned", "group": self._group, "generation": self._assignment.generation},
        )

    def _on_revoke(self, _consumer: Consumer, removed: list[TopicPartition]) -> None:
        self._drop(removed, "revoked")

    def _on_lost(self, _consumer: Consumer, removed: list[TopicPartition]) -> None:
        self._drop(removed, "lost")
        self._held = frozenset()
        self._assignment = None  # the member fell out: what is left of the capture is of a generation that is over

    def _drop(self, removed: list[TopicPartition], how: str) -> None:
        names = _names(removed)
        self._held -= names
        if self._assignment is not None:
            self._assignment = without(self._assignment, names)
        log.info(
            "%s: group %s, %d partitions %s",
            self._name,
            self._group,
            len(names),
            how,
            extra={"action": f"group.{how}", "group": self._group},
        )

    # --- messages -----------------------------------------------------------------------------------------------------

    def _take(self, messages: list[Message]) -> list[Received]:
        taken = []
        for message in messages:
            error = message.error()
            if error is None:
                taken.append(received(message))
            else:
                self._on_event(error)
        if taken:
            self._outage.back()
        return taken

    def _on_event(self, error: KafkaError) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self._outage.back()
        elif code == KafkaError.GROUP_AUTHORIZATION_FAILED:
            self._fault = NotAuthorized(f"group {self._group!r}", "READ")
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self._fault = NotAuthorized(f"topic {self._topic!r}", "READ")
        elif code == KafkaError.INVALID_SESSION_TIMEOUT:
            self._fault = ConfigError(
                f"group {self._group!r}: the broker refuses the session time-out; give one between its "
                "group.min.session.timeout.ms and group.max.session.timeout.ms"
            )
        elif code == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
            self._fault = ConfigError(
                f"group {self._group!r} has members of another protocol or assignor; only dueline may join it, stop "
                "the others or choose another namespace"
            )
        elif code in AWAY:
            self._outage.away(error.str())
        elif code not in self._said:
            self._said.add(code)
            log.warning("%s: %s", self._name, error, extra={"action": "group.error", "group": self._group})


    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault


def _names(partitions: list[TopicPartition]) -> frozenset[Partition]:
    return frozenset((one.topic, one.partition) for one in partitions)
