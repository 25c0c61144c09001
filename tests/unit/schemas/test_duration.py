"""Durations as text."""

from __future__ import annotations

import pytest

from dueline.schemas.duration import MAX_DURATION_MS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90_000), ("5m", 300_000), ("1h30m", 5_400_000), ("1h 30m", 5_400_000), (" 2d ", 172_800_000),
        ("1w", 604_800_000), ("250ms", 250), ("1.5h", 5_400_000), ("0.001s", 1), ("0s", 0), ("0", 0), (0, 0), (0.0, 0),
        ("PT90S", 90_000), ("PT1H30M", 5_400_000), ("P1DT12H", 129_600_000), ("P2W", 1_209_600_000), ("pt5m", 300_000),
        ("PT0.5S", 500), ("3653d", MAX_DURATION_MS),
    ],
)  # fmt: skip
def test_taken(text: object, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a duration"), ("s", "is not a duration"), ("5 minutes", "is not a duration"),
        ("30m1h", "is not a duration"),
        ("1h1h", "is not a duration"), ("5M", "is not a duration"), ("P", "is not a duration"),
        ("PT", "is not a duration"), ("P1DT", "is not a duration"), ("P1Y2M3D", "years and months"),
        ("١s", "is not a duration"), ("1e3s", "is not a duration"), ("+5s", "is not a duration"),
        ("5", "of which unit"),
        (5, "of which unit"), (1.5, "of which unit"), (True, "is text"), (False, "is text"), (None, "is text"),
        ("-1s", "is negative"), ("1.5ms", "whole number of milliseconds"), ("3653d1ms", "more than ten years"),
        ("P1Y", "years and months"), ("P1M", "years and months"), ("9" * 70 + "s", "a duration of 71 characters"),
    ],
)  # fmt: skip
def test_refused(text: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [(0, "0s"), (1, "1ms"), (90_000, "1m30s"), (604_800_000, "7d"), (90_061_001, "1d1h1m1s1ms"), (-5, "-5ms")],
)
def test_shown(duration_ms: int, text: str) -> None:
    assert format_duration(duration_ms) == text
