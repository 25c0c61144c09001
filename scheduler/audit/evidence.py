"""Where a record stands in the log: what every statement of the audit rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from dueline.scheduler.core.ports import Received

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Coordinates of a record; `append_ms` by the clock of its partition's broker."""

    topic: str
    partition: int
    offset: int
    append_ms: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Generic[R_co]):
    """A record as it stands in the log."""

    place: Place
    key: str
    record: R_co


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A record that could not be decoded, or that does not belong where it stands."""

    place: Place
    key: str
    error: str


def place_of(received: Received) -> Place:
    """The coordinates of a record as read."""
    return Place(
        topic=received.topic,
        partition=received.partition,
        offset=received.offset,
        append_ms=received.append_ms,
    )


def key_of(received: Received) -> str:
    """The key as text; bytes that are no UTF-8 are shown escaped."""
    return (received.key or b"").decode("utf-8", "backslashreplace")
