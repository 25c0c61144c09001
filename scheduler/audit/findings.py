"""What the audit says about a due time, a manual run or a record, and on what evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dueline.scheduler.audit.evidence import Place
from dueline.schemas.base import NONE


class Verdict(StrEnum):
    """The answers, from "nothing to see" to "somebody must look"."""

    RAN = "ran"  # succeeded
    LATE = "late"  # succeeded, begun more than misfire_grace after its due time
    FAILED = "failed"  # it was given its attempts, and the record says why they failed
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # a record says why
    COVERED = "covered"  # several due times, by one summary record
    EXCLUDED = "excluded"  # by a calendar: no due times, told so that nobody misses them
    MOVED = "moved"  # other zone data put the occurrence at another instant, and it was decided there
    PENDING = "pending"  # in the future, not decided within the grace, or under way
    MISSED = "missed"  # no record
    DUPLICATED = "duplicated"  # more than one record, or more than one success
    EARLY = "early"  # decided or begun before its due time
    UNEXPLAINED = "unexplained"  # a record that nothing asks for, or that contradicts the others


PROBLEMS: Final = frozenset({Verdict.MISSED, Verdict.DUPLICATED, Verdict.EARLY, Verdict.UNEXPLAINED})
"""One of these, and the audit is not clean."""

SEVERITY: Final = (Verdict.UNEXPLAINED, Verdict.EARLY, Verdict.DUPLICATED)
"""Of several problems with one due time, the last in this order gives the verdict; all are in the detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One statement. `count` due times from `due_ms` to `last_ms`; NONE and 0 when it is about no due time."""

    verdict: Verdict
    job: str
    due_ms: int = NONE
    last_ms: int = NONE
    count: int = 1
    version: int = NONE
    run: str = ""  # the record's key
    manual: bool = False
    reason: str = ""  # as the record gives it
    detail: str = ""
    evidence: tuple[Place, ...] = ()

    @property
    def problem(self) -> bool:
        """Whether somebody must look."""
        return self.verdict in PROBLEMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The audit of a stretch of time [from, to). `now_ms`: when the ledger was read."""

    namespace: str
    from_ms: int
    to_ms: int
    now_ms: int
    grace_ms: int
    skew_ms: int
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def scheduled(self) -> tuple[Finding, ...]:
        """Those about due times and their records."""
        return tuple(finding for finding in self.findings if not finding.manual)

    @property
    def manual(self) -> tuple[Finding, ...]:
        """Those about runs that a command made."""
        return tuple(finding for finding in self.findings if finding.manual)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What is not explained."""
        return tuple(finding for finding in self.findings if finding.problem)

    @property
    def explained(self) -> bool:
        """Whether every due time and every record is accounted for."""
        return not self.problems

    def totals(self, *, manual: bool = False) -> dict[Verdict, int]:
        """Due times (or manual runs) by verdict; every verdict is there."""
        return _totals(self.manual if manual else self.scheduled)

    def by_job(self) -> dict[str, dict[Verdict, int]]:
        """The same for each job, of scheduled due times."""
        of_job: dict[str, list[Finding]] = {}
        for finding in self.scheduled:
            of_job.setdefault(finding.job, []).append(finding)
        return {job: _totals(of_job[job]) for job in sorted(of_job)}


def _totals(findings: Sequence[Finding]) -> dict[Verdict, int]:
    counted: Counter[Verdict] = Counter()
    for finding in findings:
        counted[finding.verdict] += max(finding.count, 1)
    return {verdict: counted[verdict] for verdict in Verdict}
