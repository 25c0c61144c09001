"""Creates, widens and checks a namespace's topics (`dueline init`, and every start)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
    grown: tuple[str, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)  # of each topic, as it is now

    @property
    def fit(self) -> bool:
        """Whether a scheduler would start."""
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


def init_topics(
    admin: KafkaAdmin, namespace: Namespace, specs: Sequence[TopicSpec], *, grow: Collection[str] = ()
) -> InitReport:
    """Create what is missing, check all; of what exists change nothing but the number of partitions of the topics in `grow`,
    raised to that of their spec. Raises Unavailable, NotAuthorized, ConfigError."""
    created: list[str] = []
    existing: list[str] = []
    grown: list[str] = []
    for spec in specs:
        (created if admin.create(spec) else existing).append(spec.name)
    for spec in specs:
        if spec.name in existing and spec.name in grow and admin.partitions(spec.name) < spec.partitions:
            admin.grow(spec.name, spec.partitions)
            grown.append(spec.name)
    for spec in specs:
        if spec.name in created or spec.name in grown:
            _await_known(admin, spec)
    return InitReport(
        created=tuple(created),
        existing=tuple(existing),
        problems=tuple(_when_settled(lambda: check_topics(admin, namespace, specs), {*created, *grown})),
        grown=tuple(grown),
        partitions={
            spec.name: spec.partitions if spec.name in {*created, *grown} else admin.partitions(spec.name) for spec in specs
        },
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


def _when_settled(check: Callable[[], list[Problem]], new: Collection[str]) -> list[Problem]:
    """The check's answer. A broker other than the one asked before may not know for a moment what was made just now."""
    deadline = monotonic_s() + SETTLE_S
    while True:
        try:
            problems = check()
        except Unavailable:
            if not new or monotonic_s() > deadline:
                raise
        else:
            unknown = any(problem.severity is Severity.ERROR and problem.topic in new for problem in problems)
            if not unknown or monotonic_s() > deadline:
                return problems


def _await_known(admin: KafkaAdmin, spec: TopicSpec) -> None:
    deadline = monotonic_s() + SETTLE_S
    while admin.partitions(spec.name) < spec.partitions:
        if monotonic_s() > deadline:
            raise Unavailable(f"topic {spec.name!r} was made, but is not known to the broker after {SETTLE_S:.0f} s")
