"""Names of a namespace, its catalogue, and what is accepted of topics that exist."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from dueline.schemas.errors import NameInvalid
from dueline.schemas.topic_check import Severity, check_homes, check_topic
from dueline.schemas.topics import DAY_MS, Namespace, TopicSpec, catalogue, home_partition

NS = Namespace()
SPECS = {spec.name: spec for spec in catalogue(NS, ["menu"])}
STATE = [NS.jobs, NS.job_versions, NS.runs, NS.checkpoints]


def test_names() -> None:
    kitchen = Namespace("kitchen")
    assert (kitchen.jobs, kitchen.job_versions, kitchen.dispatch("hot")) == (
        "kitchen.jobs", "kitchen.job-versions", "kitchen.dispatch.hot",
    )  # fmt: skip
    assert (kitchen.scheduler_group, kitchen.worker_group("hot")) == ("kitchen.schedulers", "kitchen.workers.hot")
    assert kitchen.leader_ids == ("kitchen.leader.a", "kitchen.leader.b")
    assert kitchen.worker_ids("w1.0a1b2c3d") == (
        "kitchen.worker.w1.0a1b2c3d.claim", "kitchen.worker.w1.0a1b2c3d.a", "kitchen.worker.w1.0a1b2c3d.b",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "is empty"), ("a b", "holds ' '"), ("a/b", "holds '/'"), ("ü", "holds 'ü'"), (".", "refused by Kafka"),
     ("a..b", "empty part"), (".a", "empty part"), ("x" * 65, "65 characters"), ("a.dispatch", "could meet a topic"),
     ("worker.x", "could meet a topic"), ("a\n", "holds")],
)  # fmt: skip
def test_a_namespace_that_cannot_be_is_refused(name: str, message: str) -> None:
    with pytest.raises(NameInvalid, match=message):
        Namespace(name)


@pytest.mark.parametrize("queue", ["", "a b", "..", "a@b", "x" * 129])
def test_a_queue_that_cannot_be_is_refused(queue: str) -> None:
    for use in (NS.dispatch, NS.worker_group, lambda name: catalogue(NS, [name])):
        with pytest.raises(NameInvalid, match="queue"):
            use(queue)


def test_the_longest_names_fit_into_a_topic_name() -> None:
    assert len(Namespace("n" * 64).dispatch("q" * 128)) <= 249


def test_home_partition_is_crc32() -> None:
    assert [home_partition(worker, 8) for worker in ("w1", "w2")] == [zlib.crc32(b"w1") % 8, zlib.crc32(b"w2") % 8]
    assert {home_partition(f"w{number}", 8) for number in range(100)} == set(range(8))


def test_the_catalogue_is_the_designs() -> None:
    shape = {spec.name.removeprefix("dueline."): (spec.cleanup.value, spec.partitions) for spec in SPECS.values()}
    assert shape == {
        "jobs": ("compact", 1), "control": ("delete", 1), "job-versions": ("compact", 1), "runs": ("compact", 1),
        "signals": ("delete", 8), "attempts": ("delete", 8), "steps": ("delete", 8), "workers": ("compact", 1),
        "checkpoints": ("compact", 1), "rejected": ("delete", 1), "dispatch.menu": ("delete", 8),
    }  # fmt: skip
    assert all(spec.config["message.timestamp.type"] == "LogAppendTime" and spec.why for spec in SPECS.values())


def test_numbers_of_the_catalogue() -> None:
    specs = {spec.name: spec for spec in catalogue(NS, ["b", "a", "b"], partitions=3, replication_factor=1,
                                                   min_insync_replicas=1, history_ms=5 * DAY_MS)}  # fmt: skip
    assert [name for name in specs if ".dispatch." in name] == ["dueline.dispatch.a", "dueline.dispatch.b"]
    assert specs[NS.steps].config["retention.ms"] == str(5 * DAY_MS)
    assert (specs[NS.signals].partitions, specs[NS.runs].partitions, specs[NS.runs].replication_factor) == (3, 1, 1)
    assert int(specs[NS.signals].config["segment.ms"]) < int(specs[NS.signals].config["retention.ms"])


@pytest.mark.parametrize(
    "numbers",
    [{"partitions": 0}, {"replication_factor": 0}, {"replication_factor": 1}, {"min_insync_replicas": 0},
     {"history_ms": 5}],
)
def test_numbers_that_cannot_be_are_refused(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|from 1 to"):
        catalogue(NS, [], **numbers)


def problems(topic: str, *, partitions: int | None = None, replication: int = 3, development: bool = False,
             **changes: Any) -> list[tuple[Severity, str]]:  # fmt: skip
    """What is said of a topic as the catalogue creates it but for these settings (`_` for `.`; None: not there)."""
    spec: TopicSpec = {spec.name: spec for spec in catalogue(NS, ["menu"], development=development)}[topic]
    changed = {name.replace("_", "."): value for name, value in changes.items()}
    merged = {"retention.bytes": "-1", **spec.config, **changed}
    config = {name: value for name, value in merged.items() if value is not None}
    found = check_topic(spec, config, spec.partitions if partitions is None else partitions, replication)
    assert all(problem.topic == topic for problem in found)
    return [(problem.severity, problem.message) for problem in found]


@pytest.mark.parametrize("topic", SPECS)
def test_what_the_catalogue_creates_is_accepted(topic: str) -> None:
    assert problems(topic) == []


@pytest.mark.parametrize("topic", STATE)
@pytest.mark.parametrize("policy", ["compact,delete", "delete, compact", "delete"])
def test_delete_on_a_state_topic_is_refused(topic: str, policy: str) -> None:
    [(severity, message)] = problems(topic, cleanup_policy=policy)
    assert severity == Severity.ERROR
    assert "the ledger would forget" in message
    assert "Set cleanup.policy=compact" in message


def test_delete_on_workers_is_a_warning_only() -> None:
    assert [severity for severity, _ in problems(NS.workers, cleanup_policy="compact,delete")] == [Severity.WARNING]


def test_compact_on_a_topic_of_events_is_refused() -> None:
    [(severity, message)] = problems(NS.attempts, cleanup_policy="compact")
    assert severity == Severity.ERROR
    assert "Set cleanup.policy=delete" in message


@pytest.mark.parametrize("topic", SPECS)
def test_create_time_is_refused_everywhere(topic: str) -> None:
    [(severity, message)] = problems(topic, message_timestamp_type="CreateTime")
    assert severity == Severity.ERROR
    assert "Set message.timestamp.type=LogAppendTime" in message


@pytest.mark.parametrize("topic", [NS.steps, NS.attempts])
def test_steps_and_attempts_must_outlive_the_longest_run(topic: str) -> None:
    assert problems(topic, retention_ms=str(30 * DAY_MS - 1))[0][0] == Severity.ERROR
    assert problems(topic, retention_ms="-1") == []
    assert problems(topic, retention_ms=str(31 * DAY_MS)) == []


@pytest.mark.parametrize(
    ("topic", "changes", "severity", "message"),
    [
        (NS.jobs, {"delete_retention_ms": "1000"}, Severity.ERROR, "bring deleted keys back"),
        (NS.runs, {"max_message_bytes": "1000"}, Severity.ERROR, "the largest records would be refused"),
        (NS.runs, {"max_message_bytes": "lots"}, Severity.ERROR, "not a number"),
        (NS.runs, {"min_insync_replicas": "1"}, Severity.ERROR, "on one broker only"),
        (NS.steps, {"retention_bytes": "1000000"}, Severity.WARNING, "records go before retention.ms"),
        (NS.runs, {"message_timestamp_type": None}, Severity.ERROR, "allow DescribeConfigs"),
        (NS.runs, {"cleanup_policy": None}, Severity.ERROR, "allow DescribeConfigs"),
    ],
)
def test_settings_below_their_floor(topic: str, changes: dict[str, Any], severity: Severity, message: str) -> None:
    [(found, text)] = problems(topic, **changes)
    assert found == severity
    assert message in text


def test_replication_under_the_floor_is_refused_unless_in_development() -> None:
    [(severity, message)] = problems(NS.runs, replication=1)
    assert severity == Severity.ERROR
    assert "has 1 replica of each record, the floor is 3" in message
    assert [found for found, _ in problems(NS.runs, replication=1, min_insync_replicas="1", development=True)] == [
        Severity.WARNING, Severity.WARNING,
    ]  # fmt: skip


def test_partitions() -> None:
    assert problems(NS.runs, partitions=2)[0][0] == Severity.ERROR
    [(severity, message)] = problems(NS.steps, partitions=12)
    assert severity == Severity.WARNING
    assert "--partitions 12" in message
    assert problems(NS.dispatch("menu"), partitions=64) == []


def test_a_topic_that_does_not_exist() -> None:
    [(severity, message)] = problems(NS.runs, partitions=0)
    assert severity == Severity.ERROR
    assert "dueline init" in message


def test_errors_stand_first() -> None:
    found = problems(NS.steps, partitions=12, message_timestamp_type="CreateTime")
    assert [severity for severity, _ in found] == [Severity.ERROR, Severity.WARNING]


def test_homes_need_the_same_number_of_partitions() -> None:
    assert check_homes(NS, {NS.signals: 8, NS.attempts: 8, NS.steps: 8}) == []
    [problem] = check_homes(NS, {NS.signals: 8, NS.attempts: 12, NS.steps: 12})
    assert (problem.severity, problem.topic) == (Severity.ERROR, NS.signals)
    assert "dueline.attempts has 12" in problem.message
