"""The audit across a change of the zone data: nothing is missed or unexplained only because rules changed, and it says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.scheduler.audit.expected import DueTimes
from dueline.scheduler.audit.findings import Verdict
from dueline.schemas.job import Change, JobVersion, Overlap
from dueline.schemas.run import Run, Summary
from tests.unit.audit.worlds import Entry, World, Writer, make_run, make_version
from tests.unit.core.world import World as Leader
from tests.unit.core.world import at, job
from tests.unit.core.zone_data import EAST, WEST, Releases, compiled, daily

HOUR = 3_600
TEN, ELEVEN, DAY = 2 * HOUR, 3 * HOUR, 24 * HOUR
OTHER = "other zone data: recorded with 2026f, recomputed with 2025b"


def by(tzdata: str) -> object:
    """How an auditor with this release works out due times."""

    def rules(version: JobVersion) -> DueTimes:
        return compiled(version.definition.schedule, tzdata, version.job)

    return rules


def told(leader: Leader, tzdata: str) -> World:
    """What a leader wrote, for an auditor with this release."""
    entries = [
        Entry(topic="runs", key=record.key, record=record, append_ms=record.leader_ms)
        for record in leader.runs
        if isinstance(record, Run | Summary)
    ]
    entries += [
        Entry(topic="attempts", key=read.value.run, record=read.value, append_ms=read.append_ms)
        for read in leader.attempts_log
        if read.value is not None
    ]
    return World(versions=leader.versions, entries=entries, now_ms=leader.now, rules=by(tzdata))  # type: ignore[arg-type]


def verdicts(world: World, tzdata: str) -> list[tuple[int, Verdict]]:
    """(seconds after T0, verdict) of each due time that has passed."""
    found = world.audit(from_ms=at(0), tzdata=tzdata).scheduled
    passed = [finding for finding in found if finding.due_ms <= world.now_ms]
    return sorted(((finding.due_ms - at(0)) // 1_000, finding.verdict) for finding in passed)


def run_at(leader: Leader, second: int) -> None:
    """A due time comes, is run and ends well."""
    leader.round(at(second))
    claim = leader.started(leader.due(second).key)
    leader.now += 10
    leader.finish(claim)
    leader.round()


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Leader:
    """Runs at 10:00Z on two days by EAST; then a leader with WEST, by which they were 11:00Z, for two more days."""
    releases = Releases(monkeypatch, EAST)
    leader = releases.world()
    leader.publish(job(schedule=daily(), overlap=Overlap.ALLOW))
    leader.round()
    run_at(leader, TEN)
    run_at(leader, DAY + TEN)
    leader.now = at(DAY + TEN + 1_800)
    releases.upgrade(leader, WEST)
    leader.round()
    leader.round(at(DAY + ELEVEN + 60))
    run_at(leader, 2 * DAY + ELEVEN)
    leader.now += 60_000
    return leader


def test_what_moved_is_told_as_moved(changed: Leader) -> None:
    """Given an auditor with the new release, then every record is accepted, and what was due by the new rules has moved."""
    assert verdicts(told(changed, WEST), WEST) == [
        (TEN, Verdict.RAN),
        (ELEVEN, Verdict.MOVED),
        (DAY + TEN, Verdict.RAN),
        (DAY + ELEVEN, Verdict.MOVED),
        (2 * DAY + ELEVEN, Verdict.RAN),
    ]
    findings = {finding.due_ms: finding for finding in told(changed, WEST).audit(from_ms=at(0), tzdata=WEST).findings}
    assert OTHER in findings[at(ELEVEN)].detail
    assert "zone data 2025b put the occurrence here" in findings[at(DAY + ELEVEN)].detail
    assert findings[at(TEN)].detail.endswith(f"{OTHER}, which does not have this due time")
    assert "other zone data" not in findings[at(2 * DAY + ELEVEN)].detail


def test_an_auditor_with_the_old_release_accepts_it_too(changed: Leader) -> None:
    """Given an auditor that was not upgraded, then what it works out otherwise is told as moved."""
    result = told(changed, EAST).audit(from_ms=at(0), tzdata=EAST)
    assert result.explained
    assert (2 * DAY + TEN, Verdict.MOVED) in verdicts(told(changed, EAST), EAST)


def test_without_the_leniency_it_would_be_called_missed(changed: Leader) -> None:
    """Given an audit that does not know of zone data, then it finds faults: the leniency is what explains them."""
    assert not told(changed, WEST).audit(from_ms=at(0)).explained


def test_what_moved_must_not_have_run_again(changed: Leader) -> None:
    """Given a record at the instant to which an occurrence moved, then it ran twice."""
    world = told(changed, WEST)
    again = replace(make_run(world.versions[1], at(DAY + ELEVEN), at(DAY + TEN)), state="skipped", reason="overlap")
    entry = Entry(topic="runs", key=again.key, record=again, append_ms=at(DAY + ELEVEN))
    assert (DAY + ELEVEN, Verdict.DUPLICATED) in verdicts(world.plus(entry), WEST)


def test_a_run_that_is_missing_under_the_new_rules_is_missed(changed: Leader) -> None:
    """Then leniency ends where the version with the new data begins."""
    world = told(changed, WEST).without(changed.due(2 * DAY + ELEVEN).key)
    assert (2 * DAY + ELEVEN, Verdict.MISSED) in verdicts(world, WEST)


def test_nothing_decided_near_is_missed_also_by_other_rules(changed: Leader) -> None:
    """Given no record within three hours, then other rules are no excuse."""
    world = told(changed, WEST).without(changed.due(TEN).key)
    assert (ELEVEN, Verdict.MISSED) in verdicts(world, WEST)


def test_a_summary_by_other_rules_is_not_recounted() -> None:
    """Given a summary of due times that the present rules have elsewhere, then it covers them, and says it was not recounted."""
    version = replace(make_version(1, at(0), daily(), change=Change.DEFINED), tzdata=EAST)
    world = World(versions=[version], now_ms=at(3 * DAY + ELEVEN + 60), rules=by(WEST))  # type: ignore[arg-type]
    Writer(world).skip(version, [at(day * DAY + TEN) for day in range(4)], "misfire-skip", at(3 * DAY + TEN))
    result = world.audit(from_ms=at(0), tzdata=WEST)
    assert result.explained
    (covered,) = (finding for finding in result.findings if finding.verdict == Verdict.COVERED)
    assert covered.detail == f"not recounted: {OTHER}"
    assert verdicts(world, WEST)[-1] == (3 * DAY + ELEVEN, Verdict.MOVED)
