"""How far clocks that stamp the history were apart: at most `bounds.skew_ms`, but for brokers whose clock a fault moved.

Such a fault names a broker among its targets and its `shift_ms`. What was stamped while it lasted is wrong by up to the shift, so
the stamps themselves stand up to the shift before its beginning or after its end; and leader time, which never goes back, stays
ahead after a step forward until true time has reached it. So a comparison is given the shift when one of its times is that close
to the fault. A scheduler's own wall clock stamps nothing: a fault on it widens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from proof.history.acts import Fault, Role
from proof.history.history import History

CACHED_MS: Final = 35_000
"""How late a process may notice that a broker's clock was moved or set right: a worker believes an append time for 30 s."""
NOISE_MS: Final = 50
TWO: Final = 2
"""Leader time may still be ahead by one fault when the next moves a clock back."""


class Skew:
    """See the module's text."""

    def __init__(self, history: History) -> None:
        self._base_ms = history.bounds.skew_ms
        brokers = {life.process for life in history.noted.lives if life.role == Role.BROKER}
        self._moved = [
            (fault.began_ms - fault.shift_ms - CACHED_MS, fault.ended_ms + fault.shift_ms + CACHED_MS, fault.shift_ms)
            for fault in history.noted.struck
            if fault.shift_ms and on_a_broker(fault, brokers)
        ]

    def at(self, *times_ms: int) -> int:
        """Allowed when these times are compared, milliseconds."""
        shifts = sorted(shift for begin, end, shift in self._moved if any(begin <= time <= end for time in times_ms))
        return max(self._base_ms, NOISE_MS + sum(shifts[-TWO:])) if shifts else self._base_ms


def on_a_broker(fault: Fault, brokers: Iterable[str]) -> bool:
    """Whether a broker is among the fault's targets."""
    return not set(brokers).isdisjoint(part.strip() for part in fault.target.split(","))
