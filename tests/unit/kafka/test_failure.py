"""What the client's errors mean. The errors are those seen on brokers, with their flags."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from dueline.scheduler.kafka.failure import Failure, classify
from dueline.scheduler.kafka.timing import Timing

ABORTABLE = {"txn_requires_abort": True}


@pytest.mark.parametrize(
    ("code", "flags", "meaning"),
    [
        (KafkaError.ILLEGAL_GENERATION, ABORTABLE, Failure.REFUSED),
        (KafkaError.UNKNOWN_MEMBER_ID, ABORTABLE, Failure.REFUSED),
        (KafkaError.FENCED_INSTANCE_ID, ABORTABLE, Failure.REFUSED),
        (KafkaError.REBALANCE_IN_PROGRESS, ABORTABLE, Failure.REFUSED),
        (KafkaError._FENCED, {"fatal": True}, Failure.FENCED),
        (KafkaError._FENCED, {}, Failure.FENCED),  # PRODUCER_FENCED on an offsets request comes without the flag
        (KafkaError._FENCED, {"retriable": True}, Failure.FENCED),
        (KafkaError._FENCED, ABORTABLE, Failure.FENCED),
        (KafkaError.INVALID_PRODUCER_EPOCH, {}, Failure.FENCED),
        (KafkaError.INVALID_PRODUCER_ID_MAPPING, ABORTABLE, Failure.FENCED),
        (KafkaError.INVALID_TXN_STATE, {"fatal": True}, Failure.FENCED),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, {"fatal": True}, Failure.FENCED),
        (KafkaError.TRANSACTION_ABORTABLE, ABORTABLE, Failure.ABORT),
        (KafkaError._TIMED_OUT, {"retriable": True}, Failure.RETRY),
        (KafkaError._CONFLICT, {"retriable": True}, Failure.RETRY),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ABORTABLE, Failure.UNAUTHORIZED),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, {"fatal": True}, Failure.UNAUTHORIZED),
        (KafkaError._STATE, {}, Failure.ABORT),
        (KafkaError.UNKNOWN, {}, Failure.ABORT),
    ],
)
def test_meaning(code: int, flags: dict[str, bool], meaning: Failure) -> None:
    assert classify(KafkaError(code, "x", **flags)) is meaning


@pytest.mark.parametrize(("transaction_s", "bound_s"), [(None, None), (6.0, None), (None, 20.0), (6.0, 6.0), (2.0, None)])
def test_the_bound_of_doubt_lies_below_the_request_time_out(transaction_s: float | None, bound_s: float | None) -> None:
    timing = Timing.of(transaction_s, bound_s)
    assert timing.doubt_bound_s < timing.transaction_s - 0.1
    assert bound_s is None or timing.doubt_bound_s == bound_s
