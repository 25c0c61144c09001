"""Reads every topic as a read-committed consumer finds it, for the history."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from dueline.scheduler.kafka.client import ClientLog
from dueline.scheduler.kafka.vocabulary import AdminClient, Consumer, IsolationLevel, KafkaError, OffsetSpec, TopicPartition
from proof.history.entry import Entry
from proof.history.history import Partition

READ_S: Final = 120.0


class NotRead(Exception):
    """A topic could not be read to its end in time."""


def partitions_of(servers: str, prefix: str) -> list[Partition]:
    """Every partition of every topic whose name begins so."""
    topics = AdminClient({"bootstrap.servers": servers}, logger=ClientLog()).list_topics(timeout=10.0).topics
    return [(name, number) for name, topic in sorted(topics.items()) if name.startswith(prefix) for number in topic.partitions]


def ends_of(servers: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """Where each ends, open transactions included."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for topic, number in partitions}  # type: ignore[no-untyped-call]
    admin = AdminClient({"bootstrap.servers": servers}, logger=ClientLog())
    answers = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=10.0)
    return {(one.topic, one.partition): answer.result(15.0).offset for one, answer in answers.items()}


def read_log(servers: str, partitions: Iterable[Partition], *, within_s: float = READ_S) -> dict[Partition, list[Entry]]:
    """Every committed record of these partitions, as of now; transactions that are still open are waited for, since a killed
    process leaves one until the broker ends it. Raises NotRead."""
    wanted = ends_of(servers, partitions)
    found: defaultdict[Partition, list[Entry]] = defaultdict(list)
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": f"record-{uuid.uuid4().hex}", "enable.auto.commit": False,
            "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest",
        },
        logger=ClientLog(),
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in wanted])
        open_yet = set(wanted)
        deadline_s = time.monotonic() + within_s
        while open_yet:
            if time.monotonic() > deadline_s:
                raise NotRead(f"not read to the end within {within_s:.0f} s: {sorted(open_yet)} of {wanted}")
            for message in consumer.consume(5_000, 0.2):
                where = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is None:
                    found[where].append(
                        Entry(
                            topic=where[0], partition=where[1], offset=message.offset() or 0,
                            append_ms=message.timestamp()[1], key=message.key(), value=message.value(),
                        )
                    )  # fmt: skip
                elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= wanted[where]:
                    open_yet.discard(where)
    finally:
        consumer.close()
    return {where: found[where] for where in sorted(wanted)}
