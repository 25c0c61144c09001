"""Whether a partition's broker has answered all along, and how much stood there: silence counts only while we could hear."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from dueline.scheduler.core.ports import Contacted, LogAdmin, Partition, Unavailable

from .clock import monotonic_s
from .errors import NotAuthorized

INTERVAL_S: Final = 0.5  # so much later, at most, a dead worker is found, since silence counts up to a probe
IN_TIME_S: Final = 2.0  # an answer later than this, or a probe that much late, is a gap: this process may have been stopped


class KafkaContact:
    """Port `Contact`. Probes in a thread of its own; the first answer begins the contact."""

    def __init__(self, admin: Callable[[], LogAdmin], partition: Partition) -> None:
        self._admin = admin
        self._partition = partition
        self._lock = threading.Lock()
        self._contacted = Contacted(since_s=monotonic_s(), until_s=float("-inf"), end=0)
        self._answered_s = float("-inf")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"dueline-contact-{partition[0]}", daemon=True)
        self._thread.start()

    def contacted(self) -> Contacted:
        """The latest stretch of unbroken contact."""
        with self._lock:
            return self._contacted

    def close(self) -> None:
        """Stop probing; a probe under way ends by itself."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            asked_s = monotonic_s()
            try:
                end = self._admin().end_offset(self._partition)
            except (Unavailable, NotAuthorized):
                pass  # said by the admin client; no answer, no contact
            else:
                self._answered(asked_s, monotonic_s(), end)
            self._stop.wait(INTERVAL_S)

    def _answered(self, asked_s: float, now_s: float, end: int) -> None:
        with self._lock:
            broken = now_s - self._answered_s > INTERVAL_S + IN_TIME_S
            self._contacted = Contacted(since_s=now_s if broken else self._contacted.since_s, until_s=asked_s, end=end)
            self._answered_s = now_s
