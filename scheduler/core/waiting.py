"""What a waiting run waits for: its `reason`, and with it the index it stands in."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from dueline.schemas.job import Job, Overlap
from dueline.schemas.run import Run, RunState


class Waiting(StrEnum):
    """Reasons of `waiting`."""

    NO_WORKER = "no-worker"  # nobody with the handler has a free slot
    OVERLAP = "overlap"  # an earlier run of the job is not finished
    LIMIT = "limit"  # max_concurrent
    RETRY = "retry"
    SNOOZE = "snooze"
    DECLINED = "declined"  # a worker could not start it
    INTERRUPTED = "interrupted"  # a worker was drained
    LOST = "worker-lost"
    UNDECIDED = "internal-error"  # how its attempt ended met a bug
    JITTER = "jitter"  # its start is spread: so long after its due time
    CATCH_UP = "catch-up-rate"  # late runs of its job start `catch_up_every` apart
    RECALLED = "recalled"  # asked back before it began: its due time is decided again


BLOCKED: Final = frozenset({Waiting.OVERLAP, Waiting.LIMIT})
ENGAGED: Final = frozenset({
    Waiting.RETRY, Waiting.DECLINED, Waiting.INTERRUPTED, Waiting.LOST, Waiting.SNOOZE, Waiting.UNDECIDED,
})  # fmt: skip
ADMITTED: Final = frozenset({Waiting.NO_WORKER, Waiting.JITTER})


def engages(run: Run) -> bool:
    """Whether the run counts as running for its job's overlap and limits: it was admitted and has not ended."""
    if run.state == RunState.WAITING:
        return (run.attempt > 0 and run.reason in ENGAGED) or run.reason in ADMITTED
    return run.state in (RunState.DISPATCHED, RunState.RUNNING)


def admits(job: Job, engaged: int) -> bool:
    """Whether one more run of the job may go on beside those that are engaged."""
    if job.overlap == Overlap.SKIP:
        return engaged == 0
    return not job.max_concurrent or engaged < job.max_concurrent
