"""A clock driven by hand: wall and monotonic time apart, so that a mix-up shows."""

from __future__ import annotations

from dueline.scheduler.core.ports import Contacted


class ManualClock:
    """Port `Clock`."""

    def __init__(self, wall_ms: int = 1_000_000, monotonic_s: float = 500.0) -> None:
        self.wall, self.monotonic = wall_ms, monotonic_s

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_s(self) -> float:
        return self.monotonic

    def pass_s(self, seconds: float) -> None:
        """Time passes on both."""
        self.monotonic += seconds
        self.wall += int(seconds * 1000)


class ManualContact:
    """Port `Contact`. Probes whenever it is asked; `end`: what a probe is told."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.since_s = 0.0
        self.end = 0

    def contacted(self) -> Contacted:
        return Contacted(since_s=self.since_s, until_s=self._clock.monotonic_s(), end=self.end)

    def close(self) -> None:
        pass
