"""A link that fails while the broker lives. Every connection breaks: offsets can be sent in a transaction afterwards.

The client's own default would not do (librdkafka 2.16, its issue 5511): without any connection left it throws the brokers it
knows away, keeps asking the thrown away one to coordinate the group, and `send_offsets_to_transaction` never returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from dueline.scheduler.kafka.broker.cluster import EmbeddedCluster
from dueline.scheduler.kafka.broker.config import HOST
from dueline.scheduler.kafka.client import REQUEST_MS
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from proof.faults.links import Links, Weather
from proof.faults.wire import Way, request_of
from tests.broker import BrokerKind
from tests.integration.kafka.support import DEADLINE_S, Site, fence, joined, raw_transaction, record, returns, site_on, until

DOOR = "writer"
CUT_S = 1.0
RETURNS_S = 15.0
HANGS_S = 8.0
"""Four times what the call of the control is given."""
ROUNDS = 4
FETCH = 1
"""The request's number in the protocol."""
TRIES = 10
"""Of the control: the client hangs after most cuts, not after each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A site, and an address of its broker behind a proxy."""

    site: Site
    servers: str
    links: Links

    def cut(self) -> None:
        """All connections break, and for a while no new one is taken."""
        self.links.set(DOOR, 1, Weather(cut=True))
        time.sleep(CUT_S)  # awaited: the client has met refused connections, which it tells nobody of
        self.links.set(DOOR, 1, Weather())


@pytest.fixture
def behind(broker_kind: BrokerKind, namespace: str, tmp_path: Path) -> Iterator[Behind]:
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("the proxy stands before the embedded broker")
    broker, links = EmbeddedCluster(tmp_path / "broker", nodes=1, doors=(DOOR,)), Links()
    try:
        door = broker.doors_of(DOOR)[1]
        links.open(DOOR, 1, listen=door.advertised, to=door.port)
        broker.start()
        with site_on(broker.bootstrap_servers, namespace) as site:
            yield Behind(site=site, servers=f"{HOST}:{door.advertised}", links=links)
    finally:
        links.close()
        broker.kill()


def test_offsets_are_sent_after_every_connection_was_lost(behind: Behind) -> None:
    site = behind.site
    assignment = joined(site.member(), partitions=1)
    cluster = KafkaCluster(KafkaConfig(bootstrap_servers=behind.servers), client_name="behind", die=lambda: site.died.append("x"))
    site.stack.callback(cluster.close)
    writer = cluster.writers().open(["cut"])
    site.stack.callback(writer.close)
    for number in range(ROUNDS):
        group = [record(site.ns.runs, b"%d" % number)]
        assert returns(lambda: writer.write([group], offsets=fence(assignment, site.control)), RETURNS_S), number  # noqa: B023
        behind.cut()
    assert site.ledger() == [b"0", b"1", b"2", b"3"]


@dataclass(slots=True)
class Thief:
    """Takes one fetch away; the connection stands."""

    stolen: bool = False

    def request(self, frame: bytes, _way: Way) -> bool:
        taken = not self.stolen and request_of(frame).api == FETCH
        self.stolen = self.stolen or taken
        return not taken

    def answer(self, _frame: bytes, _way: Way) -> bool:
        return True


def test_a_reader_whose_fetch_was_lost_reads_on_after_its_request_time_out(behind: Behind) -> None:
    """Given a request that is lost on a connection that stands: the client's own default is deaf for a minute."""
    site = behind.site
    cluster = KafkaCluster(KafkaConfig(bootstrap_servers=behind.servers), client_name="behind", die=lambda: site.died.append("x"))
    site.stack.callback(cluster.close)
    reader = cluster.log_reader("deaf")
    site.stack.callback(reader.close)
    reader.assign({site.runs: 0})
    site.writer("first").write([[record(site.ns.runs, b"0")]])
    until(lambda: reader.poll(0.1, 10) or None, "the first record")
    thief = Thief()
    behind.links.meddle(DOOR, lambda _: thief)
    until(lambda: thief.stolen or None, "a fetch that is lost")
    lost_s = time.monotonic()
    site.writer().write([[record(site.ns.runs, b"1")]])
    assert [one.value for one in until(lambda: reader.poll(0.1, 10) or None, "the record")] == [b"1"]
    assert 3.0 < time.monotonic() - lost_s < REQUEST_MS / 1000 + 3.0


def test_control_the_clients_default_hangs(behind: Behind) -> None:
    site = behind.site
    consumer = site.raw_consumer("control", **{"session.timeout.ms": 45_000})
    consumer.subscribe([site.ns.control])
    end_s = time.monotonic() + DEADLINE_S
    while not consumer.assignment() and time.monotonic() < end_s:
        consumer.poll(0.1)
    metadata = consumer.consumer_group_metadata()
    producer = site.raw("control", **{"bootstrap.servers": behind.servers})
    offset = TopicPartition(site.ns.control, 0, 0)
    assert raw_transaction(producer, site.ns.runs, b"x", offset, metadata) == 0

    def send() -> None:
        producer.begin_transaction()
        producer.send_offsets_to_transaction([offset], metadata, HANGS_S / 4)
        producer.abort_transaction(DEADLINE_S)

    for _ in range(TRIES):
        behind.cut()
        if not returns(send, HANGS_S):
            return
    pytest.fail("the client has learnt to find the coordinator again: its default can be had back")
