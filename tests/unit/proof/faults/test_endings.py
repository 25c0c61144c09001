"""The tricks with EndTxn, frame by frame, without a broker."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from proof.faults.endings import AnswerLost, Delayed, OffsetsDelayed, Repeated, Trick, ends
from proof.faults.wire import ADD_OFFSETS, END_TXN, PRODUCE, Frames, correlation_of, request_of


class Wire:
    """What went on to the broker, and whether the connection was broken."""

    def __init__(self) -> None:
        self.passed: list[bytes] = []
        self.back: list[bytes] = []
        self.broken = False
        self.port = 1  # nobody listens there

    def pass_on(self, frame: bytes) -> None:
        self.passed.append(frame)

    def pass_back(self, frame: bytes) -> None:
        self.back.append(frame)

    def reset(self) -> None:
        self.broken = True


def request(api: int, correlation: int, body: bytes = b"", *, version: int = 1, client: str = "me") -> bytes:
    """As a client writes it."""
    flexible = b"\0" if version >= 3 else b""
    head = struct.pack(">hhih", api, version, correlation, len(client)) + client.encode() + flexible
    return struct.pack(">i", len(head + body)) + head + body


def end_txn(correlation: int, *, commit: bool = True, version: int = 1) -> bytes:
    name = b"leader.a"
    text = bytes([len(name) + 1]) + name if version >= 3 else struct.pack(">h", len(name)) + name
    return request(END_TXN, correlation, text + struct.pack(">qh", 7, 0) + bytes([commit]), version=version)


def answer(correlation: int) -> bytes:
    return struct.pack(">iii", 8, correlation, 0)


# --- frames -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_frames_are_found_however_the_stream_is_cut(size: int) -> None:
    sent = [request(PRODUCE, 1, b"x" * 40), end_txn(2), answer(3)]
    stream, frames = b"".join(sent), Frames()
    found = [frame for at in range(0, len(stream), size) for frame in frames.take(stream[at : at + size])]
    assert found == sent


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("commit", [True, False])
def test_what_ends_is_read(version: int, commit: bool) -> None:
    frame = end_txn(9, commit=commit, version=version)
    assert ends(frame) == ("leader.a", commit)
    told = request_of(frame)
    assert (told.api, told.correlation, told.client) == (END_TXN, 9, "me")
    assert correlation_of(answer(9)) == 9


# --- tricks -----------------------------------------------------------------------------------------------------------


def test_a_trick_waits_for_its_turn() -> None:
    wire, trick = Wire(), AnswerLost(nth=2)
    assert trick.request(end_txn(1), wire)
    assert trick.answer(answer(1), wire), "not this one"
    before_ms = trick.begun_ms
    assert trick.request(end_txn(2), wire)
    assert (before_ms, trick.begun_ms > 0) == (0, True)


def test_a_lost_answer_breaks_the_connection_and_nothing_else_does() -> None:
    wire, other, trick = Wire(), Wire(), AnswerLost()
    assert trick.request(end_txn(5), wire)
    assert trick.answer(answer(4), wire), "an answer to another request"
    assert trick.answer(answer(5), other), "the same number on another connection"
    before = wire.broken, trick.struck
    assert not trick.answer(answer(5), wire)
    assert (before, (wire.broken, trick.struck)) == ((False, False), (True, True))
    assert trick.done.is_set()


def test_a_delayed_copy_goes_when_the_next_transaction_has_written() -> None:
    wire, trick = Wire(), Delayed()
    assert not trick.request(end_txn(1), wire), "held back"
    assert wire.broken
    assert trick.request(request(PRODUCE, 2), wire), "not asked again yet: of the same transaction"
    assert trick.request(end_txn(3), wire), "the client asks again"
    assert trick.request(request(PRODUCE, 4, client="another"), wire), "of another producer"
    assert trick.request(request(PRODUCE, 5), wire)
    assert trick.answer(answer(4), wire), "of another"
    assert not trick.answer(answer(5), wire), "held back until the copy was answered"
    assert trick.done.wait(10), "the copy was sent, here to a port where nobody listens"
    assert "the copy was lost" in trick.story[-1]
    assert not trick.struck
    assert wire.back == [answer(5)]


@pytest.mark.parametrize(("code", "struck"), [(0, True), (47, False), (None, True)])
def test_a_copy_strikes_if_the_broker_accepts_it_or_may_have(code: int | None, struck: bool) -> None:
    wire, trick = Wire(), Repeated()
    with broker(code) as wire.port:
        assert trick.request(end_txn(1), wire)
        assert trick.request(request(PRODUCE, 2), wire)
        assert not trick.answer(answer(2), wire)
        assert trick.done.wait(10)
    assert (trick.struck, f"error code {code}" in trick.story[-1]) == (struck, True)


def test_a_copy_that_meets_no_transaction_is_sent_in_the_end_and_strikes_nothing() -> None:
    wire, trick = Wire(), Repeated()
    with broker(0) as wire.port:
        assert trick.request(end_txn(1), wire)
        trick.call_off()
        assert trick.done.wait(10)
    assert (trick.struck, trick.story[-1]) == (False, "the copy arrived in no transaction: error code 0")


def test_a_trick_that_was_called_off_is_not_played() -> None:
    wire, trick = Wire(), AnswerLost()
    trick.call_off()
    assert trick.request(end_txn(1), wire)
    assert trick.answer(answer(1), wire)
    assert (trick.begun_ms, trick.struck, wire.broken) == (0, False, False)


@contextmanager
def broker(code: int | None) -> Iterator[int]:
    """Answers one request with that error code, or by closing the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if code is not None:
                    connection.sendall(struct.pack(">iiih", 10, 1, 0, code))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_offsets_are_held_with_what_is_behind_them_on_the_connection() -> None:
    wire, other, trick = Wire(), Wire(), OffsetsDelayed()
    first, second = request(ADD_OFFSETS, 1), request(PRODUCE, 2)
    assert not trick.request(first, wire)
    assert not trick.request(second, wire)
    assert trick.request(second, other)
    trick.release()
    assert wire.passed == [first, second]
    assert trick.struck
    assert trick.request(request(PRODUCE, 3), wire)
    assert trick.done.is_set()


def test_after_it_everything_passes() -> None:
    wire: Wire = Wire()
    trick: Trick = AnswerLost()
    trick.request(end_txn(1), wire)
    trick.answer(answer(1), wire)
    assert trick.request(end_txn(2), wire)
    assert trick.answer(answer(2), wire)
