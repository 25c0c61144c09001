"""Schedulers with different zone data: the newer release leads while one is there, and jobs are not rezoned back and forth."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.schedule import tzdata_version
from dueline.scheduler.leader import scheduler
from dueline.schemas.job import Change
from tests.integration.leader.rig import Rig, Running

NEWER = "9999z"


def started(rig: Rig, tzdata: str) -> Running:
    """A scheduler that says it has this release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "tzdata_version", lambda: tzdata)
        return rig.start()


def test_a_mixed_fleet_does_not_rezone_back_and_forth(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Given two schedulers with newer data and one without; then a take-over ends at a newer one and makes no version; once
    none is left, the old one leads and rezones, for that is all the zone data there is."""
    ledger = rig.ledger()
    first, second, old = None, None, None
    try:
        first = started(rig, NEWER)
        rig.publish("daily", {"cron": "0 3 * * *", "tz": "Europe/Berlin"})
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        ledger.until(lambda seen: seen.versions("daily") and seen.due_times("tick"), "the job")
        old, second = started(rig, tzdata_version()), started(rig, NEWER)
        first.stop()
        known = len(ledger.due_times("tick"))
        ledger.until(lambda seen: len(seen.due_times("tick")) >= known + 2, "a newer one leads")
        assert [version.change for version in ledger.versions("daily")] == [Change.DEFINED]
        second.stop()
        ledger.until(lambda seen: len(seen.versions("daily")) == 2, "the old one leads alone")
    finally:
        for each in (first, second, old):
            if each is not None:
                each.stop()
    assert [(v.change, v.tzdata) for v in ledger.versions("daily")] == [
        (Change.DEFINED, NEWER), (Change.REZONED, tzdata_version())
    ]  # fmt: skip
    assert [getattr(r, "action", "") for r in caplog.records].count("older_zone_data") == 1
