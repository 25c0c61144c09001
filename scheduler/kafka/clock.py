"""The host's clocks. Monotonic time counts suspend where the host can: a laptop that slept has not kept a lease."""

from __future__ import annotations

import time
from typing import Final

COUNTS_SUSPEND: Final = hasattr(time, "CLOCK_BOOTTIME")
"""Whether `monotonic_s` goes on while the host sleeps (Linux; elsewhere the plain monotonic clock has to do)."""


def _boottime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


monotonic_s = _boottime_s if COUNTS_SUSPEND else time.monotonic


class SystemClock:
    """Port `Clock` on the host."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch by the host's wall clock."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that only grow."""
        return monotonic_s()
