"""A classic consumer group: members, generations, rebalances, as its coordinator keeps them.

Only what a generation's sync has written survives a change of the coordinator; a join that nobody has synced yet is forgotten,
and its generation number is given again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proof.simulation.broker import codes
from proof.simulation.broker.assignment import Claim, cooperative_sticky
from proof.simulation.broker.node import Reply
from proof.simulation.broker.seat import Seat
from proof.simulation.kernel import Kernel, Timer
from proof.simulation.protocol import JoinAnswer, JoinGroup, Partition, SyncAnswer

NEW_MEMBER_S: Final = 300.0
NOBODY: Final[frozenset[Partition]] = frozenset()


class State(StrEnum):
    """Of a group."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """`join`, `sync`: the replies it waits for. `deadline_s`: when it is given up unless it is heard of."""

    name: str
    topics: tuple[str, ...]
    owned: frozenset[Partition]
    owned_generation: int
    session_s: float
    rebalance_s: float
    assignment: frozenset[Partition] = NOBODY
    deadline_s: float = 0.0
    new: bool = True
    synced: bool = False
    join: Reply | None = None
    sync: Reply | None = None
    timer: Timer | None = None
    timer_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the coordinator's log says of the group."""

    generation: int = 0
    leader: str = ""
    members: tuple[Member, ...] = ()


