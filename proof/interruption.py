"""Ctrl-C and SIGTERM end a command of the proof in order: no traceback, no process left, exit code 130. So does a reader that
goes away (`| head`), with 141: neither code is one that says what came of the proof."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

INTERRUPTED: Final = 130
"""The exit code, as of a shell's command that SIGINT ended."""
UNREAD: Final = 141
"""The same of SIGPIPE."""
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


def exit_code(main: Callable[[], int]) -> int:
    """Of a command, whoever reads its output."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
        return UNREAD
    return code
