"""L9: does this broker check the generation at all? Some Kafka-compatible brokers accept any.

A throw-away member of a throw-away group begins a transaction under a throw-away id and sends the offset under the
generation before its own. A broker with the fence refuses. The transaction is aborted in any case.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from dueline.scheduler.core.ports import Partition, Unavailable

from . import client
from .capture import Metadata
from .clock import monotonic_s
from .config import KafkaConfig
from .errors import NoFence, NotAuthorized
from .failure import Failure, classify
from .group import KafkaGroupReader
from .outage import Outage

log = logging.getLogger(__name__)

JOIN_S: Final = 20.0  # brokers wait group.initial.rebalance.delay.ms, 3 s by default, before the first generation
CALL_S: Final = 15.0

Forge = Callable[[bytes], bytes]


def generation_before(raw: bytes) -> bytes:
    """The metadata of one generation ago."""
    metadata = Metadata.parse(raw)
    return replace(metadata, generation=metadata.generation - 1).raw()


def sentinel(raw: bytes) -> bytes:
    """What the client answers once its member fell out. Every broker accepts it, so it stands for one without a fence."""
    return replace(Metadata.parse(raw), generation=-1, member="").raw()


def check_fence(
    config: KafkaConfig, *, prefix: str, partition: Partition, session_s: float, forge: Forge = generation_before
) -> None:
    """Returns when the broker refuses a stale generation. `prefix` names the throw-away ids, `partition` is any that
    exists (the control topic's). Raises NoFence, Unavailable, NotAuthorized, ConfigError."""
    name = f"{prefix}.selftest.{uuid.uuid4().hex[:8]}"
    member = KafkaGroupReader(
        config, name, group=name, topic=partition[0], session_timeout_s=session_s, max_poll_interval_s=60.0
    )
    try:
        accepted = _accepts(config, name, partition, forge(_join(member, name)))
    finally:
        member.close()
    if accepted:
        raise NoFence(
            "this broker accepts a transaction under a stale group generation, so it would let a leader that was replaced "
            "go on writing. dueline needs a broker that checks it, as Apache Kafka does; use one"
        )
    log.info("the broker refuses a stale generation", extra={"action": "selftest.passed"})


def _join(member: KafkaGroupReader, name: str) -> bytes:
    deadline = monotonic_s() + JOIN_S
    while monotonic_s() < deadline:
        assignment, _ = member.poll(0.2, 1)
        if assignment is not None and isinstance(assignment.metadata, bytes):
            return assignment.metadata
    raise Unavailable(f"{name}: could not join a group within {JOIN_S:.0f} s; is the cluster up, and the topic there?")


def _accepts(config: KafkaConfig, name: str, partition: Partition, metadata: bytes) -> bool:
    producer = client.producer(
        config, Outage(name).note, client_id=name, transactional_id=name, transaction_timeout_ms=20_000
    )
    try:
        producer.init_transactions(CALL_S)
        producer.begin_transaction()
        try:
            producer.send_offsets_to_transaction([TopicPartition(*partition, 0)], metadata, CALL_S)
        except KafkaException as exception:
            if classify(client.kafka_error(exception)) is not Failure.REFUSED:
                raise
            return False
        else:
            return True
        finally:
            producer.abort_transaction(CALL_S)
    except KafkaException as exception:
        error = client.kafka_error(exception)
        if classify(error) is Failure.UNAUTHORIZED:
            raise NotAuthorized(f"transactional ids and groups that begin with {name.rpartition('.')[0]!r}", "WRITE") from None
        raise Unavailable(f"{name}: the self-test of the fence could not be completed ({error})") from None
