"""What `dueline audit` prints of calendars: which entry took out how much, without --all."""

from __future__ import annotations

import pytest

from dueline.scheduler.cli.audit import _show
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import display_of
from tests.unit.audit.worlds import EPOCH, MINUTE, World, make_version


def test_each_calendar_entry_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Given a day that a calendar excludes, then a line names job, number, entry, first and last."""
    schedule = '{"cron":"0 * * * *","calendar":{"exclude":["2026-11-30"]}}'  # EPOCH lies on that day
    world = World(versions=[make_version(1, EPOCH, schedule)], now_ms=EPOCH + 3 * 60 * MINUTE)
    _show(Output(as_json=False), display_of("UTC"), world.audit(), everything=False)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("excluded:"))
    assert line.startswith("excluded: menu, 3 by its calendar's exclude 2026-11-30, 2026-11-30 ")
