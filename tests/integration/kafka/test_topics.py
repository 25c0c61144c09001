"""`init_topics` and `check_topics` on a real broker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from dueline.scheduler.core.ports import EARLIEST, Delivered
from dueline.scheduler.kafka.errors import ConfigError, TopicMissing
from dueline.scheduler.kafka.topics import check_topics, init_topics, queues
from dueline.schemas.topic_check import Severity
from dueline.schemas.topics import catalogue
from tests.integration.kafka.support import DEADLINE_S, Site, record, specs, until


def test_a_second_init_creates_nothing_and_finds_no_problem(site: Site) -> None:
    report = init_topics(site.cluster.kafka_admin(), site.ns, specs(site.ns))
    assert report.created == ()
    assert set(report.existing) == {spec.name for spec in specs(site.ns)}
    assert report.fit


def test_a_queue_is_added_later(site: Site) -> None:
    two = catalogue(site.ns, ["q", "mail"], partitions=2, replication_factor=1, min_insync_replicas=1, development=True)
    assert init_topics(site.cluster.kafka_admin(), site.ns, two).created == (site.ns.dispatch("mail"),)
    assert queues(site.cluster.kafka_admin(), site.ns) == ["mail", "q"]


def test_a_queue_is_given_more_partitions_and_no_other_topic_is(site: Site) -> None:
    """Given a catalogue with more partitions, then only the topics named to grow do, and none shrinks."""
    admin, queue = site.cluster.kafka_admin(), site.ns.dispatch("q")
    before = {spec.name: admin.partitions(spec.name) for spec in specs(site.ns)}
    wider = [replace(spec, partitions=spec.partitions + 3) if not spec.exact_partitions else spec for spec in specs(site.ns)]
    assert init_topics(admin, site.ns, wider).grown == ()
    report = init_topics(admin, site.ns, wider, grow=[queue])
    assert report.grown == (queue,)
    assert report.partitions == {**before, queue: before[queue] + 3}
    assert init_topics(admin, site.ns, specs(site.ns), grow=[queue]).partitions[queue] == before[queue] + 3


def test_t28_compact_delete_on_the_ledger_is_an_error(site: Site) -> None:
    change = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, site.ns.runs, incremental_configs=[change])
    admin = site.cluster.kafka_admin()
    admin.client.incremental_alter_configs([resource])[resource].result(DEADLINE_S)
    (problem,) = until(lambda: check_topics(admin, site.ns, specs(site.ns)) or None, "the change is seen")
    assert (problem.topic, problem.severity) == (site.ns.runs, Severity.ERROR)


def test_more_replicas_than_brokers_is_told_with_the_topic(site: Site) -> None:
    many = catalogue(site.ns, ["big"], replication_factor=99, min_insync_replicas=1)
    with pytest.raises(ConfigError, match="refuses to create topic") as raised:
        init_topics(site.cluster.kafka_admin(), site.ns, [one for one in many if one.name.endswith("big")])
    assert site.ns.dispatch("big") in str(raised.value)


def test_a_queue_without_a_topic_is_told_before_anything_is_written(site: Site) -> None:
    writer = site.writer()
    with pytest.raises(TopicMissing, match="dueline init") as raised:
        writer.write([[record(site.ns.runs, b"x")], [record(site.ns.dispatch("nowhere"), b"x")]])
    assert raised.value.topic == site.ns.dispatch("nowhere")
    with pytest.raises(TopicMissing, match="partition 7 of topic"):
        site.writer().write([[record(site.ns.signals, b"x", 7)]])
    assert site.ledger() == []


def test_a_plain_record_for_a_missing_topic_is_reported(site: Site) -> None:
    writer = site.cluster.plain_writer("test")
    reports: list[tuple[object, str]] = []
    writer.send(record(site.ns.name + ".nowhere", b"x"), lambda delivered, error: reports.append((delivered, error)))
    assert writer.flush(DEADLINE_S) == 0
    until(lambda: reports or None, "the report")
    assert reports[0][0] is None
    assert "does not exist" in reports[0][1]
    writer.close()


def test_a_plain_record_is_reported_with_its_place_and_time(site: Site) -> None:
    writer = site.cluster.plain_writer("test")
    reports: list[tuple[Delivered | None, str]] = []
    writer.send(record(site.ns.workers, b"beat"), lambda delivered, error: reports.append((delivered, error)))
    assert writer.flush(DEADLINE_S) == 0
    until(lambda: reports or None, "the report")
    writer.close()
    reader = site.reader({(site.ns.workers, 0): EARLIEST})
    (read,) = until(lambda: reader.poll(0.1, 10) or None, "the heartbeat")
    delivered, error = reports[0]
    assert error == ""
    assert delivered is not None
    assert (delivered.offset, delivered.append_ms) == (read.offset, read.append_ms)
