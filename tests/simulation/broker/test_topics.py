"""Topics: creation, ids, settings; and what of them survives a deletion."""

from __future__ import annotations

from proof.simulation.broker import codes
from proof.simulation.protocol import (
    Answer,
    ConfigsAnswer,
    CreateTopic,
    DescribeConfigs,
    DescribeGroup,
    Fetch,
    GroupAnswer,
    Metadata,
    MetadataAnswer,
)
from tests.simulation.broker.driver import P0, P1, Driver, settle


def create(name: str, partitions: int = 1, replicas: int = 1) -> CreateTopic:
    return CreateTopic(topic=name, partitions=partitions, replicas=replicas, settings={"cleanup.policy": "compact"})


def test_topics_are_made_on_request_only() -> None:
    driver = Driver()
    assert driver.ask(Metadata(topics=("new",)), MetadataAnswer).leaders == {}
    assert driver.ask(create("new", partitions=3), Answer).code == 0
    answer = driver.ask(Metadata(topics=("new",)), MetadataAnswer)
    assert answer.leaders == {("new", 0): 1, ("new", 1): 1, ("new", 2): 1}
    assert driver.ask(create("new"), Answer).code == codes.TOPIC_ALREADY_EXISTS
    assert driver.ask(create("none", partitions=0), Answer).code == codes.INVALID_PARTITIONS
    assert driver.ask(create("wide", replicas=2), Answer).code == codes.INVALID_REPLICATION_FACTOR


def test_settings_in_effect() -> None:
    driver = Driver()
    driver.ask(create("new"), Answer)
    settings = driver.ask(DescribeConfigs(topic="new"), ConfigsAnswer).settings
    assert (settings["cleanup.policy"], settings["retention.ms"]) == ("compact", "604800000")
    assert driver.ask(DescribeConfigs(topic="none"), ConfigsAnswer).code == codes.UNKNOWN_TOPIC_OR_PART
    assert driver.ask(DescribeConfigs(topic=""), ConfigsAnswer).settings["group.min.session.timeout.ms"] == "1000"


def test_a_topic_made_anew_is_another_one() -> None:
    driver = Driver()
    member = driver.member()
    settle(member)
    writer = driver.writer()
    writer.add_offsets()
    writer.offsets(1, member.generation, member.name)
    writer.end()
    driver.put("a")
    first = driver.ask(Metadata(topics=("t",)), MetadataAnswer).ids["t"]
    waiting = driver.send(Fetch(partition=P0, offset=1, committed_only=True, max_wait_s=60.0))
    driver.cluster.delete_topic("t")
    assert [answer.code for answer in waiting.answers] == [codes.UNKNOWN_TOPIC_OR_PART]
    driver.cluster.create_topic("t", 2)
    assert driver.ask(Metadata(topics=("t",)), MetadataAnswer).ids["t"] != first
    assert driver.values() == []
    assert driver.committed() is None


def test_a_group_as_described() -> None:
    driver = Driver()
    assert driver.ask(DescribeGroup(group="g"), GroupAnswer).state == "Dead"
    member = driver.member()
    settle(member)
    answer = driver.ask(DescribeGroup(group="g"), GroupAnswer)
    assert (answer.state, answer.generation, answer.members) == ("Stable", 1, {member.name: frozenset({P0, P1})})
