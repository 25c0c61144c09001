"""The choices a user has about changes of the clocks and days that do not count."""

from __future__ import annotations

from enum import StrEnum


class Gap(StrEnum):
    """What a fixed-time job does about a reading that the clocks leave out."""

    RUN_AFTER = "run_after"
    SKIP = "skip"


class Fold(StrEnum):
    """What a fixed-time job does about a reading that the clocks show twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Shift(StrEnum):
    """Where a due day that does not count moves: to the next that does, to the one before, or to the next unless that
    is in another month, then to the one before."""

    FOLLOWING = "following"
    PRECEDING = "preceding"
    MODIFIED_FOLLOWING = "modified_following"
