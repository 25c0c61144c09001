"""Ctrl-C and SIGTERM end a command of the proof in order: no traceback, no process left, exit code 130."""

from __future__ import annotations

import signal
from typing import Final, NoReturn

INTERRUPTED: Final = 130
"""The exit code, as of a shell's command that SIGINT ended."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def heed_interruptions() -> None:
    """From now on both raise KeyboardInterrupt in the main thread; a shell lets its background jobs ignore SIGINT."""
    for number in SIGNALS:
        signal.signal(number, interrupted)


def interrupted(*_: object) -> NoReturn:
    """Once: what ends the processes must not be interrupted in its turn."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
