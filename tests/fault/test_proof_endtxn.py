"""T11: copies of EndTxn that arrive when the next transaction is open, by a proxy that knows the protocol (`endings`).

The controls show what such a copy does to a client that ignores the doubt; the tests, that a leader behind the same proxy takes
over anew, and that the ledger stays whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dueline.scheduler.kafka.broker.cluster import EmbeddedCluster
from dueline.scheduler.kafka.broker.config import HOST
from dueline.scheduler.kafka.client import ClientLog
from proof.faults.endings import AnswerLost, Delayed, Repeated, Trick
from proof.faults.links import Links
from tests.broker import BrokerKind
from tests.fault.cluster import Cluster, running
from tests.fault.process import Process

LEADER, RAW = "leader", "raw"
JOB = "plain"
ANSWER_S = 20.0
COPIES = 4
REFUSED = ("error code 47", "error code 90")
"""INVALID_PRODUCER_EPOCH, PRODUCER_FENCED."""
ACCEPTED = "error code 0"


class Behind:
    """A broker, and for each of two clients a proxy in front of it."""

    def __init__(self, folder: Path) -> None:
        self.broker = EmbeddedCluster(folder, nodes=1, doors=(LEADER, RAW))
        self.links = Links()
        for client in (LEADER, RAW):
            door = self.broker.doors_of(client)[1]
            self.links.open(client, 1, listen=door.advertised, to=door.port)

    def servers(self, client: str) -> str:
        """Through the client's proxy."""
        return f"{HOST}:{self.broker.doors_of(client)[1].advertised}"

    def play(self, client: str, trick: Trick) -> Trick:
        """Watch the client's requests from now on."""
        self.links.meddle(client, lambda _: trick)
        return trick


@pytest.fixture(scope="module")
def behind(broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("the proxy stands before the embedded broker")
    made = Behind(tmp_path_factory.mktemp("behind"))
    try:
        made.broker.start()
        yield made
    finally:
        made.links.close()
        made.broker.kill()


@pytest.fixture
def cluster(behind: Behind, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    """A namespace on the broker behind the proxy."""
    with running(behind.broker.bootstrap_servers, namespace, tmp_path) as made:
        yield made
    behind.links.clear()


# --- what a copy does -------------------------------------------------------------------------------------------------


def test_t11_control_a_delayed_copy_ends_the_next_transaction_of_who_ignores_the_doubt(behind: Behind, namespace: str) -> None:
    producer = transactional(behind, namespace)
    trick = behind.play(RAW, Delayed())
    written(producer, namespace, b"first")
    producer.commit_transaction(ANSWER_S)  # reports success: the client asked again by itself
    written(producer, namespace, b"second")
    assert trick.done.wait(ANSWER_S), trick.story
    assert ACCEPTED in trick.story[-1], trick.story
    assert trick.struck
    assert committed(behind, namespace, 2) == [b"first", b"second"], "nobody committed the second"


def test_t11_control_a_repeated_copy_ends_the_next_transaction_and_no_sign_warns_of_it(behind: Behind, namespace: str) -> None:
    producer = transactional(behind, namespace)
    trick = behind.play(RAW, Repeated())
    written(producer, namespace, b"first")
    producer.commit_transaction(ANSWER_S)
    written(producer, namespace, b"second")
    assert trick.done.wait(ANSWER_S), trick.story
    assert ACCEPTED in trick.story[-1], trick.story
    assert trick.struck
    assert committed(behind, namespace, 2) == [b"first", b"second"], "nobody committed the second"


# --- what it does to a leader -----------------------------------------------------------------------------------------


def test_t11_a_delayed_copy_of_a_leaders_commit_finds_a_new_producer(behind: Behind, cluster: Cluster) -> None:
    leader = lead(behind, cluster)
    terms = len(cluster.barriers())
    trick = behind.play(LEADER, Delayed())
    cluster.until("the copy arrives", trick.done.is_set)
    assert any(code in trick.story[-1] for code in REFUSED), trick.story
    assert not trick.struck, "it ended no transaction"
    cluster.until_said(leader, "a commit was doubtful; taking over anew")
    cluster.until("a new term", lambda: len(cluster.barriers()) > terms)
    cluster.until_goes_on(JOB)
    cluster.judged(JOB)


def test_t11_a_lost_answer_to_a_leaders_commit_ends_its_term(behind: Behind, cluster: Cluster) -> None:
    leader = lead(behind, cluster)
    terms = len(cluster.barriers())
    trick = behind.play(LEADER, AnswerLost())
    cluster.until("the answer is lost", trick.done.is_set)
    cluster.until_said(leader, "a commit was doubtful; taking over anew")
    cluster.until("a new term", lambda: len(cluster.barriers()) > terms)
    cluster.until_goes_on(JOB)
    cluster.judged(JOB)


def test_t11_repeated_copies_of_a_leaders_commits_leave_the_ledger_whole(behind: Behind, cluster: Cluster) -> None:
    """Nothing warns of them. One that comes before the transaction's last record has the next one refused; one that comes after
    it changes nothing."""
    lead(behind, cluster)
    stories, struck = list[str](), 0
    for nth in range(1, COPIES + 1):
        trick = behind.play(LEADER, Repeated(nth))
        cluster.until("the copy arrives", trick.done.is_set)
        stories += trick.story[-1:]
        struck += trick.struck
        cluster.until_goes_on(JOB, 1)
    assert struck == sum(ACCEPTED in story for story in stories) > 0, stories
    cluster.until_goes_on(JOB)
    cluster.judged(JOB)


# --- steps ------------------------------------------------------------------------------------------------------------


def lead(behind: Behind, cluster: Cluster) -> Process:
    """A scheduler behind the proxy, leading, with a job and a worker that is not behind it."""
    cluster.publish(JOB, {"every": "1s"})
    leader = cluster.scheduler("s1", DUELINE_BOOTSTRAP_SERVERS=behind.servers(LEADER))
    cluster.worker("w1")
    cluster.until_led_by(leader)
    cluster.until_goes_on(JOB, 1)
    return leader


def transactional(behind: Behind, topic: str) -> Producer:
    """A raw producer through the proxy, and a topic."""
    admin = AdminClient({"bootstrap.servers": behind.broker.bootstrap_servers}, logger=ClientLog())
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(ANSWER_S)
    name = f"{topic}.producer"
    settings = {"bootstrap.servers": behind.servers(RAW), "transactional.id": name, "client.id": name}
    producer = Producer(settings, logger=ClientLog())
    producer.init_transactions(ANSWER_S)
    return producer


def written(producer: Producer, topic: str, value: bytes) -> None:
    """A transaction with one record, open yet."""
    producer.begin_transaction()
    producer.produce(topic, value)
    assert producer.flush(ANSWER_S) == 0


def committed(behind: Behind, topic: str, count: int) -> list[bytes]:
    """What a read-committed consumer finds, up to so many."""
    consumer = Consumer(
        {"bootstrap.servers": behind.broker.bootstrap_servers, "group.id": f"{topic}.reader", "auto.offset.reset": "earliest",
         "isolation.level": "read_committed"},
        logger=ClientLog(),
    )  # fmt: skip
    values: list[bytes] = []
    try:
        consumer.subscribe([topic])
        deadline_s = time.monotonic() + ANSWER_S
        while len(values) < count and time.monotonic() < deadline_s:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
    finally:
        consumer.close()
    return values
