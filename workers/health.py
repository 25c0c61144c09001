"""A small JSON file, written about every second while the loop is alive: for container health checks and people."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EVERY_S: Final = 1.0

log = logging.getLogger(__name__)


class Health:
    """Writes the file, whole or not at all. Without a path it does nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._next_s = 0.0
        self._failed = False

    def due(self, now_s: float) -> bool:
        """Whether it is time to write it."""
        return self._path is not None and now_s >= self._next_s

    def tell(self, now_s: float, facts: Mapping[str, object]) -> None:
        """Write the facts, if it is time."""
        if self._path is None or now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        try:
            self.write(self._path, facts)
        except OSError as error:  # a full disk must not end what runs
            if not self._failed:
                log.warning("the health file cannot be written: %s", error, extra={"action": "health.unwritable"})
            self._failed = True
        else:
            self._failed = False

    @staticmethod
    def write(path: Path, facts: Mapping[str, object]) -> None:
        """Write them now."""
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps(facts) + "\n")
        os.replace(fresh, path)

    def remove(self) -> None:
        """The worker has stopped."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
