"""A simulated world: brokers, schedulers, workers and users in virtual time, what goes wrong in it, and how it is judged.

Begin -> processes start, jobs are published -> faults strike and users act for so many hours -> everything is healed -> the world
runs until all that was due can have ended -> its history is judged. The same setup always gives the same history.
"""

from __future__ import annotations

import gc
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from types import SimpleNamespace
from typing import Any, Final

from dueline.scheduler.kafka.config import KafkaConfig
from dueline.schemas.codec import decode_as
from dueline.schemas.ledger import POSITIONS_KEY, Positions
from dueline.schemas.topics import Cleanup, Namespace, catalogue
from proof.history.acts import Life as LifeNote
from proof.history.acts import Noted, Role, call_ms
from proof.history.history import History
from proof.simulation.archive import Archive
from proof.simulation.broker.cluster import Cluster
from proof.simulation.broker.settings import Settings
from proof.simulation.client.clients import constructors
from proof.simulation.faults import Faults, Stage
from proof.simulation.handlers import CONDUCTS, ORDERS, Handlers
from proof.simulation.hang import hanging
from proof.simulation.judge import Judgement, history_of, judged
from proof.simulation.kernel import Kernel
from proof.simulation.network import Network
from proof.simulation.pace import PACE
from proof.simulation.process import Diary, Life, Process
from proof.simulation.programs import TOMBSTONES_S, Programs
from proof.simulation.remembered import remembering
from proof.simulation.setup import Setup, Sizes, Times
from proof.simulation.substitution import KAFKA, Names, substituted, virtual
from proof.simulation.user import User
from proof.simulation.wires import Wires
from proof.simulation.workload import QUEUE, Workload

CLEAN_S: Final = 300.0
"""Virtual seconds between two runs of the brokers' log cleaner, which here takes the active segment as well."""
COLLECT_S: Final = 3600.0
"""Virtual seconds between two collections of garbage: at fixed moments, as a client that nobody holds closes its connections."""
SKEW_MS: Final = 10
"""Between clocks that no fault moved: what rounding leaves. What a fault moved, the checker reads from the fault."""
LOGGER: Final = logging.getLogger("dueline")

