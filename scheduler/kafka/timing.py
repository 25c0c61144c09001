"""Bounds of one transactional producer, and its client's settings that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .doubt import STATISTICS_MS

IDLE_JITTER_MS: Final = 2_000  # the client closes idle connections up to this much earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds."""

    transaction_s: float = 10.0
    doubt_bound_s: float = 5.0

    @classmethod
    def of(cls, transaction_s: float | None, doubt_bound_s: float | None) -> Timing:
        """The bound of doubt stays below the request time-out (just under the transaction's), since a commit that took
        longer than a request may take was perhaps sent twice."""
        bound = doubt_bound_s if doubt_bound_s is not None else min(5.0, (transaction_s or 10.0) / 2)
        return cls(transaction_s=max(transaction_s or 10.0, bound + 1.0), doubt_bound_s=bound)

    def settings(self, transactional_id: str) -> dict[str, str | int]:
        """Beside those of every producer; underscores for dots."""
        transaction_ms = round(self.transaction_s * 1000)
        return {
            "client_id": transactional_id,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": transaction_ms,
            "statistics_interval_ms": STATISTICS_MS,
            "socket_timeout_ms": transaction_ms - 100,  # librdkafka wants it below the transaction's
            # The client forgets brokers (all, when no connection is left; those that leave the metadata), but goes on asking one
            # that it forgot to coordinate the group: sending offsets hangs for ever (librdkafka #5511, seen with 2.16). It looks
            # again when a connection changes: so idle ones are closed, but none on which a request may still be answered.
            "metadata_recovery_strategy": "none",
            "connections_max_idle_ms": transaction_ms + IDLE_JITTER_MS,
        }
