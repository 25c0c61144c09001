"""The raw Kafka loops that stand beside: no scheduler, no decision, only the bytes, in transactions as large as dueline's.

They use the client's settings that dueline found fastest: two transactional producers in turns, a retry back-off of 2 ms.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench.world import Failed
from dueline.scheduler.core.ports import Received

FLUSH_S: Final = 30.0
READ_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Records of one kind, and whether the loop reads them before it goes on."""

    records: Sequence[Received]
    awaited: bool


class Turns:
    """Two transactional producers that take turns."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self._producers = [_producer(bootstrap_servers, f"{name}.{letter}") for letter in "ab"]

    def commit(self, records: Sequence[Received]) -> None:
        """One transaction."""
        producer = self._producers[0]
        self._producers.reverse()
        producer.begin_transaction()
        for record in records:
            producer.produce(record.topic, record.value, record.key, record.partition, headers=list(record.headers))
        if producer.flush(FLUSH_S):
            raise Failed(f"the broker took more than {FLUSH_S:.0f} s for {len(records)} records")
        producer.commit_transaction(FLUSH_S)


def twin(records: Sequence[Received], namespace: str, other: str) -> list[Received]:
    """The same records, for the other namespace's topics."""
    return [replace(record, topic=other + record.topic.removeprefix(namespace)) for record in records]


def one_by_one(bootstrap_servers: str, records: Sequence[Received]) -> list[float]:
    """Commit each record by itself, one after the other; milliseconds of each."""
    turns = Turns(bootstrap_servers, f"raw.{time.time_ns()}")
    turns.commit(records[:1])
    turns.commit(records[:1])  # connections and producer ids are there now
    took = []
    for record in records:
        began = time.perf_counter()
        turns.commit([record])
        took.append((time.perf_counter() - began) * 1000)
    return took


def pipeline(bootstrap_servers: str, stages: Sequence[Sequence[Wave]], slice_size: int) -> float:
    """Seconds for all of it. A stage is the waves of one transaction; what is awaited is read back, committed, before the
    next stage is written. All waves have the same number of records, and go through the stages `slice_size` at a time."""
    count = len(stages[0][0].records)
    writers = [Turns(bootstrap_servers, f"raw.{time.time_ns()}.{number}") for number in range(len(stages))]
    readers = [_reader(bootstrap_servers, stage) for stage in stages]
    began = time.perf_counter()
    for start in range(0, count, slice_size):
        for writer, reader, stage in zip(writers, readers, stages, strict=True):
            parts = [(wave.records[start : start + slice_size], wave.awaited) for wave in stage]
            writer.commit([record for part, _ in parts for record in part])
            _await(reader, sum(len(part) for part, awaited in parts if awaited))
    took = time.perf_counter() - began
    for reader in readers:
        reader.close()
    return took


def slices(records: Sequence[Received], size: int) -> Iterator[Sequence[Received]]:
    """In order, `size` at a time."""
    for start in range(0, len(records), size):
        yield records[start : start + size]


# --- steps ------------------------------------------------------------------------------------------------------------


def _producer(bootstrap_servers: str, name: str) -> Producer:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers, "transactional.id": name, "linger.ms": 0, "retry.backoff.ms": 2,
        "retry.backoff.max.ms": 50, "queue.buffering.max.messages": 1_000_000, "socket.nagle.disable": True,
    }  # fmt: skip
    producer = Producer(settings)
    producer.init_transactions(FLUSH_S)
    return producer


def _reader(bootstrap_servers: str, stage: Sequence[Wave]) -> Consumer:
    """Reads what the stage awaits, from where those partitions end now."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers, "group.id": "raw.unused", "enable.auto.commit": False,
        "isolation.level": "read_committed", "fetch.wait.max.ms": 50, "fetch.queue.backoff.ms": 10,
    }  # fmt: skip
    consumer = Consumer(settings)
    places = sorted({(record.topic, record.partition) for wave in stage if wave.awaited for record in wave.records})
    starts = []
    for topic, number in places:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=READ_S)
        starts.append(TopicPartition(topic, number, end))
    consumer.assign(starts)
    return consumer


def _await(reader: Consumer, count: int) -> None:
    deadline = time.perf_counter() + READ_S
    while count > 0:
        first = reader.poll(0.05)
        messages = [first, *reader.consume(10_000, 0)] if first is not None else []
        for message in messages:
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise Failed(f"the raw loop's reader: {error}")
            count -= error is None
        if time.perf_counter() > deadline:
            raise Failed(f"the raw loop's reader still waits for {count} records")
