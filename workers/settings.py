"""What a worker process is told at its start."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dueline.schemas.names import check_name
from dueline.schemas.topics import Namespace, check_queue

LEASE_SHARE: Final = 0.7
"""The lease's share of `worker_timeout`: ends before the leader, which counts from receipt, would fence (W8)."""

MAX_WORKER_ID: Final = 64
"""Characters; an incarnation's name adds nine and must still fit a transactional id."""


def default_worker_id() -> str:
    """`host-pid`, with what cannot stand in a key replaced."""
    host = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in socket.gethostname())
    suffix = f"-{os.getpid()}"
    return (host or "host")[: MAX_WORKER_ID - len(suffix)] + suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Times in seconds. Raises ValueError for what cannot work."""

    queue: str
    namespace: Namespace = field(default_factory=Namespace)
    worker: str = field(default_factory=default_worker_id)
    slots: int = 8
    prefetch: int = 0
    heartbeat_s: float = 1.0
    worker_timeout_s: float = 10.0  # the scheduler's setting of the same name must be equal
    drain_timeout_s: float = 30.0
    health_file: Path | None = None
    transaction_timeout_s: float = 8.0  # a dead worker's open transaction holds back its home partition this long
    start_bound_s: float = 1.0  # a granted run that finds no slot for so long is declined

    def __post_init__(self) -> None:
        check_queue(self.queue)
        check_name("worker id", self.worker, MAX_WORKER_ID)
        if self.slots < 1:
            raise ValueError(f"slots is {self.slots}: at least 1")
        if self.prefetch < 0:
            raise ValueError(f"prefetch is {self.prefetch}: 0 or more")
        if not 0 < self.heartbeat_s <= self.worker_timeout_s / 3:
            raise ValueError(
                f"heartbeat is {self.heartbeat_s} s: more than 0 and at most a third of the worker timeout, "
                f"{self.worker_timeout_s} s, so that one lost heartbeat ends nothing"
            )
        if self.drain_timeout_s < 0:
            raise ValueError(f"drain timeout is {self.drain_timeout_s} s: 0 or more")

    @property
    def lease_s(self) -> float:
        """How long after the sending of an acknowledged heartbeat the worker may begin handlers and steps."""
        return self.worker_timeout_s * LEASE_SHARE
