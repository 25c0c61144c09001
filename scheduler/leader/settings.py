"""The scheduler's settings, with their units and reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """How a scheduler process behaves. Defaults suit production; tests and the demo shorten some."""

    process: str = ""  # host:pid, for people
    session_timeout_s: float | None = None  # of the election; None: the broker's minimum
    max_poll_interval_s: float = 20.0  # a blocked Python thread loses the leadership after this, though librdkafka beats on
    worker_timeout_s: float = 10.0  # silence after which a worker is fenced; more than its lease
    fresh_heartbeat_s: float = 3.0  # only workers heard of lately are offered work: three heartbeats
    anchor_s: float = 5.0  # leader time is anchored to the broker's at least this often
    idle_wait_s: float = 0.025  # how long a round waits for input: bounds the latency of a command
    max_clock_skew_s: float = 30.0  # local wall clock against the broker's: beyond it nothing new fires
    skew_patience_s: float = 60.0  # ... and after this long the leader resigns for a standby on another host
    resign_pause_s: float = 30.0  # how long one that resigned stays away from the election
    doubt_bound_s: float = 20.0  # a commit slower than this may have been retried by librdkafka (L7)
    max_doubt_bound_s: float = 320.0
    echo_timeout_s: float = 20.0  # what was committed must come back within this, or the leader takes over anew
    transaction_timeout_s: float = 30.0
    rejected_look_s: float = 30.0  # how often it is looked at whether something stands open in `rejected`
    max_records: int = 5_000  # of one transaction: a slice
    max_events: int = 5_000  # read in one round
    allowed_skew_ms: int = 1_000  # between brokers, for what must not be compared bare
    offer_timeout_ms: int = 5_000
    tombstone_retention_s: float = 7 * 86_400.0  # `delete.retention.ms` of `jobs`; half of it is the limit for L12
    health_file: str = ""
