"""Three embedded brokers: what they keep when one is killed, doors, and what the client says when a leader does not answer."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dueline.scheduler.core.ports import Unavailable, WriteError
from dueline.scheduler.kafka.admin import KafkaAdmin
from dueline.scheduler.kafka.broker.cluster import EmbeddedCluster
from dueline.scheduler.kafka.broker.errors import BrokerStartFailed
from dueline.scheduler.kafka.broker.instance import silent
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from tests.broker import BrokerKind
from tests.integration.kafka.support import fence, joined, record, returns

TOPIC = "kept"
ANSWER_S = 30.0
RECORDS = 50
TRANSACTION_S = 4.0
RETURNS_S = 40.0
"""After the transaction time-out: connections are closed as idle, and a new coordinator is asked. On a busy machine that took
more than 10 s; a client that goes on asking the old one never returns."""
ASKED = 12
"""Questions about a partition whose leader was just killed."""


@pytest.fixture(scope="module")
def three(broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("three embedded nodes")
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("three"), nodes=3, doors=("one", "two"))
    try:
        cluster.start()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}, logger=silent)
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(ANSWER_S)
        yield cluster
    finally:
        cluster.kill()


def leader_of(cluster: EmbeddedCluster, topic: str = TOPIC) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}, logger=silent)
    return int(admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions[0].leader)


def write(cluster: EmbeddedCluster) -> int:
    """The offset after the last record that was acknowledged, all of them being."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"}, logger=silent)
    for _ in range(RECORDS):
        producer.produce(TOPIC, b"x", on_delivery=lambda error, message: offsets.append(-1 if error else message.offset() or 0))
    assert producer.flush(ANSWER_S) == 0
    assert len(offsets) == RECORDS
    assert min(offsets) >= 0, offsets
    return max(offsets) + 1


def test_acknowledged_records_survive_the_kill_of_their_leader(three: EmbeddedCluster) -> None:
    end = write(three)
    node = three.nodes[leader_of(three)]
    node.kill()
    assert not node.is_running
    assert write(three) == end + RECORDS, "two of three nodes go on"
    node.start()
    assert node.is_running


def test_offsets_are_sent_after_their_groups_coordinator_left(three: EmbeddedCluster, namespace: str) -> None:
    """The client would go on asking the one that left, for ever (librdkafka 2.16, its issue 5511)."""
    died: list[str] = []
    config = KafkaConfig(bootstrap_servers=three.bootstrap_servers)
    cluster = KafkaCluster(config, client_name="left", die=lambda: died.append("died"))
    reader = cluster.group_reader(namespace, TOPIC, session_timeout_s=30.0)
    offsets = fence(joined(reader, partitions=1), (TOPIC, 0))
    writer = cluster.writers().open([namespace], transaction_timeout_s=TRANSACTION_S, doubt_bound_s=2.0)
    node = three.nodes[leader_of(three, "__consumer_offsets")]

    def send() -> None:
        with contextlib.suppress(WriteError):  # it took longer than the broker keeps a transaction open
            writer.write([[record(TOPIC, b"x")]], offsets=offsets)

    assert returns(send, ANSWER_S), "the group's coordinator is there"
    try:
        node.stop()
        assert returns(send, TRANSACTION_S + RETURNS_S)
        assert died == []
    finally:
        node.start()
        writer.close()
        reader.close()
        cluster.close()


def test_each_door_leads_to_addresses_of_its_own(three: EmbeddedCluster) -> None:
    ports = [door.advertised for name in ("one", "two") for door in three.doors_of(name).values()]
    assert len(set(ports)) == 6
    with pytest.raises(LookupError):
        three.doors_of("three")


def test_a_folder_of_another_shape_is_refused(three: EmbeddedCluster) -> None:
    folder = three.nodes[1].folder.path.parent
    with pytest.raises(BrokerStartFailed, match="another shape"):
        EmbeddedCluster(folder, nodes=1)


def test_an_end_offset_is_never_made_up_while_the_leader_does_not_answer(three: EmbeddedCluster) -> None:
    """librdkafka reports success without an offset then. A reader that took that for an end read nothing, and what was
    committed was written again."""
    end = write(three)
    asking = KafkaAdmin(KafkaConfig(bootstrap_servers=three.bootstrap_servers), "asking", answer_s=1.0)
    assert asking.end_offset((TOPIC, 0)) == end
    node = three.nodes[leader_of(three)]
    answers: list[int] = []

    def ask() -> None:
        for _ in range(ASKED):
            try:
                answers.append(asking.end_offset((TOPIC, 0)))
            except Unavailable:
                continue

    asker = threading.Thread(target=ask)
    asker.start()
    node.kill()
    asker.join(ANSWER_S)
    node.start()
    assert not asker.is_alive()
    assert set(answers) <= {end}, answers
