"""The clock of the harness: the machine's own, which no fault moves (a wrong clock is given to single processes only)."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
