"""What an error of the transactional client means for the one who writes.

The client's flags are not enough: PRODUCER_FENCED is not flagged fatal on some requests, and a fenced producer means
lost leadership whatever the flags say (L8). An unknown error is never taken for a good one: it ends the writer.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from confluent_kafka import KafkaError


class Failure(Enum):
    """The kinds that lead to different steps."""

    FENCED = "fenced"
    """A newer owner, or the client failed for good."""
    REFUSED = "refused"
    """The generation is stale; abort."""
    UNAUTHORIZED = "unauthorized"
    """A right is missing; abort."""
    ABORT = "abort"
    """Abort; whatever is not known better."""
    RETRY = "retry"
    """The same call again."""


FENCING: Final = frozenset({
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,  # the id expired while idle, or its state is lost: a new producer is needed
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.TRANSACTION_COORDINATOR_FENCED,
})

GENERATION: Final = frozenset({
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
})

AUTHORIZATION: Final = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
})


def classify(error: KafkaError) -> Failure:
    """The meaning of one error, whichever call raised it."""
    code = error.code()
    if code in FENCING:
        return Failure.FENCED
    if code in AUTHORIZATION:
        return Failure.UNAUTHORIZED
    if error.fatal():
        return Failure.FENCED
    if code in GENERATION:
        return Failure.REFUSED
    if error.txn_requires_abort():
        return Failure.ABORT
    if error.retriable():
        return Failure.RETRY
    return Failure.ABORT


def resource_of(error: KafkaError, topic: str, transactional_id: str) -> tuple[str, str]:
    """What an error of AUTHORIZATION inside a transaction is about, and the right that is missing."""
    code = error.code()
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return f"topic {topic!r}", "WRITE"
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return "the consumer group", "READ"
    if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return f"transactional id {transactional_id!r}", "WRITE"
    return "the cluster", "IDEMPOTENT_WRITE"
