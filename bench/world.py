"""What a measurement runs on: a broker, topics of a namespace and of its raw twin, and dueline's real processes.

The twin has the same topics with the same settings and partitions; the raw loop writes there what dueline wrote here.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dueline.scheduler.core.ports import Received
from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.topics import init_topics
from dueline.schemas.topics import Namespace, catalogue
from examples.demo.children import DUELINE, LEASH, Crew, environment

QUEUE: Final = "bench"
LOOK_S: Final = 0.05


class Failed(Exception):
    """The measurement could not be made; the message says what did not happen."""


@dataclass(slots=True, kw_only=True)
class World:
    """One measurement's surroundings."""

    cluster: KafkaCluster
    bootstrap_servers: str
    namespace: Namespace
    twin: Namespace
    crew: Crew
    profiles: Path | None  # the folder where profiled processes leave what they saw
    broker_pid: int | None  # of a broker of our own

    def add_worker(self, name: str, handlers: Mapping[str, str], *, slots: int, prefetch: int = 0) -> None:
        """A worker, not yet started."""
        given = [part for handler, code in handlers.items() for part in ("--handler", f"{handler}={code}")]
        self.crew.add_worker(
            name, "--queue", QUEUE, "--slots", str(slots), "--prefetch", str(prefetch), *given,
            launcher=_launcher(self.profiles, name),
        )  # fmt: skip

    def stop(self) -> None:
        """End all processes; profiled ones in order, so that they write what they saw."""
        if self.profiles is not None:
            for child in self.crew.all:
                child.terminate()
            for child in self.crew.all:
                child.gone()
        self.crew.kill()

    def until(self, what: str, happened: Callable[[], bool], timeout_s: float) -> None:
        """Wait for it. Raises Failed after the time, or when a process has ended."""
        deadline_s = time.monotonic() + timeout_s
        while not happened():
            for child in self.crew.all:
                code = child.ended_by_itself
                if code is not None:
                    last = "\n".join(child.log_lines()[-5:])
                    raise Failed(f"{child.name} ended with {code} while this was waited for: {what}\n{last}")
            if time.monotonic() > deadline_s:
                raise Failed(f"waited {timeout_s:.0f} s in vain for this: {what}")
            time.sleep(LOOK_S)

    def processor_ms(self) -> dict[str, int]:
        """Processor time that each process has used so far; {} where the system does not tell."""
        pids = {child.name: child.pid for child in self.crew.all}
        if self.broker_pid is not None:
            pids["broker"] = self.broker_pid
        return {name: used for name, pid in pids.items() if (used := _processor_ms(pid)) is not None}

    def records(self, topic: str) -> list[Received]:
        """Everything that stands in the topic."""
        admin = self.cluster.admin()
        found: list[Received] = []
        for number in range(admin.partitions(topic)):
            partition = (topic, number)
            found += admin.read_range(partition, admin.start_offset(partition), admin.end_offset(partition), timeout_s=120)
        return found


@contextmanager
def world(bootstrap_servers: str = "", profiles: Path | None = None) -> Iterator[World]:
    """A world on this cluster, or on an embedded broker of its own; nothing is left running.

    `profiles`: run all processes under cProfile (slower), and leave a file `<process>.prof` of each there.
    """
    with tempfile.TemporaryDirectory(prefix="dueline-bench-") as name:
        folder = Path(name)
        if bootstrap_servers:
            with _processes(folder, bootstrap_servers, profiles, None) as made:
                yield made
        else:
            with EmbeddedBroker(folder / "broker") as broker, _processes(
                folder, broker.bootstrap_servers, profiles, broker.pid
            ) as made:
                yield made


@contextmanager
def _processes(folder: Path, bootstrap_servers: str, profiles: Path | None, broker_pid: int | None) -> Iterator[World]:
    name = f"bench-{uuid.uuid4().hex[:6]}"
    namespace, twin = Namespace(name), Namespace(f"{name}.raw")
    cluster = KafkaCluster(KafkaConfig(bootstrap_servers=bootstrap_servers), client_name=name)
    crew = Crew(folder, environment(bootstrap_servers, name, {}))
    crew.add_scheduler(
        "scheduler", "--development", "--replication-factor", "1", "--min-insync-replicas", "1",
        launcher=_launcher(profiles, "scheduler"),
    )  # fmt: skip
    try:
        for each in (namespace, twin):
            specs = catalogue(each, [QUEUE], replication_factor=1, min_insync_replicas=1, development=True)
            init_topics(cluster.kafka_admin(), each, specs)
        yield World(
            cluster=cluster, bootstrap_servers=bootstrap_servers, namespace=namespace, twin=twin, crew=crew,
            profiles=profiles, broker_pid=broker_pid,
        )
    finally:
        crew.kill()
        cluster.close()


def _launcher(profiles: Path | None, name: str) -> tuple[str, ...]:
    if profiles is None:
        return DUELINE
    return (*LEASH, "cProfile", "-o", str(profiles / f"{name}.prof"), "-m", DUELINE[-1])


def _processor_ms(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """Processors and what they are, for the report."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} × {model}, load {load:.1f} before"
