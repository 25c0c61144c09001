"""Leader time: the clock of one partition, `runs`, carried forward by the monotonic clock between its answers."""

from __future__ import annotations

from dueline.scheduler.core.ports import Clock


class LeaderClock:
    """Milliseconds that never go back. While the clock of `runs` lies behind, leader time stands still."""

    def __init__(self, clock: Clock, *, append_ms: int, received_s: float, not_before_ms: int) -> None:
        """Start at the later of the barrier's append time and the ledger's last leader time."""
        self._clock = clock
        self._floor = max(append_ms, not_before_ms)
        self.anchor(append_ms, received_s)

    def anchor(self, append_ms: int, received_s: float) -> None:
        """Pair an append time of an own record in `runs` with the monotonic reading at its receipt."""
        self._append_ms, self._received_s = append_ms, received_s

    def now(self) -> int:
        """Leader time in milliseconds."""
        carried = self._append_ms + int((self._clock.monotonic_s() - self._received_s) * 1000)
        self._floor = max(self._floor, carried)
        return self._floor

    @property
    def age_s(self) -> float:
        """Seconds since the last anchor."""
        return self._clock.monotonic_s() - self._received_s

    def skew_s(self) -> float:
        """How far the local wall clock lies from the clock of `runs`, in seconds, either way. A witness, never a source."""
        carried = self._append_ms + (self._clock.monotonic_s() - self._received_s) * 1000
        return abs(self._clock.wall_ms() - carried) / 1000
