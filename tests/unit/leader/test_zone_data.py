"""Who has older zone data than the ledger leaves the lead to the others first, and leads if there are none."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.state import State
from dueline.scheduler.leader.zone_data import NewerZoneData, ZoneData
from tests.unit.core.world import World, job

DAILY = '{"cron": "0 3 * * *", "tz": "America/Vancouver"}'


def decided_with(tzdata: str) -> State:
    """A ledger whose jobs were decided with this release."""
    world = World(tzdata=tzdata)
    world.publish(job(schedule=DAILY))
    world.publish(job("utc", schedule='"0 3 * * *"'))
    world.round()
    return world.state


def test_older_zone_data_yields_once_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Given a ledger of a newer release, then it yields, leads when it is elected again, and yields anew after that."""
    mine, state = ZoneData("2025b"), decided_with("2026f")
    for _ in range(2):
        with pytest.raises(NewerZoneData, match="2026f"):
            mine.check(state)
        mine.check(state)
    assert [getattr(record, "action", "") for record in caplog.records] == ["older_zone_data"]
    assert "2025b" in caplog.text


@pytest.mark.parametrize("present", ["2026f", "2026g", "2027a"])
def test_the_same_or_newer_zone_data_leads(present: str, caplog: pytest.LogCaptureFixture) -> None:
    """Then nothing is said."""
    ZoneData(present).check(decided_with("2026f"))
    assert caplog.records == []


def test_the_release_of_jobs_without_a_zone_does_not_count() -> None:
    """Given only jobs in UTC, or none, then any release leads."""
    world = World(tzdata="2026f")
    world.publish(job("utc", schedule='"0 3 * * *"'))
    world.round()
    for state in (world.state, State()):
        ZoneData("2025b").check(state)
    assert world.versions[0].tzdata == "2026f"
