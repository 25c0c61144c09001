"""The worker's clock: append times of its own records, carried forward by the monotonic clock.

A record appended at `append_ms` and acknowledged at monotonic `received_s` shows that the broker's clock is at least
append_ms + (now - received_s). Each sample is such a lower bound; the highest of the recent ones is the best, and never
early. Samples age out, so a broker clock that was set back is followed within WINDOW_S.
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 30.0
"""How long a sample counts. Longer: less sensitive to a slow acknowledgement; shorter: less drift between the clocks."""

ROUNDING_MS: Final = 0.001
"""So that the instant a run begins at is not written down as the millisecond before it by a rounding of floats."""


class LogClock:
    """One reader of log time; used by the loop, `now_ms` from any thread."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()  # (received_s, append_ms - received in ms), offsets falling
        self._offset_ms: float | None = None

    def observe(self, append_ms: int, received_s: float) -> None:
        """A record of ours was appended then, and that was known at `received_s`."""
        offset = append_ms - received_s * 1000
        while self._samples and self._samples[-1][1] <= offset:
            self._samples.pop()
        self._samples.append((received_s, offset))
        while self._samples[0][0] < received_s - WINDOW_S:
            self._samples.popleft()
        self._offset_ms = self._samples[0][1]

    @property
    def offset_s(self) -> float | None:
        """Log time in seconds less the monotonic reading; None before any record of ours was acknowledged."""
        return None if self._offset_ms is None else self._offset_ms / 1000

    def now_ms(self, now_s: float) -> int:
        """Log time at this monotonic reading. LookupError before any record was acknowledged."""
        if self._offset_ms is None:
            raise LookupError("log time is not known before a record was acknowledged")
        return int(now_s * 1000 + self._offset_ms + ROUNDING_MS)
