"""Two releases of zone data that differ by an hour in one zone: the real engine, under other rules for that zone's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dueline.scheduler.core import definitions, spans
from dueline.scheduler.core.schedule import Schedule, compile_schedule
from tests.unit.core.world import World

ZONE = "America/Vancouver"
WEST, EAST = "2025b", "2026f"
"""Releases: by the first the zone lies eight hours west of Greenwich all year, by the second seven."""

RULES = {WEST: "Etc/GMT+8", EAST: "Etc/GMT+7"}


def daily(reading: str = "0 3") -> str:
    """A schedule at a local reading: 03:00 is 11:00Z by WEST, 10:00Z by EAST."""
    return f'{{"cron": "{reading} * * *", "tz": "{ZONE}"}}'


def compiled(text: str, tzdata: str, job_id: str = "menu") -> Schedule:
    """The schedule by this release."""
    return compile_schedule(text.replace(ZONE, RULES[tzdata]), job_id=job_id)


class Releases:
    """Which release this process has."""

    def __init__(self, patch: pytest.MonkeyPatch, tzdata: str) -> None:
        self.tzdata = tzdata
        for module in (spans, definitions):
            patch.setattr(module, "compile_schedule", self._compile)

    def _compile(self, text: str, *, job_id: str) -> Schedule:
        return compiled(text, self.tzdata, job_id)

    def world(self, **settings: Any) -> World:
        """A namespace whose leader has this release."""
        return World(tzdata=self.tzdata, **settings)

    def upgrade(self, world: World, tzdata: str) -> None:
        """A leader with another release takes over."""
        self.tzdata = tzdata
        world.settings = replace(world.settings, tzdata=tzdata)
        world.take_over()
