"""A real Apache Kafka of several nodes in a folder of one's own: for what one node cannot show.

Each node is broker and controller in one (KRaft), a process of its own, and is killed, stopped and started by itself. By
default records have three copies, two of which must be written (`min.insync.replicas`), those of groups and transactions too.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from . import ports
from .config import HOST, Door, Place, Ports, random_id
from .errors import BrokerStartFailed
from .jars import ensure_jars
from .node import BrokerNode
from .runtime import find_runtime
from .warmup import aot_flags

HEAP_MB = 320


class EmbeddedCluster:
    """All its data stands under `folder`; loopback only, nothing is encrypted.

    `doors`: for each name every node gets a listener of its own, which sends its clients to another port (see `doors_of`),
    where a proxy may stand between them and the node. `overrides` are broker settings that replace ours, the same on
    every node. `start` after `stop` or `kill` keeps data and ports. All nodes end with this process.
    """

    def __init__(
        self, folder: Path, *, nodes: int = 3, doors: Sequence[str] = (), overrides: Mapping[str, str] | None = None,
        heap_mb: int = HEAP_MB,
    ) -> None:  # fmt: skip
        self._folder = Path(folder).absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        cluster_id, where, named = self._remembered(nodes, doors)
        voters = {node: found.controller for node, found in where.items()}
        settings = {**copies(nodes), **(overrides or {})}
        self.nodes: Mapping[int, BrokerNode] = {
            node: BrokerNode(
                self._folder / f"node-{node}", cluster_id=cluster_id, ports=where[node],
                place=Place(node=node, voters=voters, doors=named[node]), overrides=settings, flags=(f"-Xmx{heap_mb}m",),
            )
            for node in where
        }  # fmt: skip

    def start(self, *, environ: Mapping[int, Mapping[str, str]] | None = None) -> None:
        """Start every node that does not run, all at once (a controller waits for a majority); return when each answers.

        `environ`: by node, variables added to its process's environment. Raises BrokerUnavailable, FolderInUse,
        BrokerStartFailed.
        """
        aot_flags(find_runtime(ensure_jars()))  # made once, not by all nodes at a time
        waiting = {number: node for number, node in self.nodes.items() if not node.is_running}
        with ThreadPoolExecutor(max(1, len(waiting))) as pool:
            outcomes = [pool.submit(node.start, environ=(environ or {}).get(number)) for number, node in waiting.items()]
        failed = [error for outcome in outcomes if (error := outcome.exception()) is not None]
        if failed:
            self.stop()
            raise failed[0]

    def stop(self) -> None:
        """End all nodes in order, all at once."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(BrokerNode.stop, self.nodes.values()))

    def kill(self) -> None:
        """SIGKILL to every node that runs."""
        for node in self.nodes.values():
            if node.is_running:
                node.kill()

    @property
    def bootstrap_servers(self) -> str:
        """Every node's own listener, without a door."""
        return ",".join(f"{HOST}:{node.ports.client}" for node in self.nodes.values())

    def doors_of(self, name: str) -> Mapping[int, Door]:
        """The doors of this name, by node. Raises LookupError."""
        found = {number: door for number, node in self.nodes.items() for door in node.doors if door.name == name.upper()}
        if not found:
            raise LookupError(f"the cluster has no doors named {name}")
        return found

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _remembered(
        self, nodes: int, doors: Sequence[str]
    ) -> tuple[str, dict[int, Ports], dict[int, tuple[Door, ...]]]:
        """The cluster's id, each node's ports and doors: those of the folder's earlier life, or new ones. The id must be the
        same on every node; the ports stay because clients and the other nodes know them."""
        file = self._folder / "cluster.json"
        names = sorted(name.upper() for name in doors)
        wanted = [nodes, names]
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            rng = random.Random(os.urandom(8))
            numbers = different(rng, nodes * (2 + 2 * len(doors)))
            kept = {"id": random_id(), "shape": wanted, "ports": numbers}
            file.write_text(json.dumps(kept), encoding="utf-8")
        if kept["shape"] != wanted:
            raise BrokerStartFailed(f"{self._folder} holds a cluster of another shape: {kept['shape']}, not {wanted}")
        numbers = iter(kept["ports"])
        where = {node: Ports(client=next(numbers), controller=next(numbers)) for node in range(1, nodes + 1)}
        named = {
            node: tuple(Door(name=name, port=next(numbers), advertised=next(numbers)) for name in names) for node in where
        }
        return kept["id"], where, named


def copies(nodes: int) -> dict[str, str]:
    """How many copies there are of what this many nodes keep."""
    factor, insync = str(min(3, nodes)), "2" if nodes >= 3 else "1"
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": insync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": insync,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": insync,
    }


def different(rng: random.Random, count: int) -> list[int]:
    """So many free ports, no two the same."""
    found: list[int] = []
    while len(found) < count:
        found.append(ports.pick(rng, taken=tuple(found)))
    return found
