"""Carries a plan out: each fault strikes at its time, ends at its time or when all is healed, and is noted for the checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dueline.schemas.topics import Namespace
from proof.history.acts import Fault, Role
from proof.simulation.broker.cluster import Cluster
from proof.simulation.broker.groups import OFFSETS_TOPIC
from proof.simulation.kernel import Action, Kernel
from proof.simulation.plan import FORGETS, FaultKind, Plan, Planned
from proof.simulation.process import Action as PointAction
from proof.simulation.process import Life, Point, Process
from proof.simulation.user import User
from proof.simulation.wires import LINKS, MEDDLING, Wires

EMPTY_S: Final = 12.0
"""Until a group whose members were all stopped is empty: longer than any session of a scheduler here."""

OPERATOR_S: Final = 30.0
"""Until an operator has noticed what a broker forgot."""

K = FaultKind


@dataclass(slots=True, kw_only=True)
class Stage:
    """What faults act on. `scheduler`: one more of them, not started."""

    kernel: Kernel
    cluster: Cluster
    wires: Wires
    processes: dict[str, Process]
    user: User
    namespace: Namespace
    queue: str
    scheduler: Callable[[str], Process]
    expire: Callable[[str], None]


@dataclass(slots=True, eq=False)
class _Active:
    fault: Planned
    began_ms: int
    undo: Action
    life: Life | None  # of the process that it is to strike


class Faults:
    """`noted`: the faults that struck, and those that did not."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.noted: list[Fault] = []
        self._active: list[_Active] = []
        self._healed = False
        self._extra = 0

    def begin(self, plan: Plan) -> None:
        """Strike as planned."""
        kernel = self._stage.kernel
        for fault in plan:
            kernel.after(fault.at_s - kernel.now_s, lambda fault=fault: self._strike(fault))  # type: ignore[misc]

    def heal(self) -> None:
        """End everything, strike no more, and start whatever is down."""
        self._healed = True
        for active in list(self._active):
            self._end(active)
        for node in self._stage.cluster.nodes:
            self._stage.cluster.start(node)
        for process in self._stage.processes.values():
            if process.life is not None:
                process.life.points.clear()
                self._stage.kernel.thaw(process.life)
                self._stage.kernel.unstick(process.life)
            if not process.name.startswith("x"):
                process.start()

    def note(self, kind: str, target: str) -> None:
        """Something that was not planned, and that a checker must know of."""
        now_ms = self._now_ms()
        self.noted.append(Fault(kind=kind, target=target, began_ms=now_ms, ended_ms=now_ms))

    # -- from the beginning of a fault to its end --------------------------------------------------------------------------

    def _strike(self, fault: Planned) -> None:
        if self._healed:
            return
        process = self._stage.processes.get(fault.target)
        life = process.life if process is not None else None
        undo = self._act(fault)
        if undo is None:
            return
        active = _Active(fault, self._now_ms(), undo, life)
        self._active.append(active)
        self._stage.kernel.after(fault.for_s, lambda: self._end(active))

    def _end(self, active: _Active) -> None:
        if active not in self._active:
            return
        self._active.remove(active)
        struck = _struck(active)
        active.undo()
        fault = active.fault
        words = (fault.word, fault.act, f"{fault.value:g}" if fault.value else "")
        self.noted.append(
            Fault(
                kind=fault.kind.value,
                target=fault.target,
                began_ms=active.began_ms,
                ended_ms=self._now_ms() + self._lasts_ms(fault),
                shift_ms=self._shift_ms(fault),
                detail=" ".join(word for word in words if word),
                struck=struck,
            )
        )

    def _act(self, fault: Planned) -> Action | None:
        """Do it; what undoes it, or None when it could not strike."""
        if fault.kind in LINKS or fault.kind in MEDDLING:
            self._stage.wires.begin(fault)
            return lambda: self._stage.wires.end(fault)
        if fault.target in self._stage.processes:
            return self._act_on_process(fault, self._stage.processes[fault.target])
        if fault.kind.value.startswith("broker"):
            return self._act_on_broker(fault, int(fault.target))
        return self._act_on_cluster(fault)

    # -- processes ---------------------------------------------------------------------------------------------------------

    def _act_on_process(self, fault: Planned, process: Process) -> Action | None:
        life = process.life
        if life is None:
            return None
        match fault.kind:
            case K.KILL:
                process.kill()
                return lambda: self._start(process)
            case K.TERM:
                process.stop()
                return lambda: self._start(process)
            case K.FREEZE:
                process.freeze(fault.for_s)
                return lambda: self._stage.kernel.thaw(life)
            case K.STICK:
                process.stick(fault.for_s)
                return lambda: self._stage.kernel.unstick(life)
            case K.HANG:
                life.hangs = True
                return lambda: self._let_go(life)
            case K.FAILPOINT:
                act, times = PointAction(fault.act), max(1, round(fault.value))
                life.points[fault.word] = Point(action=act, left=times, for_s=fault.for_s)
                return lambda: self._disarm(process, fault.word)
            case K.CLOCK_STEP:
                process.set_clock(skew_ms=fault.value)
            case K.CLOCK_DRIFT:
                process.set_clock(skew_ms=process.skew_ms, drift=fault.value)
            case _:
                raise ValueError(f"{fault.kind} does not strike a process")
        return lambda: process.set_clock(skew_ms=0.0)

    def _start(self, process: Process) -> None:
        """Once what was asked to stop has stopped."""
        process.wanted = True
        if process.life is None:
            process.start()

    def _disarm(self, process: Process, word: str) -> None:
        if process.life is not None:
            process.life.points.pop(word, None)

    def _let_go(self, life: Life) -> None:
        """It never came to hang; one that hangs is left to its watchdog."""
        life.hangs = False

    # -- brokers -----------------------------------------------------------------------------------------------------------

    def _act_on_broker(self, fault: Planned, node: int) -> Action | None:
        cluster = self._stage.cluster
        match fault.kind:
            case K.BROKER_KILL:
                if not cluster.up(node):
                    return None
                cluster.kill(node)
                cluster.transactions.forgets = fault.act == FORGETS
                return lambda: self._start_broker(node)
            case K.BROKER_FREEZE:
                cluster.freeze(node)
                return lambda: cluster.thaw(node)
            case K.BROKER_CLOCK_STEP:
                cluster.set_clock(node, skew_ms=fault.value)
            case K.BROKER_CLOCK_DRIFT:
                cluster.set_clock(node, skew_ms=0.0, drift=fault.value)
            case _:
                raise ValueError(f"{fault.kind} does not strike a broker")
        return lambda: cluster.set_clock(node, skew_ms=0.0)

    def _start_broker(self, node: int) -> None:
        cluster, kernel = self._stage.cluster, self._stage.kernel
        cluster.start(node)
        kernel.after(cluster.settings.transaction_sweep_s * 2, lambda: setattr(cluster.transactions, "forgets", False))
        kernel.after(cluster.settings.transaction_sweep_s * 2 + OPERATOR_S, self._end_forgotten)

    def _end_forgotten(self) -> None:
        """What is of users, or stands in their topics, as an operator must, else readers stand still for ever (docs/kafka.md)."""
        cluster, prefix = self._stage.cluster, f"{self._stage.namespace.name}."
        ours = {entry.pid for name, entry in cluster.transactions.entries.items() if name.startswith(prefix)}
        for partition, pid, epoch in list(cluster.transactions.forgotten):
            seat = cluster.controller.seats.get(partition)
            own = pid in ours and (partition[0] == OFFSETS_TOPIC or partition[0].startswith(prefix))
            if own or seat is None or not seat.well:
                continue  # dueline's own are dueline's to end; what cannot be written now is ended after the next start
            cluster.mark(partition, pid, epoch, False)
            cluster.transactions.forgotten.remove((partition, pid, epoch))

    # -- the cluster ---------------------------------------------------------------------------------------------------------

    def _act_on_cluster(self, fault: Planned) -> Action | None:
        stage = self._stage
        groups = (stage.namespace.scheduler_group, stage.namespace.worker_group(stage.queue))
        match fault.kind:
            case K.COORDINATOR_MOVE if fault.word == "leader":
                for name in stage.namespace.leader_ids:
                    self._move(name, transactional=True)
            case K.COORDINATOR_MOVE:
                self._move(groups[fault.word == "workers"], transactional=False)
            case K.OFFSETS_EXPIRED:
                for name in groups:
                    group = stage.cluster.groups.groups.get(name)
                    if group is not None:
                        group.offsets.clear()
                        group.committed_ms.clear()
            case K.RECORDS_EXPIRED:
                stage.expire(f"{stage.namespace.name}.{fault.word}")
            case K.OPEN_TRANSACTION:
                stage.user.hold_open(f"{stage.namespace.name}.{fault.word}", fault.for_s)
            case K.GROUP_DELETED:
                return self._delete_group(groups[0])
            case K.STORM:
                return self._storm(round(fault.value))
            case K.ABSENCE:
                return self._stop_schedulers()
            case _:
                raise ValueError(f"{fault.kind} does not strike the cluster")
        return _nothing

    def _move(self, key: str, *, transactional: bool) -> None:
        cluster = self._stage.cluster
        after = cluster.coordinator(key, transactional=transactional) % len(cluster.nodes) + 1
        cluster.move_coordinator(key, transactional=transactional, node=after)

    def _delete_group(self, group: str) -> Action:
        restart = self._stop_schedulers()

        def delete() -> None:
            self._stage.cluster.delete_group(group)

        self._stage.kernel.after(EMPTY_S, delete)
        return restart

    def _stop_schedulers(self) -> Action:
        schedulers = [one for one in self._stage.processes.values() if one.role is Role.SCHEDULER]
        for process in schedulers:
            process.kill()

        def restart() -> None:
            for process in schedulers:
                if not process.name.startswith("x"):
                    self._start(process)

        return restart

    def _storm(self, count: int) -> Action:
        crowd = []
        for _ in range(count):
            self._extra += 1
            process = self._stage.scheduler(f"x{self._extra}")
            process.start()
            crowd.append(process)

        def over() -> None:
            for process in crowd:
                process.stop()

        return over

    def _lasts_ms(self, fault: Planned) -> int:
        """How long what began in the fault's time may go on after it: a request that is held, a process that stands or hangs."""
        if fault.kind in MEDDLING:
            return round(fault.value * 1000)
        stands = fault.kind is K.FAILPOINT and fault.act != PointAction.KILL and not self._healed
        return round(fault.for_s * 1000) if fault.kind is K.HANG or stands else 0

    # -- figures ---------------------------------------------------------------------------------------------------------------

    def _shift_ms(self, fault: Planned) -> int:
        if fault.kind in (K.CLOCK_STEP, K.BROKER_CLOCK_STEP):
            return round(abs(fault.value))
        if fault.kind in (K.CLOCK_DRIFT, K.BROKER_CLOCK_DRIFT):
            return round(abs(fault.value) * fault.for_s)
        return 0

    def _now_ms(self) -> int:
        return int(self._stage.kernel.true_ms())


def _struck(active: _Active) -> bool:
    """Not if its failpoint was never reached, or no transaction call came that would have hung."""
    fault, life = active.fault, active.life
    if life is not None and fault.kind is K.FAILPOINT:
        return fault.word not in life.points
    return life is None or fault.kind is not K.HANG or not life.hangs


def _nothing() -> None:
    """An instant has no end."""
