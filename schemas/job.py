"""A job: what a user publishes to `jobs`, and the numbered versions the leader makes of it in `job-versions`."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from dueline.schemas.base import NONE, record


class Misfire(StrEnum):
    """What happens to due times found late."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class Overlap(StrEnum):
    """What happens when a due time comes while an earlier run of the job is not finished."""

    SKIP = "skip"
    ALLOW = "allow"


class Change(StrEnum):
    """What made a job version."""

    DEFINED = "defined"
    DELETED = "deleted"
    PAUSED = "paused"
    RESUMED = "resumed"
    REZONED = "rezoned"  # the zone data changed: the same definition, its due times worked out anew


@record
class Job:
    """A definition as its user published it. Durations in milliseconds; `schedule` and `payload` are JSON text."""

    id: str
    schedule: str
    handler: str
    queue: str = "default"
    payload: str = "null"
    description: str = ""
    misfire: str = Misfire.LATEST
    misfire_grace_ms: int = 60_000
    catch_up_window_ms: int = 86_400_000
    catch_up_max: int = 1_000  # of `all`: the latest ones run
    catch_up_every_ms: int = 0  # of `all`: least time between two starts; 0: none
    overlap: str = Overlap.SKIP
    max_concurrent: int = 0  # 0: no limit
    max_retries: int = 3
    retry_backoff_ms: int = 10_000
    retry_backoff_factor: float = 2.0
    retry_backoff_max_ms: int = 600_000
    max_worker_losses: int = 5
    timeout_ms: int = 3_600_000  # per attempt; 0: none
    dispatch_ahead_ms: int = 10_000


@record
class JobVersion:
    """What holds for a job from `effective_ms` on, until its next version. Key: `job#version`."""

    job: str
    version: int  # from 1, never restarts, also not after a deletion
    change: str  # Change
    effective_ms: int
    paused: bool
    definition: Job  # of a change that is none of it: the one that held before
    source_topic: str  # where the user's record stands
    source_partition: int
    source_offset: int
    source_ms: int  # its append time
    command: str = ""  # id of the command, if one made this version
    by: str = ""
    taken: list[int] = field(default_factory=list)  # due times at or after effective_ms that stay with the version before
    tzdata: str = ""
    term: int = NONE
    generation: int = NONE
    leader_ms: int = NONE

    @property
    def key(self) -> str:
        """The record's key in `job-versions`."""
        return f"{self.job}#{self.version}"
