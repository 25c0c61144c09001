"""Instants as ISO text and back, for tests: an implementation of its own, by the standard library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ms(text: str) -> int:
    """Milliseconds of `2026-03-08T07:00:00Z`, rounded down."""
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)


def iso(instant: int | None) -> str:
    """`2026-03-08T07:00:00Z`; an empty text for None."""
    if instant is None:
        return ""
    return (_EPOCH + timedelta(milliseconds=instant)).strftime("%Y-%m-%dT%H:%M:%SZ")
