"""Links against an echo: what passes, what vanishes, what breaks."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from dueline.scheduler.kafka.broker import ports
from proof.faults.links import HOST, Links, Weather

CLIENT, NODE = "w1", 1
SOON_S, PATIENCE_S = 0.3, 10.0


@pytest.fixture
def links() -> Iterator[tuple[Links, int]]:
    """Proxies before an echo, and where to connect."""
    with socket.create_server((HOST, 0)) as server:
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        made = Links()
        port = ports.pick(random.Random(), taken=())
        made.open(CLIENT, NODE, listen=port, to=server.getsockname()[1])
        yield made, port
        made.close()


def echo(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=back, args=(connection,), daemon=True).start()


def back(connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        while data := connection.recv(4096):
            connection.sendall(data)


def frame(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def said(connection: socket.socket, text: bytes, timeout_s: float) -> bytes | None:
    """What comes back; None: nothing in time."""
    connection.settimeout(timeout_s)
    connection.sendall(frame(text))
    try:
        return connection.recv(4096)
    except TimeoutError:
        return None


def test_what_is_sent_comes_back(links: tuple[Links, int]) -> None:
    with socket.create_connection((HOST, links[1])) as connection:
        assert said(connection, b"hello", PATIENCE_S) == frame(b"hello")


def test_a_cut_breaks_what_is_open_and_what_is_opened(links: tuple[Links, int]) -> None:
    made, port = links
    with socket.create_connection((HOST, port)) as connection:
        assert said(connection, b"hello", PATIENCE_S)
        made.set(CLIENT, NODE, Weather(cut=True))
        assert broken(connection)
    with socket.create_connection((HOST, port)) as connection:
        assert broken(connection)
    made.set(CLIENT, NODE, Weather())
    with socket.create_connection((HOST, port)) as connection:
        assert said(connection, b"again", PATIENCE_S) == frame(b"again")


@pytest.mark.parametrize("weather", [Weather(swallow_up=True), Weather(swallow_down=True)])
def test_a_loss_is_silent_and_ends_with_a_broken_connection(links: tuple[Links, int], weather: Weather) -> None:
    made, port = links
    with socket.create_connection((HOST, port)) as connection:
        assert said(connection, b"hello", PATIENCE_S)
        made.set(CLIENT, NODE, weather)
        assert said(connection, b"lost", SOON_S) is None
        made.set(CLIENT, NODE, Weather())
        assert broken(connection)


def test_a_delay_keeps_the_order(links: tuple[Links, int]) -> None:
    made, port = links
    made.set(CLIENT, NODE, Weather(delay_s=0.1, jitter_s=0.1))
    with socket.create_connection((HOST, port)) as connection:
        connection.settimeout(PATIENCE_S)
        began_s = time.monotonic()
        sent = [frame(bytes([number])) for number in range(20)]
        connection.sendall(b"".join(sent))
        got = b""
        while len(got) < len(b"".join(sent)):
            got += connection.recv(4096)
    assert got == b"".join(sent)
    assert time.monotonic() - began_s >= 0.2, "there and back"


def broken(connection: socket.socket) -> bool:
    """Whether it is reset or closed, soon."""
    connection.settimeout(PATIENCE_S)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
