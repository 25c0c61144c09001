"""A run: the record for one job at one due time, in the ledger (`runs`); and the summary of due times passed over."""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from dueline.schemas.base import NONE, record


class RunState(StrEnum):
    """The states of a run. Transitions: `dueline.scheduler.core.transitions`."""

    WAITING = "waiting"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class Trigger(StrEnum):
    """Why a run exists."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch-up"
    MANUAL = "manual"
    BACKFILL = "backfill"


@record
class RunJob:
    """The constants of a run, taken from its job version: one nested block, so its bytes can be encoded once a version."""

    id: str
    version: int
    queue: str
    handler: str
    payload: str  # JSON text
    timeout_ms: int = 0
    misfire_grace_ms: int = 60_000
    max_retries: int = 0
    retry_backoff_ms: int = 10_000
    retry_backoff_factor: float = 2.0
    retry_backoff_max_ms: int = 600_000
    max_worker_losses: int = 5


@record
class StepRange:
    """Where an earlier attempt wrote its steps: partition `home` of `steps`, offsets [start, end)."""

    attempt: int
    home: int
    start: int
    end: int


@record
class Run:
    """One job at one due time. Key: `job@2026-11-30T06:00:00Z`; of a manual run `job@!command`."""

    job: RunJob
    due_ms: int  # of a manual run: append time of the command
    command: str = ""
    previous_due_ms: int = NONE  # the job's due time before this one, so that a gap in the chain shows
    trigger: str = Trigger.SCHEDULE
    state: str = RunState.WAITING
    reason: str = ""
    until_ms: int = NONE  # waiting: not before
    attempt: int = 0  # always increases
    failures: int = 0  # retry budget used
    losses: int = 0  # workers lost
    ahead: bool = False  # offered before its due time
    recall: str = ""  # why a granted attempt was asked back or cancelled
    partition: int = NONE  # of the dispatch topic
    dispatch_term: int = NONE  # the offer: (term, sequence)
    dispatch_seq: int = NONE
    incarnation: str = ""  # the claim that was granted
    worker: str = ""
    claim: int = NONE
    home: int = NONE
    steps_from: int = NONE
    begun: bool = False
    deadline_ms: int = NONE  # of this attempt
    earlier: list[StepRange] = field(default_factory=list)
    created_ms: int = NONE
    dispatched_ms: int = NONE
    granted_ms: int = NONE
    started_ms: int = NONE  # as the worker told
    finished_ms: int = NONE
    outcome: str = ""
    error: str = ""
    result: str = ""  # JSON text
    term: int = NONE
    generation: int = NONE
    leader_ms: int = NONE

    @property
    def key(self) -> str:
        """The run id, and its key in `runs`."""
        return run_key(self.job.id, self.due_ms, self.command)


@record
class Summary:
    """Three or more due times in a row that were passed over, in one record. Key: `job@first~last`."""

    job: str
    version: int
    reason: str
    first_ms: int
    last_ms: int
    count: int
    previous_due_ms: int = NONE
    term: int = NONE
    generation: int = NONE
    leader_ms: int = NONE

    @property
    def key(self) -> str:
        """The record's key in `runs`."""
        return f"{self.job}@{iso(self.first_ms)}~{iso(self.last_ms)}"


def run_key(job: str, due_ms: int, command: str = "") -> str:
    """The id of a run: job and due time; of a manual run job and command id."""
    return f"{job}@!{command}" if command else f"{job}@{iso(due_ms)}"


@lru_cache(maxsize=65_536)
def iso(instant_ms: int) -> str:
    """`2026-11-30T06:00:00Z`, with milliseconds only where there are any."""
    text = datetime.fromtimestamp(instant_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    millis = instant_ms % 1000
    return f"{text}.{millis:03d}Z" if millis else f"{text}Z"
