"""`dueline jobs list`: a job whose stored schedule no longer compiles is shown as a problem, not as one that is never due."""

from __future__ import annotations

from dueline.scheduler.audit.evidence import Place, Seen
from dueline.scheduler.audit.readmodel import JobHistory
from dueline.scheduler.cli.jobs import _summary, _table
from dueline.scheduler.cli.session import display_of
from tests.unit.audit.worlds import EPOCH, make_version

GOOD, BAD = '{"every":"1m"}', '{"every":"1m","colour":"red"}'


def history(schedule: str) -> JobHistory:
    """A job with one version."""
    place = Place(topic="t.job-versions", partition=0, offset=0, append_ms=EPOCH)
    return JobHistory(job="menu", versions=[Seen(key="menu#1", record=make_version(1, EPOCH, schedule), place=place)])


def test_a_schedule_that_no_longer_compiles_is_a_problem() -> None:
    """Given one, then JSON and table say why; without one the table has no such column."""
    summary = _summary(history(BAD), None, EPOCH)
    assert "does not compile" in str(summary["problem"])
    assert "colour" in str(summary["problem"])
    assert summary["next_due"] is None
    columns, rows = _table([history(BAD), history(GOOD)], {}, display_of("UTC"), EPOCH)
    assert columns[-1] == "problem"
    assert ["colour" in row[-1] for row in rows] == [True, False]
    assert "problem" not in _table([history(GOOD)], {}, display_of("UTC"), EPOCH)[0]
    assert _summary(history(GOOD), None, EPOCH)["problem"] is None
