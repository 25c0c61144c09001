"""Broken histories share all but a record with the valid one: each is read once."""

from __future__ import annotations

from functools import lru_cache

import pytest

from proof.checker import reading


@pytest.fixture
def quick_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("decode", "parse_job", "parse_command"):
        monkeypatch.setattr(reading, name, lru_cache(maxsize=None)(getattr(reading, name)))
