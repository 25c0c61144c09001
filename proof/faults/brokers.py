"""The brokers of a run, one or three, as faults and notes see them."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dueline.scheduler.kafka.broker.cluster import EmbeddedCluster
from dueline.scheduler.kafka.broker.config import HOST
from dueline.scheduler.kafka.broker.node import BrokerNode
from proof.faults import faketime
from proof.faults.clock import now_ms
from proof.faults.links import Links
from proof.faults.notes import Notebook
from proof.faults.plan import Plan
from proof.history.acts import Life, Role

SPARE: Final = "spare"
"""The door of schedulers that a fault adds."""
SETTINGS: Final[Mapping[str, str]] = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.max.timeout.ms": "60000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "controlled.shutdown.enable": "true",
    "replica.lag.time.max.ms": "5000",
    "group.coordinator.threads": "1",
    "transaction.partition.verification.enable": "true",
    "log.retention.check.interval.ms": "1000",
}
"""What makes three brokers on two cores bearable, and what faults rest on."""


BROKER_LOG: Final = "broker.log"
FAILED: Final = b"because context is in FAILED state"


class Brokers:
    """`servers`: without a proxy, for the harness. `servers_by_client`: through the proxies of each process."""

    def __init__(self, plan: Plan, folder: Path, notes: Notebook, links: Links) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._clients = [*plan.scheduler_names, *plan.worker_names, SPARE]
        self._cluster = EmbeddedCluster(folder, nodes=plan.nodes, doors=self._clients, overrides=SETTINGS)
        self._notes, self._links = notes, links
        library = faketime.needed() if plan.moves_broker_clocks else None
        self.clock_files = {number: folder.parent / f"{self.name(number)}.faketime" for number in self.nodes if library}
        """By node: what moves its wall clock; empty without libfaketime."""
        for file in self.clock_files.values():
            faketime.write(file, 0)
        self._environ = {number: faketime.environment(library, file) for number, file in self.clock_files.items() if library}
        self._over = False
        self._read: dict[int, int] = {}  # bytes of its log, by node
        self.down: set[int] = set()
        """Nodes that a fault keeps down or stopped."""

    @property
    def servers(self) -> str:
        """Addresses."""
        return self._cluster.bootstrap_servers

    @property
    def servers_by_client(self) -> dict[str, str]:
        """Addresses by client."""
        return {
            client: ",".join(f"{HOST}:{door.advertised}" for door in self._cluster.doors_of(client).values())
            for client in self._clients
        }

    @property
    def nodes(self) -> Mapping[int, BrokerNode]:
        """By number."""
        return self._cluster.nodes

    def start(self) -> None:
        """All of them, and the proxies in front."""
        for client in self._clients:
            for number, door in self._cluster.doors_of(client).items():
                self._links.open(client, number, listen=door.advertised, to=door.port)
        self._cluster.start(environ=self._environ)
        for number in self.nodes:
            self._born(number)

    @staticmethod
    def name(number: int) -> str:
        """As notes call it."""
        return f"b{number}"

    def kill(self, number: int) -> None:
        """SIGKILL."""
        if self.nodes[number].is_running:
            self._notes.ended(self.name(number), self.nodes[number].pid, "SIGKILL")
        self.nodes[number].kill()

    def stop(self, number: int) -> None:
        """In order; takes seconds."""
        pid = self.nodes[number].pid
        self.nodes[number].stop()
        self._notes.ended(self.name(number), pid, "exit 0")

    def start_one(self, number: int) -> None:
        """Start it again; takes seconds."""
        self.nodes[number].start(environ=self._environ.get(number))
        if self._over:  # everything ended meanwhile
            self.nodes[number].kill()
        self._born(number)

    def halted(self, number: int) -> None:
        """It ended by itself, as a fault wanted."""
        if not self.nodes[number].is_running:
            for life in self._notes.lives:
                if life.process == self.name(number) and life.ended_ms == -1:
                    self._notes.ended(life.process, life.pid, "halted")

    def freeze(self, number: int) -> None:
        """SIGSTOP."""
        os.kill(self.nodes[number].pid, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        """SIGCONT."""
        if self.nodes[number].is_running:
            os.kill(self.nodes[number].pid, signal.SIGCONT)

    def lost(self) -> list[int]:
        """Nodes that ended though no fault keeps them down."""
        return [number for number, node in self.nodes.items() if not node.is_running and number not in self.down]

    def failed(self) -> list[int]:
        """Nodes whose group coordinator gave up for good, by a bug of the broker (docs/kafka.md): no group can be joined any more
        until it is started again. Each is told once a life."""
        found = []
        for number, node in self.nodes.items():
            if number in self.down or not node.is_running:
                continue
            log = node.folder.path / BROKER_LOG
            read = self._read.get(number, 0)
            with open(log, "rb") as file:
                file.seek(read if read <= log.stat().st_size else 0)
                text = file.read()
                self._read[number] = file.tell()
            if FAILED in text:
                found.append(number)
        return found

    def end(self) -> None:
        """End all at once. One that is being started by another thread ends as soon as it is up."""
        self._over = True
        for number, node in self.nodes.items():
            if node.is_running:
                self.thaw(number)
        self._cluster.kill()

    def _born(self, number: int) -> None:
        pid = self.nodes[number].pid
        life = Life(process=self.name(number), role=Role.BROKER, pid=pid, began_ms=now_ms(), ended_ms=-1, how="runs")
        self._notes.began(life)
