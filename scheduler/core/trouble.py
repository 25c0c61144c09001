"""An exception where none belongs: a bug, met while one input or one job was being decided. It is kept as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from traceback import format_exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What was raised: its type and text, and the traceback for whoever mends it."""

    error: str
    traceback: str = field(repr=False)


def trouble_of(error: Exception) -> Trouble:
    """The exception as a value."""
    return Trouble(error=f"{type(error).__name__}: {error}", traceback="".join(format_exception(error)))
