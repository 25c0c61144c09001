"""L7: whether an acknowledged commit may have been sent twice.

librdkafka repeats EndTxn by itself after a time-out or a broken connection and then reports success; the first copy may
still be on its way and end a later transaction. Two signs betray it: the commit took longer than the request time-out
allows, or a connection failed while it was in flight. The client raises no error event when a connection that was up
breaks (seen with 2.16): it writes a log line. So the log is what is latched here. Lines wait in the client's queue until
they are served, so they are never too early; the writer serves them after each commit, before it asks.

librdkafka drops a line that repeats the last one of the same broker within 30 s. So a break shortly before the commit
counts as well: a second one could not be told from none.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final

from .client import CONNECTION

SUPPRESSED_S: Final = 31.0  # librdkafka's 30 s, and a margin
_NEVER: Final = float("-inf")
_NOT_UP: Final = re.compile(r"in state (INIT|DOWN|TRY_CONNECT|CONNECT|APIVERSION\w*|SSL\w*|AUTH\w*)\b")


class DoubtLatch:
    """Log lines of one producer. Any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._broke_at = _NEVER
        self._why = ""

    def note(self, facility: str, text: str) -> None:
        """A log line of the client; those of connections that were up count.

        A connection that never came up cannot have carried a request: with a broker of several down for good, each new
        producer meets that, and must not doubt for it.
        """
        if facility not in CONNECTION or _NOT_UP.search(text):
            return
        with self._lock:
            self._broke_at = self._now()
            self._why = text

    def reason(self) -> str:
        """Why a commit that was acknowledged now is in doubt, "" when it is not. Serve the client's callbacks before."""
        with self._lock:
            if self._now() - self._broke_at < SUPPRESSED_S:
                return f"a broker connection failed while it may have been in flight: {self._why}"
            return ""
