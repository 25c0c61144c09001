"""Bare clients, for what dueline's own never do: leave a transaction open, read what was never committed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from dueline.scheduler.kafka.client import ClientLog

ANSWER_S: Final = 30.0


@contextmanager
def opened(servers: str, topic: str, partition: int, timeout_ms: int) -> Iterator[Producer]:
    """A stranger's transaction with one record in the partition. It is left open; the block may end it."""
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": f"stranger-{uuid.uuid4().hex}", "transaction.timeout.ms": timeout_ms},
        logger=ClientLog(),
    )
    producer.init_transactions(ANSWER_S)
    producer.begin_transaction()
    producer.produce(topic, b"a stranger's", b"stranger", partition=partition)
    producer.flush(ANSWER_S)
    yield producer
    producer.purge()


def read_uncommitted(servers: str, topic: str, partitions: int) -> list[bytes | None]:
    """The values of every record that was written, committed or not, as of now."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": f"reader-{uuid.uuid4().hex}", "enable.auto.commit": False,
            "isolation.level": "read_uncommitted", "enable.partition.eof": True, "auto.offset.reset": "earliest",
        },
        logger=ClientLog(),
    )  # fmt: skip
    values: list[bytes | None] = []
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        at_end: set[int] = set()
        deadline_s = time.monotonic() + ANSWER_S
        while len(at_end) < partitions:
            assert time.monotonic() < deadline_s, f"{topic} is not read to its end"
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition() or 0)
    finally:
        consumer.close()
    return values


def stolen(servers: str, transactional_ids: tuple[str, ...]) -> None:
    """Initialise these ids, as another deployment with the same ones would at its start."""
    for name in transactional_ids:
        Producer({"bootstrap.servers": servers, "transactional.id": name}, logger=ClientLog()).init_transactions(ANSWER_S)


@contextmanager
def member(servers: str, group: str, topic: str) -> Iterator[Callable[[], bool]]:
    """A bare member of a group, of dueline's own assignor, that reads this topic; yields a poll: does it hold a partition?"""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": group, "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
        },
        logger=ClientLog(),
    )  # fmt: skip
    consumer.subscribe([topic])

    def joined() -> bool:
        consumer.poll(0.05)
        return bool(consumer.assignment())

    try:
        yield joined
    finally:
        consumer.close()
