"""How a command ends when it does not end well: an exit code with a meaning, and a message that says what to do."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """The exit codes of every command. docs/cli.md lists them."""

    OK = 0
    PROBLEM = 1  # the question was answered and the answer is bad; or the request was refused
    USAGE = 2  # the command line, a file or a setting can't be used
    UNREACHABLE = 3  # no broker answered in time
    NO_ANSWER = 4  # sent, but no scheduler took it up in time, or what became of it was not seen
    NOT_SET_UP = 5  # the namespace's topics are missing
    INTERRUPTED = 130  # Ctrl-C


class CommandError(Exception):
    """An expected failure: printed without a traceback. `what` happened, in one sentence; `todo` is the way out."""

    def __init__(self, what: str, *, todo: str = "", code: ExitCode = ExitCode.PROBLEM) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo
        self.code = code


_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""What a terminal would act on instead of showing it: C0, DEL and C1."""


def shown(text: str) -> str:
    """The text with its control characters written out: whatever a handler or a record contains, a terminal shows it only."""
    return text.translate(_CONTROL)
