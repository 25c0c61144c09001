"""What makes an acknowledged commit doubtful. Log lines and statistics are in the form in which the client brings them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dueline.scheduler.kafka.doubt import COORDINATOR, SUPPRESSED_S, DoubtLatch

BROKE = f"[thrd:{COORDINATOR}]: {COORDINATOR}: 127.0.0.1:9092: Disconnected: connection closed by peer (after 12ms in state UP)"
TIMED_OUT = f"[thrd:{COORDINATOR}]: {COORDINATOR}/1: Timed out EndTxnRequest in flight (after 9900ms, timeout #0)"


class Client:
    """A producer and its clock, moved by hand. `serving`: what happens when callbacks are served for a while."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.latch = DoubtLatch(lambda: self.now)
        self.counts = {"disconnects": 3, "req_timeouts": 0}
        self.serving: Callable[[], None] = self.tell

    def tell(self) -> None:
        """The next statistics."""
        text = json.dumps({"brokers": {"127.0.0.1:9092/1": {}, COORDINATOR: {**self.counts, "txretries": 7}}})
        self.latch.counted(text)

    def serve(self, timeout_s: float) -> None:
        """Serve callbacks."""
        if timeout_s:
            self.now += timeout_s
            self.serving()

    def commit(self, meanwhile: Callable[[], None] = lambda: None) -> str:
        """A commit, and its doubt."""
        self.latch.begin(self.serve)
        meanwhile()
        return self.latch.reason(self.serve)


def test_an_undisturbed_commit_is_beyond_doubt_and_waits_for_nothing() -> None:
    client = Client()
    client.latch.note("TXNERR", f"{COORDINATOR}: Current transaction failed in state InTransaction")
    client.serving = lambda: pytest.fail("it waited for statistics")
    assert client.commit() == ""


@pytest.mark.parametrize(
    ("facility", "text"),
    [
        ("FAIL", BROKE),
        ("FAIL", f"{COORDINATOR}: 127.0.0.1:9092: 1 request(s) timed out: disconnect (after 9ms in state UP)"),
        ("FAIL", f"{COORDINATOR}: something not known yet"),
        ("REQTMOUT", TIMED_OUT),
    ],
)
def test_a_connection_to_the_coordinator_that_breaks_during_a_commit_is_doubt(facility: str, text: str) -> None:
    client = Client()
    client.tell()
    assert text in client.commit(lambda: client.latch.note(facility, text))


def test_a_break_shortly_before_is_no_doubt_once_the_counts_prove_that_there_was_no_second() -> None:
    client = Client()
    client.latch.note("FAIL", BROKE)
    client.tell()
    assert client.commit() == ""


@pytest.mark.parametrize("count", ["disconnects", "req_timeouts"])
def test_a_second_break_whose_line_was_dropped_shows_in_the_counts(count: str) -> None:
    client = Client()
    client.latch.note("FAIL", BROKE)
    client.tell()

    def break_silently() -> None:
        client.counts[count] += 1

    assert BROKE in client.commit(break_silently)
    assert client.commit() == ""  # by then the counts stand still again


def test_without_counts_from_before_the_commit_there_is_no_proof() -> None:
    client = Client()
    client.latch.note("FAIL", BROKE)
    assert BROKE in client.commit()


def test_statistics_that_do_not_come_prove_nothing() -> None:
    client = Client()
    client.latch.note("FAIL", BROKE)
    client.tell()
    client.serving = lambda: None
    assert BROKE in client.commit()
    assert client.now < 1000.0 + SUPPRESSED_S  # it was not the time that passed which ended the doubt


def test_half_a_minute_later_the_line_of_a_second_break_would_not_be_dropped() -> None:
    client = Client()
    client.latch.note("FAIL", BROKE)
    client.now += SUPPRESSED_S
    assert client.commit() == ""


@pytest.mark.parametrize(
    "text",
    [
        f"{COORDINATOR}: Connect to ipv4#1.2.3.4:1 failed: Connection refused (after 0ms in state CONNECT)",
        f"{COORDINATOR}: Disconnected (after 3ms in state APIVERSION_QUERY)",
        f"{COORDINATOR}: SSL handshake failed (after 3ms in state SSL_HANDSHAKE)",
    ],
)
def test_a_connection_that_never_came_up_carried_no_commit(text: str) -> None:
    client = Client()
    assert client.commit(lambda: client.latch.note("FAIL", text)) == ""


def test_other_connections_carry_no_commit() -> None:
    client = Client()
    other = "127.0.0.1:9092/1: Disconnected: connection closed by peer: receive 0 after POLLIN (after 12ms in state UP)"
    assert client.commit(lambda: client.latch.note("FAIL", other)) == ""
