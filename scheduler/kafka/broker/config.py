"""The broker's settings as text: nodes that are broker and controller in one, on loopback, tuned for quick tests."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NODE_ID = 1
HOST = "127.0.0.1"

DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",  # a misspelt topic must be an error, not a new topic
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",  # Kafka's own floor is 6000: take-over tests need not wait that long
    # After a kill -9 the controller refuses the node until its old session ends; Kafka's 9 s would be the restart time.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": "33554432",  # 32 MB of the 512 MB heap; Kafka would take 128 at start
}

OURS = frozenset(
    {"process.roles", "node.id", "listeners", "controller.quorum.voters", "controller.listener.names", "log.dirs"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """The two TCP ports of one node."""

    client: int
    controller: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """One more listener of a node, for clients that shall reach it by an address of their own: it listens on `port` and
    tells its clients to come to `advertised`, where something stands that passes their bytes on. `name`: upper case."""

    name: str
    port: int
    advertised: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A node in its cluster. `voters`: the controller port of each node, by its id; empty: this node alone."""

    node: int = NODE_ID
    voters: Mapping[int, int] = field(default_factory=dict)
    doors: Sequence[Door] = ()


ALONE = Place()


def server_properties(*, data: Path, ports: Ports, overrides: Mapping[str, str], place: Place = ALONE) -> str:
    """The text of server.properties.

    The quorum is given by `controller.quorum.voters` and not stored in the data, so the ports may change between two
    starts on the same folder. Raises ValueError for an override of a setting that makes the node what it is.
    """
    refused = sorted(OURS & overrides.keys())
    if refused:
        raise ValueError(f"the embedded broker sets {', '.join(refused)} itself: leave that out of the overrides")
    voters = place.voters or {place.node: ports.controller}
    listeners = [f"PLAINTEXT://{HOST}:{ports.client}", f"CONTROLLER://{HOST}:{ports.controller}"]
    advertised = [f"PLAINTEXT://{HOST}:{ports.client}"]
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(place.node),
        "controller.quorum.voters": ",".join(f"{node}@{HOST}:{port}" for node, port in voters.items()),
        "listeners": ",".join([*listeners, *(f"{door.name}://{HOST}:{door.port}" for door in place.doors)]),
        "advertised.listeners": ",".join([*advertised, *(f"{door.name}://{HOST}:{door.advertised}" for door in place.doors)]),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in ("CONTROLLER", "PLAINTEXT", *(door.name for door in place.doors))
        ),
        "log.dirs": str(data),
        **DEFAULTS,
        **overrides,
    }
    return "".join(f"{key}={escape(value)}\n" for key, value in settings.items())


def meta_properties(*, cluster_id: str, directory_id: str, node: int = NODE_ID) -> str:
    """The text of meta.properties, which marks a data folder as formatted (its version 1)."""
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node}\ndirectory.id={directory_id}\n"


def cluster_id_of(meta: str) -> str:
    """The cluster id in the text of a meta.properties; raises ValueError if there is none."""
    for line in meta.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "cluster.id":
            return value.strip().replace("\\", "")
    raise ValueError("meta.properties has no cluster.id: the data folder is damaged")


def random_id() -> str:
    """A random id as Kafka writes them: 16 bytes in URL-safe base64 without padding, no leading dash (the tools
    would take that for an option)."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def escape(value: str) -> str:
    """Java property files treat a backslash and the line's end as special."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
