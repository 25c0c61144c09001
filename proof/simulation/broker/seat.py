"""Who leads a partition, who is in sync, and the writes that are on their way to the replicas.

A write counts once all replicas in sync have it; where there is one replica that is at once. When the leader is lost, some of the
writes under way survive and the rest do not; none of them had been acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from proof.simulation.broker import codes
from proof.simulation.broker.node import Node
from proof.simulation.broker.settings import Settings
from proof.simulation.kernel import Action, Host, Kernel
from proof.simulation.protocol import Partition

Drop = Callable[[int], None]


@dataclass(slots=True, kw_only=True)
class _Write:
    """`apply`: it is in the log. `drop`: it is not, or nobody knows; with the code. `keep`: it stays queued while too few
    replicas are in sync, though its sender has been told so."""

    ready_s: float
    apply: Action
    drop: Drop
    keep: bool
    told: bool = False


class Seat:
    """The leadership of one partition. `term`: counts leaders. `loaded_s`: from when its coordinator has read it."""

    def __init__(
        self,
        kernel: Kernel,
        nodes: dict[int, Node],
        partition: Partition,
        replicas: tuple[int, ...],
        min_insync: int,
        settings: Settings,
    ) -> None:
        self._kernel, self._nodes, self._settings = kernel, nodes, settings
        self.partition, self.replicas, self.min_insync = partition, replicas, min_insync
        self.in_sync = set(replicas)
        self.leader = -1
        self.term = 0
        self.loaded_s = 0.0
        self.on_lost: list[Action] = []
        self.on_loaded: list[Action] = []
        self.waiting: list[Action] = []
        self._queue: deque[_Write] = deque()
        self._armed = False
        self._last_leader = replicas[0]

    # -- questions -------------------------------------------------------------------------------------------------------

    @property
    def host(self) -> Host:
        """The machine of the leader, or of the last one."""
        return self._nodes[self._last_leader].host

    @property
    def writable(self) -> bool:
        """Whether enough replicas are in sync."""
        return len(self.in_sync) >= self.min_insync

    @property
    def well(self) -> bool:
        """Whether it has a leader that works."""
        return self.leader >= 0 and self._nodes[self.leader].well

    @property
    def coordinates(self) -> bool:
        """Whether its coordinator works and has read it."""
        return self.well and self._kernel.now_s >= self.loaded_s

    def now_ms(self) -> int:
        """The leader's clock."""
        return self._kernel.wall_ms(self.host)

    def coordinator_code(self, node: int) -> int:
        """What a coordinator's request is refused with, 0 if it is not."""
        if self.leader != node:
            return codes.NOT_COORDINATOR
        if self._kernel.now_s < self.loaded_s:
            return codes.COORDINATOR_LOAD_IN_PROGRESS
        return codes.NONE

    # -- writes ----------------------------------------------------------------------------------------------------------

    def submit(self, apply: Action, drop: Drop, *, keep: bool = False) -> None:
        """Write. Exactly one of the two is called, now or later; with `keep`, `apply` may follow `drop`."""
        if len(self.replicas) == 1:
            apply()
            return
        delay_s = self._kernel.random.uniform(*self._settings.replication_s)
        self._queue.append(_Write(ready_s=self._kernel.now_s + delay_s, apply=apply, drop=drop, keep=keep))
        self._arm()

    def when_well(self, action: Action) -> None:
        """Do it now, or when there is a leader that works."""
        if self.well:
            action()
        else:
            self.waiting.append(action)

    def pump(self) -> None:
        """Whatever has been replicated is written."""
        while self._queue and self._moves() and self._queue[0].ready_s <= self._kernel.now_s + 1e-9:
            self._queue.popleft().apply()
        self._arm()

    def _moves(self) -> bool:
        if self.leader < 0 or len(self.in_sync) < self.min_insync:
            return False
        for number in self.in_sync:  # a loop: asked at each write
            node = self._nodes[number]
            if not node.up or node.host.frozen:
                return False
        return True

    def _arm(self) -> None:
        if self._armed or not self._queue or not self._moves():
            return
        self._armed = True
        term = self.term

        def fire() -> None:
            if term == self.term:
                self._armed = False
                self.pump()

        self._kernel.after(self._queue[0].ready_s - self._kernel.now_s, fire, self.host)

    # -- the controller's part -------------------------------------------------------------------------------------------

    def node_out(self, number: int) -> None:
        """The node is given up: no longer in sync unless it is the last one, no longer leader."""
        if self.leader == number:
            self._lose()
        if len(self.in_sync) > 1:
            self.in_sync.discard(number)
        if self.leader < 0:
            self.elect()
        if not self.writable:
            self._complain()
        self.pump()

    def node_in(self, number: int) -> None:
        """The node has caught up."""
        self.in_sync.add(number)
        self.pump()

    def elect(self, wanted: int = -1, *, empty: bool = False) -> None:
        """The wanted one, else the first replica in sync that is there; nobody when there is none. `empty`: it has
        nothing to read yet."""
        able = [number for number in self.replicas if number in self.in_sync and self._may_lead(number)]
        if not able:
            return
        self.leader = self._last_leader = wanted if wanted in able else able[0]
        self.term += 1
        self._armed = False
        reads = bool(self.on_loaded) and not empty
        load_s = self._kernel.random.uniform(*self._settings.load_s) if reads else 0.0
        self.loaded_s = self._kernel.now_s + load_s
        term = self.term

        def loaded() -> None:
            if self.term == term and self.leader >= 0:
                for action in self.on_loaded:
                    action()

        if reads:
            self._kernel.after(load_s, loaded, self.host)
        self.release()

    def move(self, wanted: int) -> None:
        """To another replica, in an orderly way, if it is in sync."""
        if self.leader != wanted and wanted in self.in_sync and self._may_lead(wanted):
            if self.leader >= 0:
                self._lose()
            self.elect(wanted)

    def close(self) -> None:
        """The partition is deleted: who waits for it is told to look again."""
        self.leader = -1
        waiting, self.waiting = self.waiting, []
        queue, self._queue = self._queue, deque()
        for write in queue:
            if not write.told:
                write.drop(codes.UNKNOWN_TOPIC_OR_PART)
        for action in waiting:
            action()

    def release(self) -> None:
        """The leader works (again)."""
        waiting, self.waiting = self.waiting, []
        for action in waiting:
            self.when_well(action)
        self.pump()

    def _may_lead(self, number: int) -> bool:
        node = self._nodes[number]
        return node.up and not node.fenced

    def _lose(self) -> None:
        self.leader = -1
        self._armed = False
        queue, self._queue = self._queue, deque()
        survive = self._kernel.random.randint(0, len(queue)) if queue else 0
        for number, write in enumerate(queue):
            if number < survive:
                write.apply()
            elif not write.told:
                write.drop(codes.NOT_LEADER_FOR_PARTITION)
        for action in self.on_lost:
            action()

    def _complain(self) -> None:
        queue, self._queue = self._queue, deque()
        for write in queue:
            if write.keep:
                self._queue.append(write)
            if not write.told:
                write.told = True
                write.drop(codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
