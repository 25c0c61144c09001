"""A clock driven by hand: wall and monotonic time apart, so that a mix-up shows."""

from __future__ import annotations


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
    """Port `Contact`."""

    def __init__(self, since_s: float = 0.0) -> None:
        self.since_s = since_s

    def unbroken_since_s(self) -> float:
        return self.since_s

    def close(self) -> None:
        pass
