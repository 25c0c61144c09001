"""One attempt to bring the broker up in a folder: settings, process, and the wait for its first answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from . import ports
from .config import ALONE, HOST, Place, Ports, cluster_id_of, server_properties
from .folder import BrokerFolder
from .process import BrokerProcess
from .runtime import BROKER, Runtime

READY_S = 90.0  # 1.3 s on a quiet machine; several brokers may share two busy cores
LOOK_EVERY_S = 0.02
ANSWER_S = 2.0

silent = logging.getLogger(f"{__name__}.client")
silent.addHandler(logging.NullHandler())
silent.propagate = False  # librdkafka reports each refused connection while we wait for the broker


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """The broker answers."""

    process: BrokerProcess


@dataclass(frozen=True, kw_only=True, slots=True)
class PortTaken:
    """Another process took a port between our look and the broker's start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """The broker ended or stayed silent. `spoke`: Kafka itself had begun to log, so Java and its cache work."""

    reason: str
    spoke: bool


def bring_up(
    runtime: Runtime, folder: BrokerFolder, *, where: Ports, overrides: Mapping[str, str], lock_fd: int,
    flags: Sequence[str], ready_s: float = READY_S, place: Place = ALONE, environ: Mapping[str, str] | None = None,
) -> Ready | PortTaken | Failed:
    """Start a broker on a formatted folder and wait until it answers a request. `environ`: variables added to ours."""
    settings = server_properties(data=folder.data, ports=where, overrides=overrides, place=place)
    folder.config.write_text(settings, encoding="utf-8")
    said_before = size_of(folder.log)
    command = runtime.command(BROKER, str(folder.config), log=folder.log, flags=flags)
    process = BrokerProcess(command, output=folder.output, lock_fd=lock_fd, environ=environ)
    try:
        cluster_id = cluster_id_of(folder.meta.read_text(encoding="utf-8"))
        problem = await_answer(process, where, (cluster_id, place.node), deadline=time.monotonic() + ready_s)
    except BaseException:
        process.kill()
        raise
    if problem is None:
        return Ready(process=process)
    process.kill()
    said = text_after(folder.log, said_before)
    if "Address already in use" in said:
        return PortTaken()
    return Failed(reason=problem, spoke=bool(said))


def await_answer(process: BrokerProcess, where: Ports, who: tuple[str, int], *, deadline: float) -> str | None:
    """None as soon as the broker answers; otherwise what went wrong. `who`: cluster id and node."""
    client: AdminClient | None = None
    while time.monotonic() < deadline:
        code = process.exit_code()
        if code is not None:
            return f"its process ended with code {code}"
        if client is None and ports.accepts(where.client):
            client = AdminClient({"bootstrap.servers": f"{HOST}:{where.client}"}, logger=silent)
        if client is not None and answers(client, who):
            return None
        process.wait(LOOK_EVERY_S)
    return "it did not answer in time"


def answers(client: AdminClient, who: tuple[str, int]) -> bool:
    """Whether the cluster with this id answers and counts the node in: it then takes all requests."""
    try:
        seen = client.describe_cluster(request_timeout=ANSWER_S).result(timeout=ANSWER_S + 1)
    except (KafkaException, TimeoutError):
        return False
    cluster_id, node = who
    return seen.cluster_id == cluster_id and node in {one.id for one in seen.nodes}


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def text_after(path: Path, offset: int) -> str:
    """What was appended to a log since it had `offset` bytes (all of it, if it was rolled over meanwhile)."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(offset if size_of(path) >= offset else 0)
        return file.read().decode(errors="replace")
