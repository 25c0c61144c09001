"""The broker that tests run against: embedded (default), in a container, or a cluster that is already there."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.broker.config import DEFAULTS
from dueline.scheduler.kafka.broker.instance import silent

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

IMAGE = "apache/kafka:4.3.1"
CONTAINER_START_S = 90  # below the 120 s that a test may take


class BrokerKind(StrEnum):
    """Where the test broker comes from; the values of `--broker` and DUELINE_TEST_BROKER."""

    EMBEDDED = "embedded"
    TESTCONTAINERS = "testcontainers"
    EXTERNAL = "external"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestBroker:
    """A running broker. `embedded` is set for that kind only; it is shared: don't stop it (see `own_broker`)."""

    __test__ = False

    kind: BrokerKind
    bootstrap_servers: str
    embedded: EmbeddedBroker | None = None


@contextmanager
def running_broker(kind: BrokerKind) -> Iterator[TestBroker]:
    """A broker of the kind for as long as the block lasts."""
    match kind:
        case BrokerKind.EMBEDDED:
            with tempfile.TemporaryDirectory(prefix="dueline-broker-") as folder, EmbeddedBroker(Path(folder)) as own:
                yield TestBroker(kind=kind, bootstrap_servers=own.bootstrap_servers, embedded=own)
        case BrokerKind.TESTCONTAINERS:
            with container() as address:
                yield TestBroker(kind=kind, bootstrap_servers=address)
        case BrokerKind.EXTERNAL:
            yield TestBroker(kind=kind, bootstrap_servers=external_address())


def external_address() -> str:
    address = os.environ.get("DUELINE_BOOTSTRAP_SERVERS")
    if not address:
        raise ValueError("--broker external needs DUELINE_BOOTSTRAP_SERVERS=host:port,... in the environment")
    return address


@contextmanager
def container() -> Iterator[str]:
    """Apache's own image by a plain container: testcontainers' KafkaContainer runs Confluent's start scripts.

    The port is chosen before the start, because the broker must advertise the address that the host will use.
    """
    # The reaper is one more image to pull, and the block below removes the container; read when the package loads.
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    from testcontainers.core.container import DockerContainer

    port = free_port()
    kafka = DockerContainer(IMAGE)
    # Docker's client takes an address too; `with_bind_ports` doesn't, and would open the broker to the network.
    kafka.ports["9092/tcp"] = ("127.0.0.1", port)  # type: ignore[assignment]
    for key, value in container_settings(port).items():
        kafka = kafka.with_env("KAFKA_" + key.upper().replace(".", "_"), value)
    with kafka:
        await_answer(f"127.0.0.1:{port}", kafka)
        yield f"127.0.0.1:{port}"


def await_answer(address: str, kafka: DockerContainer) -> None:
    """Return when the broker answers a request (Docker's proxy accepts connections before anyone listens)."""
    admin = AdminClient({"bootstrap.servers": address}, logger=silent)
    deadline = time.monotonic() + CONTAINER_START_S
    while time.monotonic() < deadline:
        try:
            if admin.describe_cluster(request_timeout=2).result(timeout=3).nodes:
                return
        except (KafkaException, TimeoutError):
            continue  # the request itself has waited
    out, err = kafka.get_logs()
    raise TimeoutError(f"{IMAGE} does not answer within {CONTAINER_START_S} s; it says: {(out + err)[-2000:]!r}")


def container_settings(port: int) -> dict[str, str]:
    """Two listeners, because the broker calls itself by its advertised address to verify a transaction, and the
    host's port does not lead anywhere inside the container: every transaction would hang."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": "HOST://:9092,INTERNAL://:29092,CONTROLLER://:9093",
        "advertised.listeners": f"HOST://127.0.0.1:{port},INTERNAL://localhost:29092",
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,HOST:PLAINTEXT,INTERNAL:PLAINTEXT",
        **DEFAULTS,
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
