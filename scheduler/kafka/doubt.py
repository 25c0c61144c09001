"""L7: whether an acknowledged commit may have been sent twice.

librdkafka repeats EndTxn by itself after a time-out or a broken connection and then reports success; the first copy may
still be on its way and end a later transaction. Two signs betray it: the commit took longer than the request time-out
allows, or the connection to the transaction coordinator, the only one that carries EndTxn, failed while it was in flight.

The client raises no error event when a connection that was up breaks (seen with 2.16): it writes a log line. So the log is
what is latched here. Lines wait in the client's queue until they are served, so they are never too early; the writer
serves them after each commit, before it asks.

librdkafka drops a line that repeats the last one of the same broker within 30 s. So for that long after a break a second
one could not be told from none by the log. The client's statistics tell: they count disconnects and timed-out requests.
If the last ones from before the commit and the first ones from after it count the same, nothing broke in between. They
come every `STATISTICS_MS`, so a commit costs that much more for half a minute after a break, and is not in doubt.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Final

from .client import CONNECTION

SUPPRESSED_S: Final = 31.0  # librdkafka's 30 s, and a margin
STATISTICS_MS: Final = 250
PROOF_S: Final = 2.0  # statistics that do not come in this time prove nothing
COORDINATOR: Final = "TxnCoordinator"
"""What librdkafka calls the connection to the transaction coordinator, in its log and its statistics."""
COUNTED: Final = ("disconnects", "req_timeouts")
_NEVER: Final = float("-inf")
_NOT_UP: Final = re.compile(r"in state (INIT|DOWN|TRY_CONNECT|CONNECT|APIVERSION\w*|SSL\w*|AUTH\w*)\b")

Serve = Callable[[float], None]
"""Serve the client's callbacks for so many seconds, or until some were served."""


class DoubtLatch:
    """Log lines and statistics of one producer. `note` and `counted` come from any thread, the rest from the writer's."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._broke_at = _NEVER
        self._why = ""
        self._statistics = ""
        self._emitted = 0
        self._before: tuple[int, ...] | None = None

    def note(self, facility: str, text: str) -> None:
        """A log line of the client; those of a connection to the coordinator that was up count.

        A connection that never came up cannot have carried a request: with a broker of several down for good, each new
        producer meets that, and must not doubt for it.
        """
        if facility not in CONNECTION or COORDINATOR not in text or _NOT_UP.search(text):
            return
        with self._lock:
            self._broke_at = self._now()
            self._why = text

    def counted(self, statistics: str) -> None:
        """The client's statistics, JSON as librdkafka writes it. Looked at only if there is something to prove."""
        with self._lock:
            self._statistics = statistics
            self._emitted += 1

    def begin(self, serve: Serve) -> None:
        """A commit begins. What broke before is heard now, or it would pass for something that broke meanwhile."""
        serve(0.0)
        self._before = self._counts() if self._broke_lately() else None

    def reason(self, serve: Serve) -> str:
        """Why the commit that was acknowledged now is in doubt, "" when it is not."""
        serve(0.0)
        if not self._broke_lately() or self._proved(serve):
            return ""
        return f"a broker connection failed while it may have been in flight: {self._why}"

    def _broke_lately(self) -> bool:
        with self._lock:
            return self._now() - self._broke_at < SUPPRESSED_S

    def _proved(self, serve: Serve) -> bool:
        """Whether the counts stood still from before the commit until now."""
        if self._before is None:
            return False
        emitted, until_s = self._emitted, self._now() + PROOF_S
        while self._emitted == emitted:
            if self._now() > until_s:
                return False
            serve(STATISTICS_MS / 1000)
        return self._counts() == self._before

    def _counts(self) -> tuple[int, ...] | None:
        """None: there is no connection to the coordinator yet, or no statistics."""
        with self._lock:
            brokers = json.loads(self._statistics or "{}").get("brokers", {})
        coordinator = brokers.get(COORDINATOR)
        return tuple(int(coordinator[name]) for name in COUNTED) if coordinator else None
