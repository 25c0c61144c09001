"""The programs of the simulated processes: what `dueline scheduler` and `dueline worker` do once their options are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dueline.scheduler.cli.startup import when_reachable
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.leader import Scheduler, SchedulerSettings
from dueline.schemas.topics import Namespace
from dueline.workers.context import Context
from dueline.workers.process import WorkerProcess
from dueline.workers.registry import Registry
from dueline.workers.settings import WorkerSettings
from proof.simulation.kernel import Kernel
from proof.simulation.pace import HEARTBEAT_S, IDLE_WAIT_S
from proof.simulation.process import Life, SimClock
from proof.simulation.setup import Sizes, Times
from proof.simulation.workload import QUEUE

SLOTS: Final = 4
TOMBSTONES_S: Final = 600.0
"""How long a deletion stays readable in `jobs`; an hour is a long time here."""

Functions = Mapping[str, Callable[[Context], object]]


class Programs:
    """`config`: where the simulated cluster is. `self_test`: whether schedulers try the fence at their start (L9)."""

    def __init__(
        self, kernel: Kernel, config: KafkaConfig, namespace: Namespace, sizes: Sizes, functions: Functions, *, self_test: bool
    ) -> None:
        self._kernel, self._config, self._namespace, self._sizes = kernel, config, namespace, sizes
        self._functions = functions
        self._self_test = self_test

    def scheduler(self, times: Times) -> Callable[[Life], int]:
        """With these time-outs."""

        def main(life: Life) -> int:
            settings = SchedulerSettings(
                process=f"{life.name}:{life.pid}",
                session_timeout_s=times.session_s or None,
                worker_timeout_s=self._sizes.worker_timeout_s,
                fresh_heartbeat_s=3 * HEARTBEAT_S,
                idle_wait_s=IDLE_WAIT_S,
                transaction_timeout_s=times.transaction_s,
                tombstone_retention_s=TOMBSTONES_S,
            )
            cluster = self._cluster(life)
            stop: Any = life.stop
            clock, namespace = SimClock(self._kernel, life), self._namespace
            try:
                if self._self_test:
                    control = (namespace.control, 0)
                    when_reachable(stop, lambda: cluster.check_fence(prefix=namespace.name, partition=control))
                return Scheduler(cluster, clock, namespace, settings, life.new_id).run(stop)
            finally:
                cluster.close()

        return main

    def worker(self, times: Times) -> Callable[[Life], int]:
        """With these time-outs. Each life has an id of its own, and maybe another home partition, as with `host-pid`."""

        def main(life: Life) -> int:
            settings = WorkerSettings(
                queue=QUEUE,
                namespace=self._namespace,
                worker=f"{life.name}-{life.pid}",
                slots=SLOTS,
                prefetch=life.pid % 2,
                heartbeat_s=HEARTBEAT_S,
                worker_timeout_s=self._sizes.worker_timeout_s,
                drain_timeout_s=15.0,
                transaction_timeout_s=times.transaction_s,
            )
            cluster = self._cluster(life)
            stop: Any = life.stop
            try:
                registry = Registry.of(self._functions)
                WorkerProcess(cluster, SimClock(self._kernel, life), registry, settings, new_id=life.new_id).run(stop)
            finally:
                cluster.close()
            return 0

        return main

    def _cluster(self, life: Life) -> KafkaCluster:
        return KafkaCluster(self._config, client_name=life.name, die=life.process.die)