Watcher = Callable[[float, str, logging.LogRecord], None]
"""Told of log lines: virtual seconds, process, the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sabotage:
    """What is taken out of the product, for a control: `names` as in `substitution`, made anew for each world."""

    rule: str
    names: Callable[[], Names] = dict
    brokers: dict[str, Any] = field(default_factory=dict)
    self_test: bool = True


HONEST: Final = Sabotage(rule="")


class World:
    """One world, to be run once. `watch`: told of the processes' log lines from `level` on."""

    def __init__(
        self, setup: Setup, *, sabotage: Sabotage = HONEST, watch: Watcher | None = None, level: int = logging.INFO
    ) -> None:
        self.setup, self.sizes = setup, Sizes.of(setup.seed)
        self.namespace = Namespace()
        self.kernel = Kernel(setup.seed)
        sizes, brokers = self.sizes, range(1, self.sizes.brokers + 1)
        settings = Settings(min_insync=min(2, sizes.brokers), min_session_s=sizes.min_session_s)
        self.cluster = Cluster(self.kernel, sizes.brokers, replaced(settings, **sabotage.brokers))
        self.network = Network(self.kernel, self.cluster)
        self.cluster.controller.on_death.append(self.network.node_died)
        self.config = KafkaConfig(bootstrap_servers=",".join(f"broker-{number}:9092" for number in brokers))
        self.diary = Diary()
        self.handlers = Handlers(self.kernel)
        self.user = User(self.kernel, self.config)
        self.processes: dict[str, Process] = {}
        self.archive = Archive(self.cluster)
        self._sabotage, self._watch, self._level = sabotage, watch, level
        self._programs = Programs(
            self.kernel, self.config, self.namespace, sizes, self.handlers.functions(), self_test=sabotage.self_test
        )
        self.topics = self._create_topics()
        for name, times in sizes.schedulers.items():
            self._scheduler(name, times)
        for name, times in sizes.workers.items():
            self._add(name, Role.WORKER, self._programs.worker(times)).call_ms = call_ms(times.transaction_s)
        self.faults = Faults(
            Stage(
                kernel=self.kernel, cluster=self.cluster, wires=Wires(self.network, list(brokers), setup.seed),
                processes=self.processes, user=self.user, namespace=self.namespace, queue=QUEUE,
                scheduler=self._scheduler, expire=self._expire,
            )
        )  # fmt: skip

    def run(self) -> Judgement:
        """From its beginning to its judgement."""
        began_s = time.process_time()
        names = virtual(self.kernel, self._uncaught) | self._clients() | PACE | remembering() | self._sabotage.names()
        with substituted(names), self._listening(), _no_garbage_by_chance():
            try:
                self._live()
            finally:
                self.kernel.close()
        history = self._history()
        cpu_s = time.process_time() - began_s
        return judged(self.setup, history, self.diary.findings, cpu_s=cpu_s, steps=self.kernel.steps)

    # -- its course --------------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        setup, kernel = self.setup, self.kernel
        workload = Workload(setup.seed, self.namespace, epoch_ms=kernel.epoch_ms, until_s=setup.heal_s, load=setup.load)
        for number, process in enumerate(self.processes.values()):
            kernel.after(1.0 + 0.3 * number, process.start)
        kernel.after(CLEAN_S, self._clean)
        self.user.begin(workload.acts())
        self.faults.begin(setup.faults())
        self._go_on(setup.heal_s)
        self.faults.heal()
        self._go_on(setup.end_s)

    def _go_on(self, until_s: float) -> None:
        while self.kernel.now_s + COLLECT_S < until_s:
            self.kernel.run(self.kernel.now_s + COLLECT_S)
            gc.collect()
        self.kernel.run(until_s)

    def _history(self) -> History:
        now_ms = int(self.kernel.true_ms())
        alive = [one.note(one.life, -1, "") for one in self.processes.values() if one.life is not None]
        noted = Noted(
            published=(*self.user.published, *self.user.unanswered()),
            effects=tuple(self.handlers.effects),
            faults=tuple(self.faults.noted),
            lives=(*self.diary.lives, *alive, *self._brokers()),
            conducts=dict(CONDUCTS),
        )
        assert now_ms >= self.kernel.epoch_ms + int(self.setup.end_s * 1000)
        return history_of(
            self.setup, self.sizes, self.namespace, noted, self.archive, self.topics,
            epoch_ms=self.kernel.epoch_ms, skew_ms=SKEW_MS,
        )  # fmt: skip

    def _brokers(self) -> list[LifeNote]:
        """One life each: what happens to one of them is a fault that names it, by its number."""
        common = {"role": Role.BROKER, "began_ms": self.kernel.epoch_ms, "ended_ms": -1, "how": ""}
        return [LifeNote(process=str(node), pid=node, **common) for node in self.cluster.nodes]  # type: ignore[arg-type]

    # -- its parts -----------------------------------------------------------------------------------------------------------

    def _create_topics(self) -> list[str]:
        specs = catalogue(
            self.namespace, [QUEUE], partitions=self.sizes.partitions, replication_factor=self.sizes.brokers,
            min_insync_replicas=min(2, self.sizes.brokers), development=True,
        )  # fmt: skip
        for spec in specs:
            shorter = {"delete.retention.ms": str(round(TOMBSTONES_S * 1000))} if spec.name == self.namespace.jobs else {}
            self.cluster.create_topic(spec.name, spec.partitions, {**spec.config, **shorter})
        self.compacted = [spec.name for spec in specs if spec.cleanup is Cleanup.COMPACT]
        self.cluster.create_topic(ORDERS, 2, {"message.timestamp.type": "LogAppendTime"})
        return [*(spec.name for spec in specs), ORDERS]

    def _scheduler(self, name: str, times: Times | None = None) -> Process:
        return self._add(name, Role.SCHEDULER, self._programs.scheduler(times or Times()))

    def _add(self, name: str, role: Role, main: Callable[[Life], int]) -> Process:
        process = self.processes[name] = Process(self.kernel, name, role, main, self.diary)
        return process

    def _expire(self, topic: str) -> None:
        for number in range(self.cluster.storage.partitions_of(topic)):
            self.archive.expire((topic, number))

    def _clean(self) -> None:
        for topic in self.compacted:
            if topic != self.namespace.jobs:
                self.archive.compact((topic, 0))
            elif self.archive.compact((topic, 0), read_to=self._jobs_read()):
                self.faults.note("compaction", topic)  # the checker must not look for what nobody could read
        self.kernel.after(CLEAN_S, self._clean)

    def _jobs_read(self) -> int:
        """How far leaders have decided on `jobs`, by the ledger."""
        for entry in reversed(self.archive.records([self.namespace.runs])[self.namespace.runs, 0]):
            if entry.key == POSITIONS_KEY.encode() and entry.value is not None:
                record = decode_as(Positions, entry.value)
                return next((one.offset for one in record.positions if one.topic == self.namespace.jobs), 0)
        return 0

    def _clients(self) -> Names:
        numbers = itertools.count()
        ids = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(numbers):08x}"))
        return {
            **{(f"{KAFKA}.client", name): made for name, made in constructors(self.kernel, self.network).items()},
            (f"{KAFKA}.client", "Producer"): hanging(self.kernel, self.network),
            (f"{KAFKA}.selftest", "uuid"): ids,
            (f"{KAFKA}.transaction", "reach"): self._reach,
            (f"{KAFKA}.writers", "reach"): self._reach,
        }

    def _reach(self, name: str) -> None:
        host = self.kernel.current.host
        if isinstance(host, Life) and host.points:
            host.process.reach(name)

    # -- what its processes tell ---------------------------------------------------------------------------------------------

    def _uncaught(self, thread: object, error: BaseException) -> None:
        host = self.kernel.current.host
        if isinstance(host, Life):
            host.process.thread_broke(thread, error)
        else:
            self.diary.findings.append(f"{host.name}: {thread} ended with {error!r}")

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Log lines go nowhere but to the watcher; one with a traceback is a finding."""
        ear = _Ear(self._hear)
        before = (LOGGER.level, LOGGER.propagate)
        LOGGER.addHandler(ear)
        LOGGER.propagate = False
        LOGGER.setLevel(self._level if self._watch is not None else logging.WARNING)
        try:
            yield
        finally:
            LOGGER.removeHandler(ear)
            LOGGER.level, LOGGER.propagate = before
            LOGGER.setLevel(before[0])

    def _hear(self, record: logging.LogRecord) -> None:
        who = self.kernel.current.host.name if self.kernel.in_task else "hub"
        if getattr(record, "action", "").startswith("quarantine") and not self.kernel.closed:
            self.diary.findings.append(f"{who}: {record.getMessage()}")
        if record.exc_info and not self.kernel.closed:
            self.diary.findings.append(f"{who}: {record.getMessage()}: {record.exc_info[1]!r}")
        if self._watch is not None:
            self._watch(self.kernel.now_s, who, record)


class _Ear(logging.Handler):
    def __init__(self, hear: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        """Pass it on."""
        self._hear(record)


@contextmanager
def _no_garbage_by_chance() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()  # what was there before need not be looked at
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
