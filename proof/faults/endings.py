"""Who meddles with the requests that end transactions (T11): a copy of EndTxn arrives late, twice, or its answer never.

Kafka's first transaction protocol, which librdkafka speaks, compares only producer id and epoch: a copy of EndTxn that arrives
when the next transaction of the same producer is open ends that one, half written. A trick is played once; what happened is in
its `story`, and `struck` says whether it took effect.

A client that lost its connection with EndTxn on the way knows that a copy may arrive late; one that begins its next transaction
under a new epoch then has the copy refused. So what `Delayed` sends never ends a transaction of dueline: leaders and workers
give up a producer in doubt (L7, W6). `Repeated` tells the client nothing, and its copies do.
"""

from __future__ import annotations

import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from proof.faults.clock import now_ms
from proof.faults.wire import ADD_OFFSETS, END_TXN, PRODUCE, Way, correlation_of, request_of

HOST: Final = "127.0.0.1"
ANSWER_S: Final = 5.0


def ends(frame: bytes) -> tuple[str, bool]:
    """Of an EndTxn request: transactional id, and whether it commits. Versions 0 to 2 have plain strings, later ones compact."""
    _, _, version, _ = struct.unpack_from(">ihhi", frame)
    (length,) = struct.unpack_from(">h", frame, 12)
    at = 14 + max(0, length)
    if version >= 3:  # a flexible header: tagged fields, none here; then a compact string
        at += 1
        size = frame[at] - 1
        at += 1
    else:
        (size,) = struct.unpack_from(">h", frame, at)
        at += 2
    name = frame[at : at + size].decode(errors="replace")
    return name, frame[at + size + 10] != 0


class Trick(ABC):
    """One of the ways to meddle, played at the `nth` EndTxn (or AddOffsetsToTxn) from now on. All links of a client share it;
    only the proxies' thread calls `request`, `answer` and `call_off`. `done` is set when it is over."""

    api = END_TXN

    def __init__(self, nth: int = 1) -> None:
        self.story: list[str] = []
        self.done = threading.Event()
        self.begun_ms = 0
        self.struck = False
        self._left = nth
        self._port = 0

    def request(self, frame: bytes, way: Way) -> bool:
        """See Meddler."""
        if self.done.is_set():
            return True
        request = request_of(frame)
        if request.api != self.api or self.begun_ms:
            return self.later(frame, request.api, way)
        self._left -= 1
        if self._left > 0:
            return True
        self.begun_ms = now_ms()
        self._port = way.port
        return self.play(frame, request.correlation, way)

    def answer(self, frame: bytes, way: Way) -> bool:  # noqa: ARG002 - of the protocol; most tricks let answers pass
        """See Meddler."""
        return True

    def call_off(self) -> None:
        """It does not begin any more. One that has begun is brought to its end."""
        if not self.begun_ms:
            self.done.set()

    @abstractmethod
    def play(self, frame: bytes, correlation: int, way: Way) -> bool:
        """The request has come."""

    def later(self, frame: bytes, api: int, way: Way) -> bool:  # noqa: ARG002
        """Another request, perhaps after it."""
        return True

    def tell(self, text: str) -> None:
        """Note it."""
        self.story.append(text)


class AnswerLost(Trick):
    """The broker ends the transaction, the client never hears of it: the connection breaks, and the client asks again."""

    _waits: tuple[Way, int] | None = None

    def play(self, frame: bytes, correlation: int, way: Way) -> bool:
        self.tell(f"answer of EndTxn of {ends(frame)[0]} lost")
        self._waits = (way, correlation)
        return True

    def answer(self, frame: bytes, way: Way) -> bool:
        if self._waits is None or self._waits != (way, correlation_of(frame)):
            return True
        self._waits = None
        self.struck = True
        self.done.set()
        way.reset()
        return False


