"""What the client's errors mean, and what counts as doubt. The errors are those seen on brokers, with their flags."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from dueline.scheduler.kafka.doubt import SUPPRESSED_S, DoubtLatch
from dueline.scheduler.kafka.failure import Failure, classify
from dueline.scheduler.kafka.transaction import Timing

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


class Hand:
    """A clock moved by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


BROKE = "127.0.0.1:9092/1: Disconnected: connection closed by peer: receive 0 after POLLIN (after 12ms in state UP)"


def test_an_undisturbed_commit_is_beyond_doubt() -> None:
    latch = DoubtLatch(Hand())
    latch.note("TXNERR", "Current transaction failed in state InTransaction")
    assert latch.reason() == ""


@pytest.mark.parametrize(
    ("facility", "text"),
    [
        ("FAIL", BROKE),
        ("FAIL", "TxnCoordinator: 127.0.0.1:9092: Disconnected: connection reset by peer (after 9ms in state UP)"),
        ("FAIL", "127.0.0.1:9092/1: 1 request(s) timed out: disconnect (average rtt 1.0ms) (after 9ms in state UP)"),
        ("FAIL", "127.0.0.1:9092/1: something not known yet"),
        ("REQTMOUT", "127.0.0.1:9092/1: Timed out EndTxnRequest in flight (after 9900ms, timeout #0)"),
    ],
)
def test_a_connection_that_breaks_is_doubt(facility: str, text: str) -> None:
    latch = DoubtLatch(Hand())
    latch.note(facility, text)
    assert text in latch.reason()


def test_a_break_shortly_before_is_doubt_since_the_line_of_a_second_one_would_be_dropped() -> None:
    clock = Hand()
    latch = DoubtLatch(clock)
    latch.note("FAIL", BROKE)
    clock.now += SUPPRESSED_S - 1
    assert latch.reason() != ""
    clock.now += 2
    assert latch.reason() == ""


@pytest.mark.parametrize(
    "text",
    [
        "host:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused (after 0ms in state CONNECT)",
        "host:1/3: Disconnected (after 3ms in state APIVERSION_QUERY)",
        "host:1/3: SSL handshake failed (after 3ms in state SSL_HANDSHAKE)",
    ],
)
def test_a_connection_that_never_came_up_carried_no_commit(text: str) -> None:
    latch = DoubtLatch(Hand())
    latch.note("FAIL", text)
    assert latch.reason() == ""


@pytest.mark.parametrize(("transaction_s", "bound_s"), [(None, None), (6.0, None), (None, 20.0), (6.0, 6.0), (2.0, None)])
def test_the_bound_of_doubt_lies_below_the_request_time_out(transaction_s: float | None, bound_s: float | None) -> None:
    timing = Timing.of(transaction_s, bound_s)
    assert timing.doubt_bound_s < timing.transaction_s - 0.1
    assert bound_s is None or timing.doubt_bound_s == bound_s
