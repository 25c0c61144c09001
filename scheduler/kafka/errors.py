"""What the Kafka layer says beyond the outcomes of the ports: a setting is wrong, a right is missing, a broker is unfit."""

from __future__ import annotations

from dueline.scheduler.core.ports import Aborted


class ConfigError(Exception):
    """A setting cannot be used. The message names it, where it stands and what to do; never its value."""


class NoFence(Exception):
    """The broker accepts a write that a stale leader would send (L9). dueline must not run on it."""


class TopicMissing(Aborted):
    """A record was meant for a topic that does not exist, or a partition it does not have."""

    definite = True

    def __init__(self, topic: str, partition: int = -1) -> None:
        self.topic = topic
        self.partition = partition
        what = f"topic {topic!r}" if partition < 0 else f"partition {partition} of topic {topic!r}"
        super().__init__(f"{what} does not exist; create it with `dueline init` (a queue's topic: `--queue NAME`)")


class NotAuthorized(Exception):
    """The cluster refuses an operation to the user dueline connects as."""

    def __init__(self, resource: str, operation: str, advice: str = "") -> None:
        self.resource = resource
        self.operation = operation
        self.advice = advice or f"grant {operation} on it to the user named in the Kafka settings (--kafka-config)"
        super().__init__(f"not authorized: {operation} on {resource}; {self.advice}")

    @property
    def topic(self) -> str:
        """The topic's name, "" when the resource is not a topic."""
        kind, _, name = self.resource.partition(" ")
        return name.strip("'\"") if kind == "topic" else ""


class WriteNotAuthorized(NotAuthorized, Aborted):  # type: ignore[override]  # `topic`: a property here, an attribute there
    """The same, met inside a transaction, which was aborted: nothing of it is visible, and the writer is over."""

    definite = True