class Group:
    """States: Empty -> PreparingRebalance -> CompletingRebalance -> Stable -> PreparingRebalance ...; Empty when all have left.
    `offsets`: committed. `empty_since_ms`: by the coordinator's clock."""

    def __init__(self, kernel: Kernel, name: str, seat: Seat, partitions_of: Callable[[str], int], initial_s: float) -> None:
        self._kernel, self._seat, self._partitions_of, self._initial_s = kernel, seat, partitions_of, initial_s
        self.name = name
        self.state = State.EMPTY
        self.generation = 0
        self.members: dict[str, Member] = {}
        self.expected: dict[str, Timer] = {}  # ids that were given out and have yet to join
        self.leader = ""
        self.offsets: dict[Partition, int] = {}
        self.committed_ms: dict[Partition, int] = {}
        self.empty_since_ms = seat.now_ms()
        self._stored = Stored()
        self._timer: Timer | None = None
        self._delaying = False

    # -- requests --------------------------------------------------------------------------------------------------------

    def expect(self, member: str, session_s: float) -> None:
        """An id was given out; rebalances wait for it, for a session time-out."""

        def give_up() -> None:
            if self.expected.pop(member, None) is not None:
                self._try_complete()

        self.expected[member] = self._after(session_s, give_up)

    def join(self, request: JoinGroup, reply: Reply) -> None:
        """A member, known or expected, joins."""
        member = self.members.get(request.member)
        if member is None:
            timer = self.expected.pop(request.member, None)
            if timer is None:
                reply(JoinAnswer(code=codes.UNKNOWN_MEMBER_ID))
                return
            timer.cancel()
            self.add(request.member, request, reply)
            return
        same = (member.topics, member.owned, member.owned_generation) == (request.topics, request.owned, request.generation)
        keeps = self.state == State.COMPLETING or (self.state == State.STABLE and self.leader != member.name)
        if same and keeps:
            reply(JoinAnswer(generation=self.generation, member=member.name, leader=self.leader == member.name))
            self._heard(member)
            return
        member.topics, member.owned, member.owned_generation = request.topics, request.owned, request.generation
        member.session_s, member.rebalance_s = request.session_timeout_s, request.rebalance_timeout_s
        member.join = reply
        self._rebalance()

    def add(self, name: str, request: JoinGroup, reply: Reply) -> None:
        """A new member joins."""
        member = Member(
            name=name,
            topics=request.topics,
            owned=request.owned,
            owned_generation=request.generation,
            session_s=request.session_timeout_s,
            rebalance_s=request.rebalance_timeout_s,
            join=reply,
        )
        self.members[name] = member
        member.deadline_s = self._kernel.now_s + NEW_MEMBER_S
        self._watch(member)
        self._rebalance()

    def sync(self, name: str, generation: int, reply: Reply) -> None:
        """What a member shall hold; the leader's request makes the assignment."""
        member = self.members.get(name)
        code = self.check(name, generation)
        if not code and self.state == State.PREPARING:
            code = codes.REBALANCE_IN_PROGRESS
        if code or member is None:
            reply(SyncAnswer(code=code or codes.UNKNOWN_MEMBER_ID))
            return
        member.synced = True
        if self.state == State.STABLE:
            self._heard(member)
            reply(SyncAnswer(partitions=member.assignment))
            return
        member.sync = reply
        if name == self.leader:
            self._assign()

    def heartbeat(self, name: str, generation: int) -> int:
        """The code of the answer."""
        code = self.check(name, generation)
        if code:
            return code
        self._heard(self.members[name])
        return codes.REBALANCE_IN_PROGRESS if self.state == State.PREPARING else codes.NONE

    def leave(self, name: str) -> int:
        """The code of the answer."""
        timer = self.expected.pop(name, None)
        if timer is not None:
            timer.cancel()
            self._try_complete()
            return codes.NONE
        if name not in self.members:
            return codes.UNKNOWN_MEMBER_ID
        self.remove(name)
        return codes.NONE

    def check(self, name: str, generation: int) -> int:
        """Whether there is that member, and the generation is the group's."""
        if name not in self.members:
            return codes.UNKNOWN_MEMBER_ID
        return codes.NONE if generation == self.generation else codes.ILLEGAL_GENERATION

    def check_commit(self, name: str, generation: int) -> int:
        """The fence of offsets in a transaction. The sentinel (generation -1, no member) passes in every state."""
        if generation < 0 and self.state == State.EMPTY:
            return codes.NONE
        return self.check(name, generation) if generation >= 0 or name else codes.NONE

    def remove(self, name: str) -> None:
        """A member is gone."""
        member = self.members.pop(name)
        self._forget(member, codes.UNKNOWN_MEMBER_ID)
        if self.state == State.PREPARING:
            self._try_complete()
        elif self.state != State.EMPTY:
            self._rebalance()

    # -- the coordinator comes and goes ----------------------------------------------------------------------------------

    def unload(self) -> None:
        """Its coordinator is one no more: what waits is sent away, what was not written is forgotten."""
        self._stop_timer()
        for timer in self.expected.values():
            timer.cancel()
        self.expected.clear()
        members, self.members = self.members, {}
        for member in members.values():
            self._forget(member, codes.NOT_COORDINATOR)
        stored = self._stored
        self.generation, self.leader = stored.generation, stored.leader
        self.members = {member.name: _copy(member) for member in stored.members}
        self.state = State.STABLE if self.members else State.EMPTY

    def load(self) -> None:
        """A coordinator has read it: each member's session begins anew."""
        for member in self.members.values():
            self._heard(member)

    # -- rebalances ------------------------------------------------------------------------------------------------------

    def _rebalance(self) -> None:
        if self.state == State.PREPARING:
            self._try_complete()
            return
        if self.state == State.COMPLETING:
            self._answer_syncs(codes.REBALANCE_IN_PROGRESS)
        initial = self.state == State.EMPTY and self._initial_s > 0
        self.state = State.PREPARING
        self._stop_timer()
        if initial:
            self._delaying = True
            self._timer = self._after(self._initial_s, self._delayed)
        else:
            self._timer = self._after(self._slowest_s(), self._complete)
            self._try_complete()

    def _delayed(self) -> None:
        self._delaying = False
        self._timer = self._after(self._slowest_s(), self._complete)
        self._try_complete()

    def _try_complete(self) -> None:
        if self.state != State.PREPARING or self._delaying or self.expected:
            return
        if all(member.join is not None for member in self.members.values()):
            self._complete()

    def _complete(self) -> None:
        """The join phase is over: whoever has not joined again is out."""
        self._stop_timer()
        for member in [member for member in self.members.values() if member.join is None]:
            self._forget(self.members.pop(member.name), codes.UNKNOWN_MEMBER_ID)
        self.generation += 1
        if not self.members:
            self.state, self.leader = State.EMPTY, ""
            self.empty_since_ms = self._seat.now_ms()
            self._stored = Stored(generation=self.generation)
            return
        self.state = State.COMPLETING
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        generation = self.generation
        self._timer = self._after(self._slowest_s(), lambda: self._expire_syncs(generation))
        for member in list(self.members.values()):
            join, member.join = member.join, None
            member.new = member.synced = False
            self._heard(member)
            if join is not None:
                join(JoinAnswer(generation=generation, member=member.name, leader=member.name == self.leader))

    def _assign(self) -> None:
        generation = self.generation
        claims = [
            Claim(member=member.name, topics=member.topics, owned=member.owned, generation=member.owned_generation)
            for member in self.members.values()
        ]
        shares = cooperative_sticky(claims, self._partitions_of)

        def apply() -> None:
            if self.state != State.COMPLETING or self.generation != generation:
                return
            self.state = State.STABLE
            for member in self.members.values():
                member.assignment = shares[member.name]
            self._stored = Stored(
                generation=generation, leader=self.leader, members=tuple(_copy(member) for member in self.members.values())
            )
            self._answer_syncs(codes.NONE)
            # Whoever has yet to sync is still waited for: `_expire_syncs` stays armed.

        def drop(code: int) -> None:
            if self.state == State.COMPLETING and self.generation == generation:
                lost = code == codes.NOT_LEADER_FOR_PARTITION
                self._answer_syncs(codes.NOT_COORDINATOR if lost else codes.COORDINATOR_NOT_AVAILABLE)
                if not lost:
                    self._rebalance()

        self._seat.submit(apply, drop)

    def _expire_syncs(self, generation: int) -> None:
        if self.generation != generation or self.state not in (State.COMPLETING, State.STABLE):
            return
        late = [member for member in self.members.values() if not member.synced]
        for member in late:
            self._forget(self.members.pop(member.name), codes.UNKNOWN_MEMBER_ID)
        if late:
            self._rebalance()

    def _answer_syncs(self, code: int) -> None:
        for member in list(self.members.values()):
            sync, member.sync = member.sync, None
            if sync is not None:
                self._heard(member)
                sync(SyncAnswer(code=code, partitions=NOBODY if code else member.assignment))

    # -- time ------------------------------------------------------------------------------------------------------------

    def _heard(self, member: Member) -> None:
        member.deadline_s = self._kernel.now_s + member.session_s
        self._watch(member)

    def _watch(self, member: Member) -> None:
        """One timer a member, set again when it comes too early: a heartbeat costs none."""
        if member.timer is not None and not member.timer.off:
            if member.timer_s <= member.deadline_s:
                return
            member.timer.cancel()
        member.timer_s = member.deadline_s
        member.timer = self._after(member.deadline_s - self._kernel.now_s, lambda: self._look_at(member))

    def _look_at(self, member: Member) -> None:
        if self.members.get(member.name) is not member:
            return
        if self._kernel.now_s < member.deadline_s - 1e-9:
            self._watch(member)
        elif member.new or (member.join is None and member.sync is None):
            self.remove(member.name)
        else:
            self._heard(member)

    def _forget(self, member: Member, code: int) -> None:
        if member.timer is not None:
            member.timer.cancel()
        join, sync = member.join, member.sync
        member.join = member.sync = None
        if join is not None:
            join(JoinAnswer(code=code))
        if sync is not None:
            sync(SyncAnswer(code=code))

    def _slowest_s(self) -> float:
        return max((member.rebalance_s for member in self.members.values()), default=0.0)

    def _stop_timer(self) -> None:
        self._delaying = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _after(self, delay_s: float, action: Callable[[], None]) -> Timer:
        return self._kernel.after(delay_s, action, self._seat.host)




def _copy(member: Member) -> Member:
    return Member(
        name=member.name,
        topics=member.topics,
        owned=member.owned,
        owned_generation=member.owned_generation,
        session_s=member.session_s,
        rebalance_s=member.rebalance_s,
        assignment=member.assignment,
        new=False,
        synced=True,
    )
