"""Creates and checks a namespace's topics (`dueline init`, and every start)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.core.ports import Unavailable
from dueline.schemas.topic_check import Problem, Severity, check_homes, check_topic
from dueline.schemas.topics import Namespace, TopicSpec

from .admin import KafkaAdmin
from .clock import monotonic_s

SETTLE_S: Final = 15.0  # a topic just created takes a moment to be known to every broker


@dataclass(frozen=True, slots=True, kw_only=True)
class InitReport:
    """What `init_topics` found and did. Names of topics."""

    created: tuple[str, ...]
    existing: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def fit(self) -> bool:
        """Whether a scheduler would start."""
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


def init_topics(admin: KafkaAdmin, namespace: Namespace, specs: Sequence[TopicSpec]) -> InitReport:
    """Create what is missing, change nothing that exists, check all. Raises Unavailable, NotAuthorized, ConfigError."""
    created: list[str] = []
    existing: list[str] = []
    for spec in specs:
        (created if admin.create(spec) else existing).append(spec.name)
    for name in created:
        _await_known(admin, name)
    return InitReport(
        created=tuple(created), existing=tuple(existing), problems=tuple(check_topics(admin, namespace, specs))
    )


def check_topics(admin: KafkaAdmin, namespace: Namespace, specs: Sequence[TopicSpec]) -> list[Problem]:
    """What keeps these topics from their use; errors stop a start. Raises Unavailable, NotAuthorized."""
    problems: list[Problem] = []
    counts: dict[str, int] = {}
    for spec in specs:
        counts[spec.name], replicas = admin.shape(spec.name)
        settings = admin.settings(spec.name) if counts[spec.name] else {}
        problems.extend(check_topic(spec, settings, counts[spec.name], replicas))
    if all(counts.values()):
        problems.extend(check_homes(namespace, counts))
    return problems


def queues(admin: KafkaAdmin, namespace: Namespace) -> list[str]:
    """The queues that have a dispatch topic. Raises Unavailable."""
    prefix = f"{namespace.name}.dispatch."
    return [topic.removeprefix(prefix) for topic in admin.topics(prefix)]


def _await_known(admin: KafkaAdmin, topic: str) -> None:
    deadline = monotonic_s() + SETTLE_S
    while not admin.partitions(topic):
        if monotonic_s() > deadline:
            raise Unavailable(f"topic {topic!r} was created, but is not known to the broker after {SETTLE_S:.0f} s")
