"""A small file that says the loop is alive, for `dueline health` and container health checks."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from dueline.scheduler.core.ports import Clock

EVERY_S = 1.0

log = logging.getLogger(__name__)


class Health:
    """Written at most once a second, atomically. Without a path it does nothing."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = Path(path) if path else None
        self._clock = clock
        self._written: tuple[str, float] = ("", -EVERY_S)
        self._failed = False

    def beat(self, role: str, *, term: int = -1) -> None:
        """The loop came by, in this role."""
        now_s = self._clock.monotonic_s()
        last_role, last_s = self._written
        if self._path is None or (role == last_role and now_s - last_s < EVERY_S):
            return
        self._written = (role, now_s)
        text = json.dumps({"kind": "scheduler", "role": role, "term": term, "wall_ms": self._clock.wall_ms(), "pid": os.getpid()})
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_text(text)
            temporary.replace(self._path)
        except OSError as error:  # a full disk must not end the leader
            if not self._failed:
                log.warning("the health file cannot be written: %s", error, extra={"action": "health_unwritable"})
            self._failed = True
        else:
            self._failed = False
