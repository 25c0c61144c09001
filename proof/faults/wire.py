"""As much of Kafka's protocol as a proxy needs: frames, and whose request is which."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

PRODUCE: Final = 0
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END_TXN: Final = 26
HEADER: Final = struct.Struct(">ihhi")
"""Length, api key, api version, correlation id; then the client id, as a length and text."""


class Frames:
    """Cuts a stream into its frames, each with its length in front."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def take(self, data: bytes) -> Iterator[bytes]:
        """The frames that are whole now."""
        self._rest += data
        while len(self._rest) >= 4:
            end = 4 + int.from_bytes(self._rest[:4], "big")
            if len(self._rest) < end:
                return
            yield bytes(self._rest[:end])
            del self._rest[:end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What stands in front of every request."""

    api: int
    correlation: int
    client: str


def request_of(frame: bytes) -> Request:
    """Read a request's header."""
    _, api, _, correlation = HEADER.unpack_from(frame)
    (length,) = struct.unpack_from(">h", frame, HEADER.size)
    start = HEADER.size + 2
    name = frame[start : start + length].decode(errors="replace") if length > 0 else ""
    return Request(api=api, correlation=correlation, client=name)


def correlation_of(answer: bytes) -> int:
    """Which request an answer belongs to, on its connection."""
    return int(struct.unpack_from(">i", answer, 4)[0])


class Way(Protocol):
    """A connection, as who meddles with it sees it. `port`: the broker's own, without a proxy."""

    @property
    def port(self) -> int:
        """See above."""

    def pass_on(self, frame: bytes) -> None:
        """Send a request to the broker."""

    def pass_back(self, frame: bytes) -> None:
        """Send an answer to the client; from any thread."""

    def reset(self) -> None:
        """Break the connection."""


class Meddler(Protocol):
    """Watches the frames of a link. False: the frame goes no further."""

    def request(self, frame: bytes, way: Way) -> bool:
        """A request comes from the client."""

    def answer(self, frame: bytes, way: Way) -> bool:
        """An answer comes from the broker."""
