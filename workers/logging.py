"""Log lines of handlers carry run id and attempt: whatever logger they use, in the handler's thread or task."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final

CURRENT: Final[ContextVar[tuple[str, int] | None]] = ContextVar("dueline_attempt", default=None)
"""(run id, attempt) of the handler that runs in this thread or task."""


class AttemptFilter(logging.Filter):
    """Give each record `run`, `attempt` (empty and 0 outside a handler) and `where`, text to put before the message.

    Put it on a logging handler, not a logger, so that it sees the records of every logger.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        current = CURRENT.get()
        run, attempt = current or ("", 0)
        vars(record).update(run=run, attempt=attempt, where=f"[{run} attempt {attempt}] " if current else "")
        return True


def once(tries: int) -> int:
    """The level at which the n-th failure in a row is told, from 0: a trouble that lasts is said once."""
    return logging.DEBUG if tries else logging.WARNING


def configure(level: int = logging.INFO) -> None:
    """Log to standard error, each line with time, level, logger and, within a handler, run and attempt."""
    handler = logging.StreamHandler()
    handler.addFilter(AttemptFilter())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(where)s%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level)
