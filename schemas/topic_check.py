"""Is an existing topic fit for what the catalogue wants of it? Pure: the caller brings the topic's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dueline.schemas.topics import Cleanup, Namespace, TopicSpec

_UNLIMITED: Final = -1
_TIMESTAMPS: Final = "message.timestamp.type"
_POLICY: Final = "cleanup.policy"


class Severity(StrEnum):
    """An error stops the start, a warning is told."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with a topic, why that matters and what to do."""

    topic: str
    severity: Severity
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: topic {self.topic}: {self.message}"


def check_topic(
    spec: TopicSpec, actual_config: Mapping[str, str], partitions: int, replication: int
) -> list[Problem]:
    """What keeps this topic from its use; errors first. `actual_config`: every setting in effect, defaults included;
    `partitions` 0: the topic does not exist; `replication`: replicas of the partition that has the fewest."""
    if partitions == 0:
        return [_error(spec, "does not exist: create it with `dueline init`, or see `dueline init --print`")]
    problems = [
        *_check_policy(spec, actual_config),
        *_check_timestamps(spec, actual_config),
        *_check_floors(spec, actual_config),
        *_check_bytes_kept(spec, actual_config),
        *_check_partitions(spec, partitions),
        *_check_replication(spec, replication),
    ]
    return sorted(problems, key=lambda problem: problem.severity != Severity.ERROR)


def check_homes(namespace: Namespace, partitions: Mapping[str, int]) -> list[Problem]:
    """A worker's home is one partition number in three topics, so these need the same number of partitions.
    `partitions`: of topics by name."""
    homes = {topic: partitions.get(topic, 0) for topic in (namespace.signals, namespace.attempts, namespace.steps)}
    if len(set(homes.values())) == 1:
        return []
    counts = ", ".join(f"{topic} has {count}" for topic, count in homes.items())
    message = f"{counts} partitions, but a worker's home partition must be the same in all three: add what is missing"
    return [Problem(topic=min(homes, key=lambda topic: homes[topic]), severity=Severity.ERROR, message=message)]


def _check_policy(spec: TopicSpec, actual: Mapping[str, str]) -> Iterator[Problem]:
    if _POLICY not in actual:
        yield _unread(spec, _POLICY)
        return
    policies = {policy.strip() for policy in actual[_POLICY].split(",") if policy.strip()}
    if policies == {spec.cleanup.value}:
        return
    found = ",".join(sorted(policies)) or "nothing"
    if spec.cleanup == Cleanup.COMPACT and Cleanup.DELETE in policies:
        reason = "with `delete`, live keys are dropped when their segment ages out: the ledger would forget"
        yield _of(spec, spec.state, f"{_POLICY} is {found}; {reason}. {_set(spec, _POLICY)}")
    elif spec.cleanup == Cleanup.DELETE and Cleanup.COMPACT in policies:
        reason = "with `compact`, earlier records of a key are dropped although they are still read"
        yield _error(spec, f"{_POLICY} is {found}; {reason}. {_set(spec, _POLICY)}")
    else:
        yield _warning(spec, f"{_POLICY} is {found}: the topic grows without end. {_set(spec, _POLICY)}")


def _check_timestamps(spec: TopicSpec, actual: Mapping[str, str]) -> Iterator[Problem]:
    if _TIMESTAMPS not in actual:
        yield _unread(spec, _TIMESTAMPS)
    elif actual[_TIMESTAMPS] != "LogAppendTime":
        reason = "leader time is the broker's append time, and a client's clock must not decide what is due or kept"
        yield _error(spec, f"{_TIMESTAMPS} is {actual[_TIMESTAMPS]}; {reason}. {_set(spec, _TIMESTAMPS)}")


def _check_floors(spec: TopicSpec, actual: Mapping[str, str]) -> Iterator[Problem]:
    for setting, floor in spec.floors.items():
        if setting not in actual:
            yield _unread(spec, setting)
            continue
        value = _integer(actual[setting])
        if value is None:
            yield _error(spec, f"{setting} is {actual[setting]!r}, not a number. {_set(spec, setting)}")
        elif value < floor and not (setting == "retention.ms" and value == _UNLIMITED):
            tolerated = spec.development and setting == "min.insync.replicas"
            yield _of(spec, not tolerated, f"{setting} is {value}, at least {floor} is needed: {_WHY[setting]}. "
                      f"{_set(spec, setting)}")  # fmt: skip


def _check_bytes_kept(spec: TopicSpec, actual: Mapping[str, str]) -> Iterator[Problem]:
    """A limit in bytes cuts any promise in time short."""
    limit = actual.get("retention.bytes", "-1")
    if spec.cleanup == Cleanup.DELETE and _integer(limit) != _UNLIMITED:
        text = f"retention.bytes is {limit}: under load, records go before retention.ms has passed. "
        yield _warning(spec, text + _set(spec, "retention.bytes"))


def _check_partitions(spec: TopicSpec, partitions: int) -> Iterator[Problem]:
    if partitions == spec.partitions or not spec.exact_partitions:
        return
    if spec.partitions == 1:
        reason = "it must have one, since its order is that of the decisions. Partitions cannot be removed: "
        remedy = "delete the topic if it is unused, or take a new namespace"
        yield _error(spec, f"has {partitions} partitions; {reason}{remedy}")
    else:
        remedy = f"say `--partitions {partitions}` if that is meant"
        yield _warning(spec, f"has {partitions} partitions instead of {spec.partitions}: {remedy}")


def _check_replication(spec: TopicSpec, replication: int) -> Iterator[Problem]:
    if replication < spec.replication_factor:
        text = (
            f"has {replication} replica{'s' if replication != 1 else ''} of each record, the floor is "
            f"{spec.replication_factor}: a broker that is lost takes decisions with it. Reassign its partitions with "
            f"more replicas, lower the floor with `--replication-factor`, or declare the namespace a development one"
        )
        yield _of(spec, not spec.development, text)


_WHY: Final[dict[str, str]] = {
    "retention.ms": "records would go while they are still needed",
    "delete.retention.ms": "a scheduler that was away would miss deletions and bring deleted keys back",
    "max.message.bytes": "the largest records would be refused",
    "min.insync.replicas": "an acknowledged record could be on one broker only",
}


def _set(spec: TopicSpec, setting: str) -> str:
    return f"Set {setting}={spec.config[setting]}"


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _unread(spec: TopicSpec, setting: str) -> Problem:
    return _error(spec, f"{setting} could not be read: allow DescribeConfigs on the topic")


def _of(spec: TopicSpec, is_error: bool, message: str) -> Problem:
    return _error(spec, message) if is_error else _warning(spec, message)


def _error(spec: TopicSpec, message: str) -> Problem:
    return Problem(topic=spec.name, severity=Severity.ERROR, message=message)


def _warning(spec: TopicSpec, message: str) -> Problem:
    return Problem(topic=spec.name, severity=Severity.WARNING, message=message)
