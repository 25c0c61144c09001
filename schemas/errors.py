"""What can be wrong with what others wrote: undecodable bytes, invalid definitions, invalid names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Where a field stands: names of fields and, within lists, positions from 0."""


class ContractError(Exception):
    """Something does not follow the contract. The message says what, where and what to do."""


class DecodeError(ContractError):
    """Bytes that are no record of ours: unknown schema, truncated, trailing bytes, wrong text encoding, no JSON."""


class NameInvalid(ContractError, ValueError):
    """A namespace, queue or other name that cannot be part of a topic name or a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong in a definition."""

    path: Path
    message: str

    def __post_init__(self) -> None:
        # A path may hold a user's own key, of any length and with characters that no record could carry on.
        path = tuple(_printable(part) if isinstance(part, str) else part for part in self.path)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "message", _printable(self.message, 1_000))

    @property
    def where(self) -> str:
        """The path as text, such as `retry.max` or `schedule[1]`; "" for the whole."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.path else self.message


class DefinitionError(ContractError):
    """A job definition or command that can be read but is not allowed. Its text names every fault found."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))

    @classmethod
    def of(cls, message: str, *path: str | int) -> DefinitionError:
        """An error with one fault."""
        return cls([Fault(path=path, message=message)])

    @property
    def path(self) -> str:
        """Where the first fault stands; "" for the whole."""
        return self.faults[0].where

    @property
    def message(self) -> str:
        """The first fault, without its path."""
        return self.faults[0].message


def _printable(text: str, limit: int = 80) -> str:
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return shown.encode("utf-8", "backslashreplace").decode()
