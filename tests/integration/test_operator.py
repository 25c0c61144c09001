"""The harness as operator: an open transaction that nobody ends is ended by its own id, and nothing of it is seen."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dueline.scheduler.kafka.client import ClientLog
from dueline.schemas.codec import encode
from dueline.schemas.work import Heartbeat, WorkerState
from proof.faults.operator import end_forgotten
from proof.faults.recorder import read_log
from tests.broker import TestBroker

ANSWER_S = 20.0
TIMEOUT_MS = 300_000
"""Of the open transaction: the broker does not end it within the test."""


def test_what_stands_open_is_ended_by_its_own_id(broker: TestBroker, namespace: str) -> None:
    posts, workers, name = f"{namespace}-posts", f"{namespace}.workers", f"{namespace}.worker.w.1.a"
    config: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers}, logger=ClientLog())
    for made in admin.create_topics([NewTopic(posts, 1, 1), NewTopic(workers, 1, 1)]).values():
        made.result(ANSWER_S)
    beat = Heartbeat(
        incarnation="w.1", worker="w", queue="q", home=0, state=WorkerState.LOST, seq=1, slots=1, transactional_ids=[name]
    )
    plain = Producer(config, logger=ClientLog())
    plain.produce(workers, encode(beat), b"w.1", 0)
    plain.produce(posts, b"stands", b"k", 0)
    assert plain.flush(ANSWER_S) == 0
    torn = Producer({**config, "transactional.id": name, "transaction.timeout.ms": TIMEOUT_MS}, logger=ClientLog())
    torn.init_transactions(ANSWER_S)
    torn.begin_transaction()
    torn.produce(posts, b"torn", b"k", 0)
    assert torn.flush(ANSWER_S) == 0
    [said] = end_forgotten(broker.bootstrap_servers, [(posts, 0), (workers, 0)], workers, ends_s=0.2)
    assert "at offset 1 was forgotten" in said
    assert end_forgotten(broker.bootstrap_servers, [(posts, 0)], workers) == []
    read = read_log(broker.bootstrap_servers, [(posts, 0)])
    assert [entry.value for entry in read[posts, 0]] == [b"stands"]
