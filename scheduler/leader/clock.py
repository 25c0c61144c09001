"""Leader time: the clock of one partition, `runs`, carried forward by the monotonic clock between its answers.

It never goes back, so a leap ahead of that clock that is taken back soon would stop every due time until true time has reached
it. So an answer that lies far ahead of the local wall clock is not believed; meanwhile the last one believed is carried forward.
An answer that lies behind is believed: leader time then stands still, which costs lateness and nothing else.
"""

from __future__ import annotations

from dueline.scheduler.core.ports import Clock


class LeaderClock:
    """Milliseconds that never go back. While the clock of `runs` lies behind, leader time stands still. `max_skew_s`: how far it
    may lie ahead of the wall clock and be believed."""

    def __init__(self, clock: Clock, *, append_ms: int, received_s: float, not_before_ms: int, max_skew_s: float) -> None:
        """Start at the later of the barrier's append time and the ledger's last leader time; while the append time is not
        believed, at the ledger's. A wall clock that lies as far behind the ledger's is wrong itself, and contradicts nothing."""
        self._clock = clock
        self._max_skew_s = max_skew_s
        self.anchor(append_ms, received_s)
        leapt = self._leapt and not_before_ms >= 0 and not_before_ms - clock.wall_ms() <= max_skew_s * 1000
        self._believed = (min(append_ms, not_before_ms) if leapt else append_ms, received_s)
        self._floor = max(self._believed[0], not_before_ms)

    def anchor(self, append_ms: int, received_s: float) -> None:
        """Pair an append time of an own record in `runs` with the monotonic reading at its receipt."""
        self._append_ms, self._received_s = append_ms, received_s

    def now(self) -> int:
        """Leader time in milliseconds."""
        if not self._leapt:
            self._believed = (self._append_ms, self._received_s)
        append_ms, received_s = self._believed
        self._floor = max(self._floor, append_ms + int((self._clock.monotonic_s() - received_s) * 1000))
        return self._floor

    def appended_ms(self) -> int:
        """The clock of `runs` as last heard, carried forward."""
        return self._append_ms + int((self._clock.monotonic_s() - self._received_s) * 1000)

    def skew_s(self) -> float:
        """How far the wall clock lies from the clock of `runs` as last heard, seconds, either way. A witness, never a source."""
        return abs(self._ahead_s)

    @property
    def _leapt(self) -> bool:
        return self._ahead_s > self._max_skew_s

    @property
    def _ahead_s(self) -> float:
        """How far the clock of `runs` lies ahead of the wall clock."""
        return (self.appended_ms() - self._clock.wall_ms()) / 1000