class Late(Trick):
    """A copy arrives when the next transaction of the same producer has written something: the broker's answer to that is held
    back until the copy was answered, so that the client's next request comes after it."""

    _copy: bytes = b""
    _client = ""
    _written: tuple[Way, int] | None = None

    def keep(self, frame: bytes) -> None:
        """The copy."""
        self._copy, self._client = frame, request_of(frame).client

    @abstractmethod
    def ripe(self, api: int) -> bool:
        """Whether the client has gone on, so that what it writes now is of the next transaction."""

    def call_off(self) -> None:
        super().call_off()
        if self._copy:  # no next transaction came
            copy, self._copy = self._copy, b""
            deliver(copy, self._port, self, inside=False, then=lambda: None)

    def later(self, frame: bytes, api: int, way: Way) -> bool:
        request = request_of(frame)
        if self._copy and not self._written and request.client == self._client and self.ripe(api) and api == PRODUCE:
            self._written = (way, request.correlation)
        return True

    def answer(self, frame: bytes, way: Way) -> bool:
        if not self._copy or self._written != (way, correlation_of(frame)):
            return True
        copy, self._copy = self._copy, b""
        deliver(copy, self._port, self, inside=True, then=lambda: way.pass_back(frame))
        return False


class Delayed(Late):
    """The first copy is held back, the connection breaks, the client asks again and is answered; then the first copy arrives."""

    _again = False

    def play(self, frame: bytes, correlation: int, way: Way) -> bool:  # noqa: ARG002
        name, commits = ends(frame)
        self.tell(f"EndTxn ({'commit' if commits else 'abort'}) of {name} held back")
        self.keep(frame)
        way.reset()
        return False

    def ripe(self, api: int) -> bool:
        if api == END_TXN and not self._again:
            self.tell("asked again, and let pass")
            self._again = True
        return self._again


class Repeated(Late):
    """The request arrives, and then once more; no connection breaks, so the client cannot know: this is what only reading back
    can find."""

    def play(self, frame: bytes, correlation: int, way: Way) -> bool:  # noqa: ARG002
        name, commits = ends(frame)
        self.tell(f"EndTxn ({'commit' if commits else 'abort'}) of {name} repeated")
        self.keep(frame)
        return True

    def ripe(self, api: int) -> bool:  # noqa: ARG002 - it was answered before the client goes on
        return True


class OffsetsDelayed(Trick):
    """AddOffsetsToTxn is held back for a while, with everything behind it on its connection."""

    api = ADD_OFFSETS
    _held: list[bytes]
    _way: Way | None = None

    def play(self, frame: bytes, correlation: int, way: Way) -> bool:  # noqa: ARG002
        self.tell("AddOffsetsToTxn held back")
        self._held, self._way = [frame], way
        return False

    def later(self, frame: bytes, api: int, way: Way) -> bool:  # noqa: ARG002
        if self._way is not way:
            return True
        self._held.append(frame)
        return False

    def release(self) -> None:
        """Let them go on; in the proxies' thread."""
        way, self._way = self._way, None
        if way is not None:
            self.struck = True
            for frame in self._held:
                way.pass_on(frame)
        self.done.set()


def deliver(copy: bytes, port: int, trick: Trick, *, inside: bool, then: Callable[[], None]) -> None:
    """Send a copy of a request to the broker by a connection of its own, and note the answer's error code. `inside`: the next
    transaction of its producer is open; the copy strikes it if the broker accepts the copy, or does not say."""

    def send() -> None:
        sent, code = False, None
        try:
            with socket.create_connection((HOST, port), timeout=ANSWER_S) as connection:
                connection.sendall(copy)
                sent = True
                answer = connection.recv(4096)
            version = struct.unpack_from(">h", copy, 6)[0]
            at = 8 + 4 + (1 if version >= 3 else 0)  # length, correlation; tagged fields; throttle time
            code = struct.unpack_from(">h", answer, at)[0] if len(answer) >= at + 2 else None
            trick.tell(f"the copy arrived {'in the next transaction' if inside else 'in no transaction'}: error code {code}")
        except OSError as error:
            trick.tell(f"the copy was lost: {error}")
        trick.struck = inside and (code == 0 or (sent and code is None))
        then()
        trick.done.set()

    threading.Thread(target=send, daemon=True).start()
