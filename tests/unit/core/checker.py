"""Is each due time decided exactly once? Asked of the ledger alone, as an auditor would, and not of the planner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dueline.scheduler.core.schedule import compile_schedule
from dueline.scheduler.core.transitions import TERMINAL, TRANSITIONS
from dueline.schemas.base import NONE
from dueline.schemas.job import Change, JobVersion
from dueline.schemas.run import Run, RunState, Summary, Trigger, iso

FOREVER = 1 << 62
TIMED = (Trigger.SCHEDULE, Trigger.CATCH_UP)


@dataclass
class Expected:
    """The due times of one job up to an instant: each with the version it belongs to."""

    owner: dict[int, int] = field(default_factory=dict)


def faults(versions: Sequence[JobVersion], ledger: Sequence[object], horizon: int) -> list[str]:
    """What is wrong with a ledger whose leader has decided everything up to `horizon`; [] if nothing is."""
    runs = [record for record in ledger if isinstance(record, Run)]
    summaries = {record.key: record for record in ledger if isinstance(record, Summary)}
    found: list[str] = []
    for job in sorted({version.job for version in versions} | {run.job.id for run in runs}):
        mine = [version for version in versions if version.job == job]
        found += _order_of_versions(job, mine)
        expected = _expected(mine, horizon)
        last = {run.key: run for run in runs if run.job.id == job and run.trigger in TIMED}
        found += _coverage(job, expected, list(last.values()), [s for s in summaries.values() if s.job == job], horizon)
    return found + _lives(runs) + _early(runs, list(summaries.values()))


def _expected(versions: list[JobVersion], horizon: int) -> Expected:
    expected, taken = Expected(), dict[int, int]()
    for before, version in pairwise(versions):
        for due in version.taken:
            taken.setdefault(due, before.version)
    ends = [version.effective_ms for version in versions[1:]] + [FOREVER]
    for version, end in zip(versions, ends, strict=True):
        if version.change != Change.DELETED:
            schedule = compile_schedule(version.definition.schedule, job_id=version.job)
            for due in schedule.between(version.effective_ms, min(end, horizon + 1)):
                expected.owner.setdefault(due, version.version)
    expected.owner.update({due: owner for due, owner in taken.items() if due <= horizon})
    return expected


def _order_of_versions(job: str, versions: list[JobVersion]) -> list[str]:
    found = []
    if [version.version for version in versions] != list(range(1, len(versions) + 1)):
        found.append(f"{job}: versions {[version.version for version in versions]}")
    instants = [version.effective_ms for version in versions]
    if instants != sorted(instants):
        found.append(f"{job}: an instant goes back")
    return found


def _coverage(job: str, expected: Expected, runs: list[Run], summaries: list[Summary], horizon: int) -> list[str]:
    covers: dict[int, int] = defaultdict(int)
    found = []
    for run in runs:
        covers[run.due_ms] += 1
        if run.due_ms <= horizon and run.due_ms not in expected.owner:
            found.append(f"{run.key}: no version has this due time")
    for summary in summaries:
        stretch = (summary.first_ms, summary.last_ms)
        own = [due for due, owner in expected.owner.items() if owner == summary.version and stretch[0] <= due <= stretch[1]]
        if len(own) != summary.count or not own or (min(own), max(own)) != stretch or summary.count < 3:
            found.append(f"{summary.key}: says {summary.count} due times, there are {len(own)}")
        for due in own:
            covers[due] += 1
    found += [f"{job}@{iso(due)}: lost" for due in sorted(expected.owner) if not covers[due]]
    found += [f"{job}@{iso(due)}: {count} records" for due, count in sorted(covers.items()) if count > 1]
    return found + _chain(job, expected, runs, summaries)


def _chain(job: str, expected: Expected, runs: list[Run], summaries: list[Summary]) -> list[str]:
    """`previous_due_ms` leaves out no due time of the same version, and names one of the job."""
    found = []
    links = [(run.due_ms, run.previous_due_ms) for run in runs] + [(s.first_ms, s.previous_due_ms) for s in summaries]
    for due, previous in links:
        owner = expected.owner.get(due)
        before = max((other for other, version in expected.owner.items() if other < due and version == owner), default=NONE)
        if owner is None:
            continue
        if previous >= due or previous < before or (previous != NONE and previous not in expected.owner):
            found.append(f"{job}@{iso(due)}: its chain names {previous - due if previous != NONE else 'none'}")
    return found


def _lives(runs: list[Run]) -> list[str]:
    """Each record follows from the one before by the table; nothing follows an end; one claim of an attempt is granted."""
    found: list[str] = []
    last: dict[str, Run] = {}
    granted: dict[tuple[str, int], tuple[str, int]] = {}
    for run in runs:
        before = last.get(run.key)
        if before is not None and before.state in TERMINAL:
            found.append(f"{run.key}: {run.state} after {before.state}")
        elif (before.state if before else "", run.state) not in TRANSITIONS:
            found.append(f"{run.key}: {before.state if before else 'nothing'} -> {run.state}")
        if before is not None and run.attempt < before.attempt:
            found.append(f"{run.key}: attempt {run.attempt} after {before.attempt}")
        if run.state == RunState.RUNNING:
            claim = (run.incarnation, run.claim)
            if granted.setdefault((run.key, run.attempt), claim) != claim:
                found.append(f"{run.key}: attempt {run.attempt} granted twice")
        last[run.key] = run
    return found


def _early(runs: list[Run], summaries: list[Summary]) -> list[str]:
    """Nothing is passed over, and nothing offered to be begun at once, before its due time."""
    found = [f"{s.key}: early" for s in summaries if s.leader_ms < s.last_ms]
    for run in runs:
        at_once = (run.state == RunState.DISPATCHED and not run.ahead) or run.state == RunState.SKIPPED
        if at_once and run.trigger in TIMED and run.leader_ms < run.due_ms:
            found.append(f"{run.key}: {run.state} {run.due_ms - run.leader_ms} ms early")
    return found
