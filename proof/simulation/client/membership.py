"""A member of a consumer group, classic protocol, cooperative-sticky: librdkafka's join states, in the client's own threads.

    init -> joining -> syncing -> (assign is served by the application) steady -> init ...
                               -> (revoke is served)  -> assign, then join again
    any joined -> the member fell out -> (lost is served) -> init

Heartbeats go out while steady and while the application has yet to serve a callback, so a hanging application keeps its
membership until `max.poll.interval.ms`. Generation and member are read live by `metadata`, as they are at that moment.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.errors import NO_ERROR, told
from proof.simulation.client.map import Map
from proof.simulation.client.wire import Wire
from proof.simulation.kernel import Timer
from proof.simulation.protocol import (
    Answer,
    GroupHeartbeat,
    JoinAnswer,
    JoinGroup,
    LeaveGroup,
    Partition,
    SyncAnswer,
    SyncGroup,
)

Partitions = frozenset[Partition]
NONE: Final[Partitions] = frozenset()
JOIN_INTERVAL_S: Final = 1.0
LEAVE_S: Final = 5.0
MARGIN_S: Final = 3.0  # by so much a join may outlast `max.poll.interval.ms`, and a sync the session
MAX_POLL_LOOK_S: Final = 0.25  # librdkafka looks every 0.5 s
MEMBER_ID_REQUIRED: Final = 79
PREFIX: Final = b"CGMDv2:"

AWAY: Final = frozenset({
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
})


class Join(StrEnum):
    """Where the member stands."""

    INIT = "init"
    JOINING = "wait-join"
    SYNCING = "wait-sync"
    ASSIGN = "wait-assign-call"
    REVOKE = "wait-unassign-call"
    STEADY = "steady"


class Rebalance(StrEnum):
    """What the application is called for."""

    ASSIGN = "assign"
    REVOKE = "revoke"
    LOST = "lost"


OnRebalance = Callable[[Rebalance, Partitions], None]
OnError = Callable[[int, str], None]


class Membership:
    """One consumer's. `on_rebalance`: queue the callback for the application, which then calls `served`."""

    def __init__(self, wire: Wire, world: Map, topics: tuple[str, ...], on_rebalance: OnRebalance, on_error: OnError) -> None:
        settings = wire.settings
        self.group = settings.text("group.id")
        self.generation = -1
        self.member = ""
        self.state = Join.INIT
        self._wire, self._map, self._topics = wire, world, topics
        self._on_rebalance, self._on_error = on_rebalance, on_error
        self._session_s = settings.seconds("session.timeout.ms", 45_000)
        self._heartbeat_s = settings.seconds("heartbeat.interval.ms", 3_000)
        self._max_poll_s = settings.seconds("max.poll.interval.ms", 300_000)
        self._request_s = settings.seconds("socket.timeout.ms", 60_000)
        self._held: Partitions = NONE
        self._follow_up: Partitions | None = None
        self._rejoin_after = False
        self._joined = False
        self._seeking = False
        self._beating = False
        self._closing = False
        self._session_ends_s = 0.0
        self._session_watched = False
        self._next_join_s = 0.0
        self._join_timer: Timer | None = None
        self._polled_s = wire.now_s
        self._in_poll = 0
        self._exceeded = False
        self._max_poll_watched = False
        self._serve()

    @property
    def metadata(self) -> bytes:
        """As librdkafka hands it out."""
        return metadata(self.group, self.generation, self.member)

    @property
    def settling(self) -> bool:
        """Whether a rebalance is going on, as librdkafka reckons it."""
        return self._waiting or self.state is Join.SYNCING or (self._joined and self.state is Join.JOINING) or (
            self._follow_up is not None or self._rejoin_after
        )  # fmt: skip

    @property
    def _waiting(self) -> bool:
        return self.state in (Join.ASSIGN, Join.REVOKE)

    # -- what the application does -----------------------------------------------------------------------------------

    def polling(self, entered: bool) -> None:
        """It enters poll, or leaves it."""
        self._in_poll += 1 if entered else -1
        self._polled_s = self._wire.kernel.now_s
        if entered and self._exceeded and self.state is Join.INIT:
            self._serve()

    def served(self, what: Rebalance) -> None:
        """The callback has returned, and the partitions are read, or not any more."""
        if self._closing:
            return
        if what is Rebalance.ASSIGN:
            self.state = Join.STEADY
            self._watch_max_poll()
            if self._rejoin_after:
                self._rejoin_after = False
                self._next_join_s = 0.0
                self._rejoin()
            return
        if self._follow_up is not None:
            added, self._follow_up = self._follow_up, None
            self._call_for(Rebalance.ASSIGN, added, rejoin=True)
        elif self._rejoin_after:
            self._rejoin_after = False
            self._next_join_s = 0.0
            self._rejoin()
        else:
            self.state = Join.STEADY

    @property
    def held(self) -> Partitions:
        """What the group gave it, callbacks still to be served included."""
        return self._held

    def close(self, done: Callable[[], None], *, unsubscribes: bool) -> None:
        """Leave, best effort; `done` when it is over. Who closes and holds nothing does not leave: its session ends some time."""
        self._closing = True
        held, self._held = self._held, NONE
        node = self._map.coordinator(self.group, transactional=False)
        if not (held or unsubscribes) or not self.member or node is None:
            self._wire.after(0.0, done)
        else:
            request = LeaveGroup(group=self.group, member=self.member)
            self._wire.ask(node, request, lambda _code, _answer: done(), LEAVE_S)
        self.member = ""

    # -- joining -----------------------------------------------------------------------------------------------------

    def _rejoin(self) -> None:
        self.state = Join.INIT
        self._serve()

    def _serve(self) -> None:
        """Join, when it is time and there is a coordinator."""
        if self.state is not Join.INIT or self._closing or self._seeking:
            return
        if self._exceeded and not self._in_poll and self._wire.kernel.now_s - self._polled_s > self._max_poll_s:
            return
        self._exceeded = False
        wait_s = self._next_join_s - self._wire.kernel.now_s
        if wait_s > 0:
            if self._join_timer is not None:
                self._join_timer.cancel()
            self._join_timer = self._wire.after(wait_s, self._serve)
            return
        self._seeking = True
        self._map.seek_coordinator(self.group, self._join, transactional=False)

    def _join(self, node: int) -> None:
        self._seeking = False
        if self.state is not Join.INIT or self._closing:
            return
        self.state = Join.JOINING
        self._next_join_s = self._wire.kernel.now_s + JOIN_INTERVAL_S
        request = JoinGroup(
            group=self.group,
            member=self.member,
            topics=self._topics,
            owned=self._held,
            session_timeout_s=self._session_s,
            rebalance_timeout_s=self._max_poll_s,
            generation=self.generation,
        )
        self._wire.ask(
            node, request, lambda code, answer: self._join_answered(node, code, answer), self._max_poll_s + MARGIN_S
        )

    def _join_answered(self, node: int, code: int, answer: JoinAnswer | None) -> None:
        if self.state is not Join.JOINING or self._closing:
            return
        if code == NO_ERROR and answer is not None:
            self.generation, self.member = answer.generation, answer.member
            self._joined = True
            self.state = Join.SYNCING
            self._extend_session(anew=True)
            request = SyncGroup(group=self.group, member=self.member, generation=self.generation)
            self._wire.ask(node, request, self._sync_answered, min(self._request_s, self._session_s + MARGIN_S))
            return
        if code in AWAY:
            self._map.forget_coordinator(self.group, transactional=False)
        elif code == KafkaError.UNKNOWN_MEMBER_ID:
            self.member = ""
        elif code == KafkaError.ILLEGAL_GENERATION:
            self.generation = -1
        elif code == MEMBER_ID_REQUIRED and answer is not None:
            self.member = answer.member
            self._next_join_s = 0.0
        elif code != KafkaError.REBALANCE_IN_PROGRESS:
            self._on_error(code, f"JoinGroup failed: {told(code)}")
        if code in (KafkaError.ILLEGAL_GENERATION, MEMBER_ID_REQUIRED):
            self._lose()
        else:
            self._rejoin()

    def _sync_answered(self, code: int, answer: SyncAnswer | None) -> None:
        if self.state is not Join.SYNCING or self._closing:
            return
        if code == NO_ERROR and answer is not None:
            self._extend_session()
            added, removed = answer.partitions - self._held, self._held - answer.partitions
            if removed:
                self._follow_up = added
                self._call_for(Rebalance.REVOKE, removed, rejoin=False)
            else:
                self._call_for(Rebalance.ASSIGN, added, rejoin=False)
            return
        if code in AWAY:
            self._map.forget_coordinator(self.group, transactional=False)
        elif code == KafkaError.ILLEGAL_GENERATION:
            self.generation = -1
        elif code == KafkaError.UNKNOWN_MEMBER_ID:
            self.member = ""
        if code in (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID):
            self._lose()
        else:
            self._rejoin()

    def _call_for(self, what: Rebalance, partitions: Partitions, *, rejoin: bool) -> None:
        self._rejoin_after = rejoin
        self.state = Join.ASSIGN if what is Rebalance.ASSIGN else Join.REVOKE
        self._held = self._held | partitions if what is Rebalance.ASSIGN else self._held - partitions
        self._restart_heartbeats()
        self._on_rebalance(what, partitions)

    def _lose(self) -> None:
        """All is lost: the application is told, and then the group joined anew."""
        if self._held:
            self._call_for(Rebalance.LOST, self._held, rejoin=True)
        else:
            self._rejoin()

    def _fall_out(self) -> None:
        if not self.settling:
            self._lose()

    # -- heartbeats and time-outs ------------------------------------------------------------------------------------

    def _restart_heartbeats(self) -> None:
        if not self._beating:
            self._beating = True
            self._wire.after(self._heartbeat_s, self._beat)

    def _beat(self) -> None:
        if self._closing:
            return
        if not (self._waiting or self.state is Join.STEADY):
            self._beating = False
            return
        if self._exceeded:
            self._wire.after(self._heartbeat_s, self._beat)
            return
        node = self._map.coordinator(self.group, transactional=False)
        if node is None:
            self._map.seek_coordinator(self.group, lambda _: None, transactional=False)
            self._wire.after(self._heartbeat_s, self._beat)
            return
        sent_s = self._wire.kernel.now_s
        request = GroupHeartbeat(group=self.group, member=self.member, generation=self.generation)
        limit_s = min(self._request_s, self._session_s)
        self._wire.ask(node, request, lambda code, answer: self._beaten(sent_s, code, answer), limit_s)

    def _beaten(self, sent_s: float, code: int, _answer: Answer | None) -> None:
        if self._closing:
            return
        self._wire.after(max(0.0, sent_s + self._heartbeat_s - self._wire.kernel.now_s), self._beat)
        if not (self._waiting or self.state is Join.STEADY):
            return
        if code == NO_ERROR:
            self._extend_session()
        elif code == KafkaError.REBALANCE_IN_PROGRESS:
            self._extend_session()
            if not self._waiting and not self.settling:
                self._rejoin()
        elif code == KafkaError.UNKNOWN_MEMBER_ID:
            self.member = ""
            self._fall_out()
        elif code == KafkaError.ILLEGAL_GENERATION:
            self.generation = -1
            self._fall_out()
        elif code in AWAY:
            self._map.forget_coordinator(self.group, transactional=False)

    def _extend_session(self, *, anew: bool = False) -> None:
        """`anew`: with a join; else a session that is over stays so."""
        if anew or self._session_ends_s > 0:
            self._session_ends_s = self._wire.kernel.now_s + self._session_s
            if not self._session_watched:
                self._session_watched = True
                self._wire.after(self._session_s, self._look_at_session)

    def _look_at_session(self) -> None:
        left_s = self._session_ends_s - self._wire.kernel.now_s
        if left_s > 0:
            self._wire.after(left_s, self._look_at_session)
        elif self.state is not Join.STEADY and not self._closing:
            self._wire.after(self._heartbeat_s, self._look_at_session)  # a rebalance is going on: that ends it first
        elif not self._closing:
            self._session_watched = False
            self._session_ends_s = 0.0
            text = f"Consumer group session timed out (in join-state {self.state}): revoking assignment and rejoining group"
            self._wire.log(logging.WARNING, "SESSTMOUT", text)
            self.member = ""
            self._fall_out()

    def _watch_max_poll(self) -> None:
        if not self._max_poll_watched:
            self._max_poll_watched = True
            self._wire.after(self._max_poll_s + MAX_POLL_LOOK_S, self._look_at_polls)

    def _look_at_polls(self) -> None:
        if self._closing:
            return
        idle_s = 0.0 if self._in_poll else self._wire.kernel.now_s - self._polled_s
        if idle_s <= self._max_poll_s:
            self._wire.after(self._max_poll_s + MAX_POLL_LOOK_S - idle_s, self._look_at_polls)
            return
        self._max_poll_watched = False
        self._exceeded = True
        text = f"Application maximum poll interval ({self._max_poll_s * 1000:.0f}ms) exceeded"
        self._wire.log(logging.WARNING, "MAXPOLL", f"{text}: leaving group")
        self._on_error(KafkaError._MAX_POLL_EXCEEDED, text)
        node = self._map.coordinator(self.group, transactional=False)
        if node is not None and self.member:
            self._wire.ask(node, LeaveGroup(group=self.group, member=self.member), lambda _code, _answer: None, LEAVE_S)
        self.member = ""
        self._fall_out()


def metadata(group: str, generation: int, member: str) -> bytes:
    """Group metadata in librdkafka's own format."""
    return PREFIX + struct.pack("=i", generation) + group.encode() + b"\0" + member.encode() + b"\0\1"
