"""Retry delays: exponential, capped, with a jitter that is the same whoever computes it."""

from __future__ import annotations

from hashlib import blake2b

from dueline.schemas.run import RunJob

JITTER = 0.2
"""A delay is shortened by up to this share, so that what failed together does not come back together."""

MAX_DOUBLINGS = 64
"""Steps after which a delay grows no more, also for a factor so near to 1 that its limit is never reached."""


def delay_ms(job: RunJob, run: str, failures: int) -> int:
    """How long run `run` waits after its `failures`-th failure (from 1), in milliseconds."""
    full, limit = float(job.retry_backoff_ms), float(job.retry_backoff_max_ms)
    for _ in range(min(failures - 1, MAX_DOUBLINGS)):
        if full >= limit:
            break
        full *= job.retry_backoff_factor  # a power would overflow for a factor that a definition may have
    return int(min(full, limit) * (1 - JITTER * share(run, failures)))


def share(run: str, number: int) -> float:
    """A number in [0, 1) drawn from a run and a count: chance that replays."""
    digest = blake2b(f"{run}#{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
