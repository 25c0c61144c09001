"""What one round decided: the records of one transaction, in the order in which they must be written (L5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from dueline.schemas.command import Rejected
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Fence, Positions
from dueline.schemas.run import Run, Summary
from dueline.schemas.work import Dispatch, Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """First `versions`, then `ledger` (a job's runs in due-time order, positions last), then what is derived from them."""

    versions: list[JobVersion] = field(default_factory=list)
    ledger: list[Run | Summary | Fence | Positions] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)  # of the dispatches
    signals: list[Signal] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)  # of the signals
    rejected: list[Rejected] = field(default_factory=list)
    not_before: dict[str, int] = field(default_factory=dict)  # ledger key -> due time it must not precede
    more: bool = False  # the slice was full: decide again at once

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.versions or self.ledger or self.dispatches or self.signals or self.rejected)
