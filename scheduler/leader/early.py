"""Nothing may stand in the ledger before its due time by the clock of `runs`. When that clock went back, what is due waits.

A leader cannot know beforehand that a broker's clock was set back: it learns from the delivery reports, and aborts. The next
term would decide the same and abort again, over and over until the clock has caught up. So it fires nothing before that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.leader.clock import LeaderClock

log = logging.getLogger(__name__)


class Early:
    """What would have been early. Outlives the term that it ended."""

    def __init__(self) -> None:
        self._until_ms: int | None = None

    def reason(self, decision: Decision, appended: Iterable[tuple[str, int]]) -> str | None:
        """Why these records, each with its key and append time, must not be committed: the first one that is early; or None."""
        early = [(key, due, ms) for key, ms in appended if (due := decision.not_before.get(key)) is not None and ms < due]
        if not early:
            return None
        key, due, ms = early[0]
        if self._until_ms is None:
            log.error(
                "%s would stand in the ledger %d ms before its due time: the clock of `runs` went back. Nothing new fires until "
                "it has caught up; check NTP on the brokers",
                key,
                due - ms,
                extra={"action": "early"},
            )
        self._until_ms = max(self._until_ms or 0, *(due for _, due, _ in early))
        return f"{key} would stand in the ledger {due - ms} ms before its due time: the clock of `runs` went back"

    def over(self, leader_clock: LeaderClock) -> bool:
        """Whether the clock of `runs` has reached what was early, so that runs may fire."""
        if self._until_ms is not None and leader_clock.appended_ms() >= self._until_ms:
            self._until_ms = None
            log.warning("the clock of `runs` has caught up: runs fire", extra={"action": "early_over"})
        return self._until_ms is None
