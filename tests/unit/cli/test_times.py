"""Instants on the command line and in tables."""

from __future__ import annotations

import pytest

from dueline.scheduler.cli.times import Display, instant, took
from dueline.schemas.base import NONE

NOW = 1_796_018_400_000  # 2026-11-30T06:00:00Z
HOUR = 3_600_000
UTC = Display.of("UTC")
BERLIN = Display.of("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("-2h", NOW - 2 * HOUR),
        ("- 90m", NOW - 90 * 60_000),
        ("30m ago", NOW - 30 * 60_000),
        ("1h30m ago", NOW - 90 * 60_000),
        ("1h", NOW - HOUR),
        ("PT90M", NOW - 90 * 60_000),
        ("2026-11-30", NOW - 6 * HOUR),
        ("2026-11-30T06:00", NOW),
        ("2026-11-30 06:00:00.250", NOW + 250),
        ("2026-11-30T06:00:00Z", NOW),
        ("2026-11-30T07:00:00+01:00", NOW),
    ],
)
def test_every_form_is_read(text: str, expected: int) -> None:
    assert UTC.parse(text, NOW) == expected


def test_a_time_without_offset_is_local_to_the_zone() -> None:
    assert BERLIN.parse("2026-11-30T07:00", NOW) == NOW
    assert BERLIN.parse("2026-11-30T07:00Z", NOW) == NOW + HOUR


def test_a_local_time_that_comes_twice_is_the_first_one() -> None:
    assert instant(BERLIN.parse("2026-10-25T02:30", NOW)) == "2026-10-25T00:30:00Z"


@pytest.mark.parametrize("text", ["", "soon", "-", "-5", "2026-13-01", "5 parsecs ago", "06:00"])
def test_other_text_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 2026-11-30|write it as 90s"):
        UTC.parse(text, NOW)


def test_what_is_shown_can_be_read_back() -> None:
    for display in (UTC, BERLIN):
        assert display.parse(display.show(NOW + 250), 0) == NOW + 250
    assert BERLIN.show(NOW) == "2026-11-30 07:00:00+0100"
    assert UTC.show(NONE) == UTC.show(None) == "–"
    assert instant(NONE) is None


def test_a_zone_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="Europe/Berlin"):
        Display.of("Europe/Berln")


def test_durations() -> None:
    assert took(NOW, NOW + 1_500) == "1s500ms"
    assert took(NOW, NOW - 3) == took(NOW, NOW)
    assert took(NONE, NOW) == "–"
