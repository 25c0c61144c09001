"""dueline: a distributed job scheduler whose only database is the Kafka log.

What a handler and its tests need, and nothing else. The command is `dueline`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dueline.workers.context import AsyncContext, Context
    from dueline.workers.errors import AttemptClosed, Fail, Interruption, Retry, RunCancelled, Snooze, StepError
    from dueline.workers.testing import Crash, TestContext

__all__ = [
    # what a handler is called with
    "Context", "AsyncContext",
    # what it may raise
    "Snooze", "Fail", "Retry",
    # what it may meet
    "StepError", "Interruption", "RunCancelled", "AttemptClosed",
    # what its tests use
    "TestContext", "Crash",
]  # fmt: skip

_HOMES = {"Context": "context", "AsyncContext": "context", "TestContext": "testing", "Crash": "testing"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: every dueline module imports this one, few of them need a worker."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dueline.workers.{_HOMES.get(name, 'errors')}"), name)
