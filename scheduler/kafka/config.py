"""Where the cluster is and how to connect: `DUELINE_BOOTSTRAP_SERVERS`, and a file of librdkafka properties.

Precedence for the servers: an argument, then the environment, then `bootstrap.servers` of the file. Everything else
comes from the file. What dueline's promises rest on is dueline's to set: those properties are refused with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from .errors import ConfigError

BOOTSTRAP_ENVIRONMENT: Final = "DUELINE_BOOTSTRAP_SERVERS"

_FENCE = "the fence of the leader rests on it"
_EXACT = "each run's record is written exactly once because of it"
_POSITIONS = "dueline keeps its own positions in the ledger"
OWNED: Final[Mapping[str, str]] = MappingProxyType({
    "transactional.id": "transactional ids are fixed by the namespace; " + _FENCE,
    "transaction.timeout.ms": "how long a dead process can hold back readers; " + _FENCE,
    "socket.timeout.ms": "it decides which commits are in doubt",
    "message.timeout.ms": "it must fit the transaction time-out",
    "delivery.timeout.ms": "it must fit the transaction time-out",
    "enable.idempotence": _EXACT,
    "acks": _EXACT,
    "request.required.acks": _EXACT,
    "retries": _EXACT,
    "message.send.max.retries": _EXACT,
    "max.in.flight": _EXACT,
    "max.in.flight.requests.per.connection": _EXACT,
    "partitioner": "records are placed by dueline",
    "retry.backoff.ms": "the pace of transactions rests on it",
    "retry.backoff.max.ms": "the pace of transactions rests on it",
    "linger.ms": "the pace of transactions rests on it",
    "queue.buffering.max.ms": "the pace of transactions rests on it",
    "isolation.level": "uncommitted decisions must not be read",
    "group.id": "groups are named by the namespace; " + _FENCE,
    "group.protocol": "the classic protocol: " + _FENCE,
    "group.remote.assignor": "the classic protocol: " + _FENCE,
    "group.instance.id": "a static member keeps its generation when it joins again; " + _FENCE,
    "partition.assignment.strategy": "cooperative-sticky keeps the leader when a standby joins; " + _FENCE,
    "session.timeout.ms": "set it with the scheduler's own option",
    "heartbeat.interval.ms": "it follows from the session time-out",
    "max.poll.interval.ms": "it ends a leader that hangs",
    "enable.auto.commit": _POSITIONS,
    "auto.commit.enable": _POSITIONS,
    "auto.commit.interval.ms": _POSITIONS,
    "enable.auto.offset.store": _POSITIONS,
    "auto.offset.reset": _POSITIONS + ", and a position out of range is an alarm, not a reset",
    "enable.partition.eof": "positions pass aborted records by it",
    "message.max.bytes": "topics and writers agree on the largest record",
    "log_level": "which commits are in doubt is learnt from the client's log; set levels of Python's logging instead",
    "log.connection.close": "which commits are in doubt is learnt from the client's log",
    "client.id": "each client is named after its use, so that the broker's logs can be read",
})

_SECRET: Final = re.compile(r"password|secret|token|\.pem$|jaas|oauthbearer\.config|assertion.*(key|file)|passphrase")
REDACTED: Final = "[redacted]"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KafkaConfig:
    """Connection settings. Its text never shows a secret."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.bootstrap_servers.strip():
            raise ConfigError(
                f"no Kafka cluster given: set {BOOTSTRAP_ENVIRONMENT}=HOST:PORT[,HOST:PORT], or bootstrap.servers in the "
                "file given by --kafka-config; `dueline dev` starts a broker of its own"
            )
        for name in self.properties:
            refuse_owned(name, "the given properties")

    @classmethod
    def load(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        file: Path | None = None,
        bootstrap_servers: str = "",
    ) -> KafkaConfig:
        """Argument, environment, file, in this order. Raises ConfigError."""
        given = environ if environ is not None else os.environ
        properties = read_properties(file) if file else {}
        from_file = properties.pop("bootstrap.servers", "") or properties.pop("metadata.broker.list", "")
        servers = bootstrap_servers or given.get(BOOTSTRAP_ENVIRONMENT, "") or from_file
        return cls(bootstrap_servers=servers, properties=properties)

    def client(self, **own: str | int | float | bool) -> dict[str, str | int | float | bool]:
        """The dictionary for one client: the user's properties, then `own` (underscores stand for dots)."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "reconnect.backoff.ms": 50,  # a restarted broker is found within a second, not within ten
            "reconnect.backoff.max.ms": 1000,
            "socket.nagle.disable": True,  # requests are small, and each waits for the one before
            **self.properties,
            **{name.replace("_", "."): value for name, value in own.items()},
        }

    def redacted(self) -> dict[str, str]:
        """What may be shown."""
        shown = {"bootstrap.servers": self.bootstrap_servers, **self.properties}
        return {name: REDACTED if is_secret(name) else value for name, value in shown.items()}

    def __repr__(self) -> str:
        return f"KafkaConfig({', '.join(f'{name}={value}' for name, value in self.redacted().items())})"


def is_secret(name: str) -> bool:
    """Whether a property's value must never be shown."""
    return _SECRET.search(name) is not None


def refuse_owned(name: str, where: str) -> None:
    """Raises ConfigError for a property that dueline must set itself."""
    reason = OWNED.get(name)
    if reason:
        raise ConfigError(f"{where}: {name} is set by dueline: {reason}. Remove the line")


def read_properties(file: Path) -> dict[str, str]:
    """`name=value` lines; `#` begins a comment line. Raises ConfigError with file and line, never with the value."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{file}: cannot read the Kafka settings: {reason}") from None
    properties: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{file}, line {number}"
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigError(f"{where}: expected `name=value` with a librdkafka property's name")
        refuse_owned(name, where)
        if name in properties:
            raise ConfigError(f"{where}: {name} is set twice; keep one line")
        properties[name] = value.strip()
    return properties
