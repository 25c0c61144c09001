"""The broker goes away and comes back: said once, nothing lost, nobody restarts anything. And rights that are missing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from dueline.scheduler.core.ports import EARLIEST, Aborted, Delivered, Unavailable, WriteError
from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.clock import monotonic_s
from dueline.scheduler.kafka.errors import NotAuthorized, WriteNotAuthorized
from dueline.workers.silence import Answers, ask
from tests.broker import BrokerKind
from tests.integration.kafka.support import DEADLINE_S, Site, joined, record, site_on, until


@pytest.fixture
def own_site(own_broker: EmbeddedBroker, namespace: str) -> Iterator[Site]:
    with site_on(own_broker.bootstrap_servers, namespace) as made:
        yield made


def said(caplog: pytest.LogCaptureFixture, action: str, client: str) -> int:
    return sum(
        getattr(one, "action", "") == action and getattr(one, "client", "").endswith(client) for one in caplog.records
    )


def test_everything_waits_for_the_broker_and_goes_on_by_itself(
    own_site: Site, own_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dueline")
    admin = own_site.cluster.admin()
    member = own_site.member()
    before = joined(member, partitions=1)
    reader = own_site.reader({own_site.runs: EARLIEST})
    plain = own_site.cluster.plain_writer("beat")
    contact = own_site.cluster.contact((own_site.ns.workers, 0))
    own_site.stack.callback(contact.close)
    own_site.writer().write([[record(own_site.ns.runs, b"1")]])
    assert until(lambda: reader.poll(0.1, 10) or None, "the first record")
    since = until(lambda: contact.contacted().since_s if contact.contacted().until_s > 0 else None, "contact")

    own_broker.kill()
    died = monotonic_s()
    with pytest.raises(Unavailable):
        admin.end_offset(own_site.runs)
    with pytest.raises(Unavailable):
        own_site.writer("another")
    until(lambda: True if member.poll(0.2, 10)[0] is None else None, "the member knows that it fell out")
    assert reader.poll(0.2, 10) == []
    assert contact.contacted().until_s < died
    reports: list[Delivered | None] = []  # sent last: it is given up after DELIVERY_S
    plain.send(record(own_site.ns.runs, b"2"), lambda delivered, _: reports.append(delivered))

    own_broker.start()
    read = until(lambda: reader.poll(0.1, 10) or None, "what was sent meanwhile")
    assert [one.value for one in read] == [b"2"]
    until(lambda: reports or (plain.flush(0.1) and None), "the delivery report")
    assert reports[0] is not None
    assert joined(member, than=before, partitions=1).serial > before.serial
    assert until(lambda: answered(lambda: admin.end_offset(own_site.runs)), "the admin client answers again") >= 2
    again = until(lambda: contact.contacted() if contact.contacted().until_s > died else None, "contact again")
    assert again.since_s > died > since
    own_site.writer().write([[record(own_site.ns.runs, b"3")]])
    assert said(caplog, "kafka.away", "-test.test") == 1
    assert said(caplog, "kafka.back", "-test.test") == 1
    plain.close()


def answered(ask: Callable[[], int]) -> int | None:
    """None while the broker that came back does not know its partitions yet."""
    try:
        return ask()
    except Unavailable:
        return None


def test_a_broker_that_is_away_at_the_start_is_waited_for(own_site: Site, own_broker: EmbeddedBroker) -> None:
    own_broker.kill()
    reader = own_site.reader({own_site.runs: EARLIEST})
    member = own_site.member()
    assert reader.poll(0.3, 10) == []
    assert member.poll(0.3, 10) == (None, [])
    started = threading.Thread(target=own_broker.start)
    started.start()
    joined(member, partitions=1)
    started.join()
    until(lambda: True if (reader.poll(0.1, 10), reader.position(own_site.runs))[1] == 0 else None, "the end")


def test_clients_close_quickly_while_the_broker_is_away(own_site: Site, own_broker: EmbeddedBroker) -> None:
    member, writer = own_site.member(), own_site.writer(transaction_timeout_s=2.0)
    joined(member, partitions=1)
    with pytest.raises(WriteError):
        writer.write([[record(own_site.ns.runs, b"x")]], before_commit=lambda _: own_broker.kill())
    started = time.monotonic()
    writer.close()
    member.close()
    assert time.monotonic() - started < 10.0


# --- rights -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(broker_kind: BrokerKind, tmp_path: Path, namespace: str) -> Iterator[Site]:
    """A broker that allows everything but what an ACL denies."""
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("needs a broker with an authorizer of its own: use --broker embedded")
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with (
        EmbeddedBroker(tmp_path / "guarded", overrides=authorizer) as broker,
        site_on(broker.bootstrap_servers, namespace) as site,
    ):
        yield site


def deny(site: Site, kind: ResourceType, name: str, operation: AclOperation) -> None:
    def binding(operation: AclOperation, permission: AclPermissionType) -> AclBinding:
        return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission)

    rules = [binding(operation, AclPermissionType.DENY), binding(AclOperation.ALL, AclPermissionType.ALLOW)]
    for answer in site.cluster.kafka_admin().client.create_acls(rules).values():
        answer.result(DEADLINE_S)


def test_a_missing_right_to_write_names_the_topic_and_what_to_do(guarded: Site) -> None:
    topic = guarded.ns.dispatch("q")
    deny(guarded, ResourceType.TOPIC, topic, AclOperation.WRITE)
    with pytest.raises(WriteNotAuthorized, match="grant WRITE") as raised:
        guarded.writer().write([[record(guarded.ns.runs, b"x")], [record(topic, b"x")]])
    assert isinstance(raised.value, Aborted)
    assert (raised.value.topic, raised.value.operation) == (topic, "WRITE")
    assert guarded.ledger() == []


def test_a_missing_right_to_read_names_the_topic(guarded: Site) -> None:
    reader = guarded.reader({guarded.runs: EARLIEST})
    deny(guarded, ResourceType.TOPIC, guarded.ns.runs, AclOperation.READ)
    with pytest.raises(NotAuthorized, match="READ on topic") as raised:
        until(lambda: reader.poll(0.1, 10) or None, "never")
    assert raised.value.topic == guarded.ns.runs


def test_a_missing_right_on_the_group_names_the_group(guarded: Site) -> None:
    deny(guarded, ResourceType.GROUP, guarded.ns.scheduler_group, AclOperation.READ)
    with pytest.raises(NotAuthorized, match="READ on group"):
        joined(guarded.member())


def test_a_missing_right_on_the_transactional_id_names_the_id(guarded: Site) -> None:
    deny(guarded, ResourceType.TRANSACTIONAL_ID, guarded.ns.leader_ids[0], AclOperation.WRITE)
    with pytest.raises(NotAuthorized, match="WRITE on transactional id"):
        guarded.writer()


def test_a_missing_right_to_describe_names_the_topic_and_leaves_it_out_of_the_list(guarded: Site) -> None:
    topic, admin = guarded.ns.dispatch("q"), guarded.cluster.admin()
    assert admin.partitions(topic) > 0
    deny(guarded, ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    with pytest.raises(NotAuthorized, match="DESCRIBE on topic") as raised:
        until(lambda: admin.partitions(topic) == 0, "never")
    assert raised.value.topic == topic
    assert admin.leaderless(topic) == frozenset()  # as if it had leaders: `partitions` is the one that tells
    assert ask(admin, [topic, guarded.ns.runs]) == Answers(missing=frozenset(), silent=frozenset({topic}))
