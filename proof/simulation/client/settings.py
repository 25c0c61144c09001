"""What a client is opened with: librdkafka's property names, text or numbers, and its defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.errors import failure

_NODE: Final = re.compile(r"(\d+)(?::\d+)?$")


class Settings:
    """One client's properties. `bootstrap.servers` names brokers by the number before the port: `broker-1:9092,broker-2:9092`."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)
        self.nodes = tuple(self._node(one) for one in str(given.get("bootstrap.servers", "")).split(",") if one.strip())
        self.error_cb = given.get("error_cb")
        self.statistics_cb = given.get("stats_cb")

    def text(self, name: str, default: str = "") -> str:
        """A property as text."""
        return str(self._given.get(name, default))

    def number(self, name: str, default: int) -> int:
        """A property as a whole number."""
        return int(self._given.get(name, default))

    def seconds(self, name: str, default_ms: int) -> float:
        """A property in milliseconds, as seconds."""
        return float(self._given.get(name, default_ms)) / 1000

    def flag(self, name: str, *, default: bool) -> bool:
        """A switch."""
        return str(self._given.get(name, default)).lower() in ("true", "1")

    def _node(self, server: str) -> int:
        found = _NODE.search(server.strip())
        if found is None:
            raise failure(KafkaError._INVALID_ARG, f"no broker number in {server!r}")
        return int(found[1])
