"""The local wall clock as a witness: while it and the broker's disagree, nothing new fires; if they go on, the leader resigns."""

from __future__ import annotations

import logging

from dueline.scheduler.core.ports import Clock
from dueline.scheduler.leader.clock import LeaderClock

log = logging.getLogger(__name__)


class ClocksDisagree(Exception):
    """They went on disagreeing: a standby on another host may know better."""


class Witness:
    """Compares the clocks each round."""

    def __init__(self, clock: Clock, *, max_skew_s: float, patience_s: float) -> None:
        self._clock = clock
        self._max_skew_s, self._patience_s = max_skew_s, patience_s
        self._since_s: float | None = None

    @property
    def firing(self) -> bool:
        """Whether the clocks agreed when last compared."""
        return self._since_s is None

    def agrees(self, leader_clock: LeaderClock) -> bool:
        """Whether new runs may fire. Raises ClocksDisagree when patience is over."""
        skew_s = leader_clock.skew_s()
        now_s = self._clock.monotonic_s()
        if skew_s <= self._max_skew_s:
            if self._since_s is not None:
                log.warning("the clocks agree again: runs fire", extra={"action": "clocks_agree"})
            self._since_s = None
            return True
        if self._since_s is None:
            self._since_s = now_s
            log.error(
                "this host's clock and the broker's differ by %.1f s, more than %.1f s: nothing new fires until they agree; "
                "check NTP on both",
                skew_s,
                self._max_skew_s,
                extra={"action": "clocks_disagree"},
            )
        if now_s - self._since_s > self._patience_s:
            raise ClocksDisagree(f"for {self._patience_s:.0f} s this host's clock and the broker's differed by {skew_s:.1f} s")
        return False
