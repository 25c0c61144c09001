"""The group coordinators of all nodes: members by group, and committed offsets, those of open transactions apart."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from proof.simulation.broker import codes
from proof.simulation.broker.group import Group, State
from proof.simulation.broker.node import Reply
from proof.simulation.broker.seat import Seat
from proof.simulation.broker.settings import Settings
from proof.simulation.kernel import Kernel
from proof.simulation.protocol import (
    Answer,
    DescribeGroup,
    GroupAnswer,
    GroupHeartbeat,
    JoinAnswer,
    JoinGroup,
    LeaveGroup,
    OffsetFetch,
    OffsetsAnswer,
    Partition,
    SyncAnswer,
    SyncGroup,
    TxnOffsetCommit,
)

OFFSETS_TOPIC: Final = "__consumer_offsets"
Verify = Callable[[int, int, Partition], int]


class _Offsets:
    """What one partition of the offsets topic holds of transactions. `epochs`: of each producer id, the highest seen; `open`:
    what each has written in the transaction that stands open here."""

    __slots__ = ("epochs", "open")

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: dict[int, dict[tuple[str, Partition], int]] = {}


class Groups:
    """`seats`: the partitions of the offsets topic. `verify`: asks the transaction coordinator. `partitions_of`: of a topic, 0
    for one that does not exist."""

    def __init__(
        self, kernel: Kernel, settings: Settings, seats: list[Seat], partitions_of: Callable[[str], int], verify: Verify
    ) -> None:
        self._kernel, self._settings, self._seats = kernel, settings, seats
        self._partitions_of, self._verify = partitions_of, verify
        self.groups: dict[str, Group] = {}
        self._offsets = [_Offsets() for _ in seats]
        self._numbers: dict[str, int] = {}  # group -> its partition: asked at each heartbeat
        self._last_member = 0
        for seat in seats:
            seat.on_lost.append(lambda seat=seat: self._each(seat, Group.unload))  # type: ignore[misc]
            seat.on_loaded.append(lambda seat=seat: self._each(seat, Group.load))  # type: ignore[misc]
        kernel.after(settings.group_sweep_s, self._sweep)

    def seat(self, group: str) -> Seat:
        """The partition that keeps the group."""
        return self._seats[self._number(group)]

    def offsets_partition(self, group: str) -> Partition:
        """Its name."""
        return (OFFSETS_TOPIC, self._number(group))

    # -- membership ------------------------------------------------------------------------------------------------------

    def join(self, node: int, request: JoinGroup, reply: Reply) -> None:
        """JoinGroup."""
        code = self.seat(request.group).coordinator_code(node)
        if not code and not self._settings.min_session_s <= request.session_timeout_s <= self._settings.max_session_s:
            code = codes.INVALID_SESSION_TIMEOUT
        group = self.groups.get(request.group)
        if not code and group is None and request.member:
            code = codes.UNKNOWN_MEMBER_ID
        if code:
            reply(JoinAnswer(code=code))
            return
        group = group or self._make(request.group)
        if request.member:
            group.join(request, reply)
            return
        name = self._new_name(request.client)
        if not self._settings.member_id_required:
            group.add(name, request, reply)
            return
        group.expect(name, request.session_timeout_s)
        if self._settings.ghost_chance and self._kernel.random.random() < self._settings.ghost_chance:
            group.expect(self._new_name(request.client), request.session_timeout_s)
        reply(JoinAnswer(code=codes.MEMBER_ID_REQUIRED, member=name))

    def sync(self, node: int, request: SyncGroup, reply: Reply) -> None:
        """SyncGroup."""
        code = self.seat(request.group).coordinator_code(node)
        group = self.groups.get(request.group)
        if code or group is None:
            reply(SyncAnswer(code=code or codes.UNKNOWN_MEMBER_ID))
        else:
            group.sync(request.member, request.generation, reply)

    def heartbeat(self, node: int, request: GroupHeartbeat, reply: Reply) -> None:
        """Heartbeat."""
        code = self.seat(request.group).coordinator_code(node)
        group = self.groups.get(request.group)
        if not code:
            code = group.heartbeat(request.member, request.generation) if group else codes.UNKNOWN_MEMBER_ID
        reply(Answer(code=code))

    def leave(self, node: int, request: LeaveGroup, reply: Reply) -> None:
        """LeaveGroup."""
        code = self.seat(request.group).coordinator_code(node)
        group = self.groups.get(request.group)
        if not code:
            code = group.leave(request.member) if group else codes.UNKNOWN_MEMBER_ID
        reply(Answer(code=code))

    def describe(self, node: int, request: DescribeGroup, reply: Reply) -> None:
        """DescribeGroups."""
        code = self.seat(request.group).coordinator_code(node)
        group = self.groups.get(request.group)
        if code or group is None:
            reply(GroupAnswer(code=code))
            return
        stable = group.state == State.STABLE
        members = {name: member.assignment if stable else frozenset() for name, member in group.members.items()}
        reply(GroupAnswer(state=group.state, generation=group.generation, members=members))

    def add_ghost(self, name: str, session_s: float) -> None:
        """Give out a member id that nobody will join with: the rebalance under way, or the next, waits for it."""
        (self.groups.get(name) or self._make(name)).expect(self._new_name("ghost"), session_s)

    def delete(self, name: str) -> int:
        """DeleteGroups: its generation begins anew. NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        group = self.groups.get(name)
        if group is None:
            return codes.GROUP_ID_NOT_FOUND
        if group.state != State.EMPTY:
            return codes.NON_EMPTY_GROUP
        del self.groups[name]
        for written in self._offsets[self._number(name)].open.values():
            for place in [place for place in written if place[0] == name]:
                del written[place]
        return codes.NONE

    # -- offsets ---------------------------------------------------------------------------------------------------------

    def commit(self, node: int, request: TxnOffsetCommit, reply: Reply) -> None:
        """TxnOffsetCommit: counts when the transaction's marker comes."""
        seat, kept = self.seat(request.group), self._offsets[self._number(request.group)]
        code = seat.coordinator_code(node) or self._refusal(request, seat, kept)
        if code:
            reply(Answer(code=code))
            return

        def apply() -> None:
            kept.epochs[request.pid] = request.epoch
            written = kept.open.setdefault(request.pid, {})
            for partition, offset in request.offsets.items():
                written[request.group, partition] = offset
            if request.group not in self.groups:
                self._make(request.group)
            reply(Answer())

        def drop(code: int) -> None:
            lost = code == codes.NOT_LEADER_FOR_PARTITION
            reply(Answer(code=codes.NOT_COORDINATOR if lost else codes.COORDINATOR_NOT_AVAILABLE))

        seat.submit(apply, drop)

    def mark(self, number: int, pid: int, epoch: int, commit: bool) -> None:
        """A marker in a partition of the offsets topic."""
        kept = self._offsets[number]
        if epoch < kept.epochs.get(pid, -1):
            return
        kept.epochs[pid] = epoch
        written = kept.open.pop(pid, {})
        if commit:
            for (name, partition), offset in written.items():
                group = self.groups.get(name) or self._make(name)
                group.offsets[partition] = offset
                group.committed_ms[partition] = self._seats[number].now_ms()

    def fetch(self, node: int, request: OffsetFetch, reply: Reply) -> None:
        """OffsetFetch, of stable offsets."""
        code = self.seat(request.group).coordinator_code(node)
        if not code:
            wanted = {(request.group, partition) for partition in request.partitions}
            if any(not wanted.isdisjoint(written) for written in self._offsets[self._number(request.group)].open.values()):
                code = codes.UNSTABLE_OFFSET_COMMIT
        group = self.groups.get(request.group)
        if code or group is None:
            reply(OffsetsAnswer(code=code))
            return
        known = group.offsets
        reply(OffsetsAnswer(offsets={partition: known[partition] for partition in request.partitions if partition in known}))

    def forget_topic(self, topic: str) -> None:
        """The topic was deleted."""
        for group in self.groups.values():
            for partition in [partition for partition in group.offsets if partition[0] == topic]:
                del group.offsets[partition], group.committed_ms[partition]

    def _refusal(self, request: TxnOffsetCommit, seat: Seat, kept: _Offsets) -> int:
        if not seat.writable:
            return codes.COORDINATOR_NOT_AVAILABLE
        if any(number >= self._partitions_of(topic) for topic, number in request.offsets):
            return codes.UNKNOWN_TOPIC_OR_PART
        highest = kept.epochs.get(request.pid, -1)
        if request.pid not in kept.open or highest != request.epoch:
            code = self._verify(request.pid, request.epoch, self.offsets_partition(request.group))
            if code:
                return codes.COORDINATOR_NOT_AVAILABLE if code == codes.NOT_ENOUGH_REPLICAS else code
        code = self._fence(request)
        if code:
            return code
        return codes.INVALID_PRODUCER_EPOCH if request.epoch < highest else codes.NONE

    def _fence(self, request: TxnOffsetCommit) -> int:
        if self._settings.fenceless:
            return codes.NONE
        group = self.groups.get(request.group)
        if group is not None:
            return group.check_commit(request.member, request.generation)
        return codes.ILLEGAL_GENERATION if request.generation >= 0 else codes.NONE

    # -- time ------------------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Old offsets of empty groups go, then empty groups without offsets."""
        for group in list(self.groups.values()):
            seat = self.seat(group.name)
            if group.state != State.EMPTY or group.expected or not seat.coordinates:
                continue
            before_ms = seat.now_ms() - int(self._settings.offsets_retention_s * 1000)
            writings = self._offsets[self._number(group.name)].open.values()
            held = {partition for written in writings for name, partition in written if name == group.name}
            if group.empty_since_ms <= before_ms:
                for partition in [one for one, at_ms in group.committed_ms.items() if at_ms <= before_ms and one not in held]:
                    del group.offsets[partition], group.committed_ms[partition]
            if not group.offsets and not held:
                del self.groups[group.name]
        self._kernel.after(self._settings.group_sweep_s, self._sweep)

    def _make(self, name: str) -> Group:
        group = Group(self._kernel, name, self.seat(name), self._partitions_of, self._settings.initial_rebalance_s)
        self.groups[name] = group
        return group

    def _each(self, seat: Seat, act: Callable[[Group], None]) -> None:
        for group in list(self.groups.values()):
            if self.seat(group.name) is seat:
                act(group)

    def _number(self, group: str) -> int:
        number = self._numbers.get(group)
        if number is None:
            number = self._numbers[group] = zlib.crc32(group.encode()) % len(self._seats)
        return number

    def _new_name(self, client: str) -> str:
        self._last_member += 1
        return f"{client or 'member'}-{self._last_member}"
