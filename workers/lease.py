"""W8: a worker begins handlers and steps only while its last acknowledged heartbeat is young, counted from its sending."""

from __future__ import annotations

import math


class Lease:
    """One incarnation's lease. Monotonic seconds. Written by the loop, read by handler threads: one float, so no lock."""

    __slots__ = ("_length_s", "_sent_s")

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._sent_s = -math.inf

    def acknowledged(self, sent_s: float) -> None:
        """A heartbeat sent then has arrived. Answers may come out of order."""
        self._sent_s = max(self._sent_s, sent_s)

    def lapsed(self, now_s: float) -> bool:
        """Whether it held before and has ended: the leader may have given away what this incarnation holds."""
        return self._sent_s > -math.inf and not self.holds(now_s)

    def revoke(self) -> None:
        """The incarnation is over."""
        self._length_s = -math.inf

    def holds(self, now_s: float) -> bool:
        """Whether something may begin now."""
        return now_s < self.ends_s

    @property
    def ends_s(self) -> float:
        """When it ends unless another heartbeat is acknowledged."""
        return self._sent_s + self._length_s if self._length_s > 0 else -math.inf
