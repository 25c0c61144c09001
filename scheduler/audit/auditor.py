"""The audit: every due time of every job version, recomputed, held against the ledger and the attempts.

`audit` is pure: it is given what was read and says what it finds. For each job, summaries are recounted first, then
each due time outside them is looked up, then every record that no due time asked for must explain itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from dueline.scheduler.audit.checks import Rules, judge_run, judge_summary, other_zone_data
from dueline.scheduler.audit.evidence import Place, Seen, Unreadable
from dueline.scheduler.audit.expected import FURTHEST_MS, Compile, Expected, Span, expected_of
from dueline.scheduler.audit.findings import Audit, Finding, Verdict
from dueline.scheduler.audit.readmodel import Attempts, Histories, JobHistory, Ledger, RunTrail
from dueline.schemas.job import JobVersion
from dueline.schemas.run import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is audited: due times in [from, to), of one job or of all (""), as of `now_ms`.

    `grace_ms`: how long a due time may go without a record before it counts as missed.
    `skew_ms`: how far the clocks of two brokers, or of a worker, may differ before a start counts as early.
    `tzdata`: with which zone data due times are recomputed; versions recorded with other data are compared leniently.
    """

    from_ms: int
    to_ms: int
    now_ms: int
    job: str = ""
    grace_ms: int = 30_000
    skew_ms: int = 1_000
    tzdata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was read."""

    histories: Histories
    ledger: Ledger
    attempts: Attempts


def audit(evidence: Evidence, window: Window, compile_version: Compile, *, namespace: str) -> Audit:
    """Compare what should have happened with what did."""
    findings = [*_of_the_log(evidence)]
    for job, records in sorted(_records_by_job(evidence).items()):
        if window.job in ("", job):
            history = evidence.histories.jobs.get(job, JobHistory(job=job))
            findings += JobAudit(history, records, evidence.attempts, window, compile_version).findings()
    return Audit(
        namespace=namespace,
        from_ms=window.from_ms,
        to_ms=window.to_ms,
        now_ms=window.now_ms,
        grace_ms=window.grace_ms,
        skew_ms=window.skew_ms,
        findings=tuple(findings),
    )


@dataclass(slots=True)
class JobRecords:
    """A job's records in the ledger."""

    scheduled: list[RunTrail]
    manual: list[RunTrail]
    summaries: list[Seen[Summary]]


class JobAudit:
    """The audit of one job."""

    def __init__(
        self, history: JobHistory, records: JobRecords, attempts: Attempts, window: Window, compile_version: Compile
    ) -> None:
        self.job = history.job
        self.expected: Expected = expected_of(history, compile_version, tzdata=window.tzdata)
        self.window = window
        self.rules = Rules(expected=self.expected, attempts=attempts, skew_ms=window.skew_ms, tzdata=window.tzdata)
        self.manual = records.manual
        self.summaries = sorted(records.summaries, key=lambda seen: (seen.record.first_ms, seen.record.last_ms))
        self.by_due: dict[int, list[RunTrail]] = {}
        for trail in sorted(records.scheduled, key=lambda each: each.first):
            self.by_due.setdefault(trail.last.record.due_ms, []).append(trail)
        self.dues = sorted(self.by_due)
        self.rules.recorded = {*self.by_due} | {seen.record.last_ms for seen in self.summaries}

    def findings(self) -> Iterator[Finding]:
        """Everything there is to say."""
        yield from self._versions()
        yield from self._summaries()
        yield from self._due_times()
        yield from self._records_without_due_time()
        yield from self._excluded()
        yield from self._manual_runs()

    def _versions(self) -> Iterator[Finding]:
        for seen, trouble in self.expected.troubles:
            version = seen.record
            yield Finding(
                verdict=Verdict.UNEXPLAINED, job=self.job, count=0, version=version.version,
                detail=f"job version {version.version}: {trouble}", evidence=(seen.place,),
            )  # fmt: skip

    def _summaries(self) -> Iterator[Finding]:
        previous: Seen[Summary] | None = None
        for seen in self.summaries:
            if self._in_window(seen.record.first_ms, seen.record.last_ms):
                yield judge_summary(self.rules, seen, overlapping=previous)
            if previous is None or seen.record.last_ms > previous.record.last_ms:
                previous = seen

    def _due_times(self) -> Iterator[Finding]:
        """Each due time outside the summaries, and within one those of another version than the summary's."""
        now, grace = self.window.now_ms, self.window.grace_ms
        for low, high, covering in self._stretches():
            for due, owner in self.expected.walk(low, min(high, now + 1)):
                trails = self.by_due.pop(due, [])
                if covering is not None and self._covers(covering, owner):
                    if trails:
                        yield self._covered_twice(due, owner, trails, covering)
                elif trails and due in self.expected.moved:
                    yield self._ran_again(due, owner, trails)
                elif trails:
                    yield judge_run(self.rules, due, owner, trails)
                elif due in self.expected.moved or (owner.other_rules and self._decided_near(due)):
                    yield self._moved(due, owner)
                else:
                    yield self._without_record(due, owner, pending=due > now - grace)
            yield from self._future(max(low, now + 1), high)

    def _records_without_due_time(self) -> Iterator[Finding]:
        """What is left was not asked for, or was made ahead of time and is due later than now: judged all the same."""
        for due, trails in sorted(self.by_due.items()):
            if not self._in_window(due, due):
                continue
            owner = self.expected.owner(due)
            holding = self.expected.holding(due)
            if owner is None and holding is not None and holding.other_rules:
                owner = holding  # by the rules of its time it was a due time
            if owner is not None:
                yield judge_run(self.rules, due, owner, trails)
            else:
                yield self._unasked(due, trails)

    def _excluded(self) -> Iterator[Finding]:
        """What calendars took out of the schedule up to now: no due times, and no surprise either."""
        for span in self.expected.spans:
            start, end = max(self.window.from_ms, span.start), min(self.window.to_ms, span.end, self.window.now_ms)
            if span.due_times is None or start >= end:
                continue
            for excluded in span.due_times.exclusions_between(start, end):
                yield Finding(
                    verdict=Verdict.EXCLUDED, job=self.job, due_ms=excluded.first, last_ms=excluded.last,
                    count=excluded.due_times, version=span.version.version, reason=excluded.entry, detail="by a calendar",
                    evidence=(span.seen.place,),
                )  # fmt: skip

    def _manual_runs(self) -> Iterator[Finding]:
        for trail in sorted(self.manual, key=lambda each: each.last.record.due_ms):
            due = trail.last.record.due_ms
            if self._in_window(due, due):
                yield judge_run(self.rules, due, None, [trail])

    # --- steps --------------------------------------------------------------------------------------------------------

    def _in_window(self, first: int, last: int) -> bool:
        return first < self.window.to_ms and last >= self.window.from_ms

    def _stretches(self) -> Iterator[tuple[int, int, Seen[Summary] | None]]:
        """The window cut at the summaries: [low, high) with the summary that covers it, or None.

        Within a summary only what may lie beside it needs a look: when nothing does, its stretch is left out, however
        many due times it covers.
        """
        low = self.window.from_ms
        for seen in self.summaries:
            first, end = seen.record.first_ms, seen.record.last_ms + 1
            if end <= low or first >= self.window.to_ms:
                continue
            yield low, first, None
            low = max(low, first)
            if self._has_something_beside(seen):
                yield low, min(end, self.window.to_ms), seen
            low = end
        yield low, self.window.to_ms, None

    def _has_something_beside(self, seen: Seen[Summary]) -> bool:
        first, last = seen.record.first_ms, seen.record.last_ms
        span = self.expected.of_version(seen.record.version)
        inside = span is not None and span.start <= first and last < span.end
        return (
            not inside
            or bisect_left(self.dues, first) < bisect_right(self.dues, last)
            or any(first <= due <= last for due in self.expected.taken)
        )

    def _covers(self, covering: Seen[Summary], owner: Span) -> bool:
        return covering.record.version == owner.version.version

    def _covered_twice(self, due: int, owner: Span, trails: list[RunTrail], covering: Seen[Summary]) -> Finding:
        return Finding(
            verdict=Verdict.DUPLICATED, job=self.job, due_ms=due, last_ms=due, version=owner.version.version,
            run=trails[0].key, detail=f"it has a run record, and the summary {covering.key} covers it too",
            evidence=(covering.place, *(trail.last.place for trail in trails)),
        )  # fmt: skip

    def _decided_near(self, due: int) -> bool:
        """Whether an occurrence that newer rules put at `due` may be one that was decided near it, by the rules of its time."""
        low, high = due - FURTHEST_MS, due + FURTHEST_MS
        for other in self.dues[bisect_left(self.dues, low) : bisect_right(self.dues, high)]:
            holding = self.expected.holding(other)
            if holding is not None and holding.other_rules and not holding.is_due(other):
                return True
        for seen in self.summaries:
            span = self.expected.of_version(seen.record.version)
            if seen.record.first_ms <= high and seen.record.last_ms >= low and span is not None and span.other_rules:
                return True
        return False

    def _moved(self, due: int, owner: Span) -> Finding:
        later = self.expected.holding(due) if due in self.expected.moved else None
        where = f"zone data {later.version.tzdata}" if later is not None else other_zone_data(self.rules, owner)
        return Finding(
            verdict=Verdict.MOVED, job=self.job, due_ms=due, last_ms=due, version=owner.version.version, reason="rezoned",
            detail=f"{where} put the occurrence here; it was decided before, where it stood by the rules of its time",
            evidence=((later or owner).seen.place,),
        )  # fmt: skip

    def _ran_again(self, due: int, owner: Span, trails: list[RunTrail]) -> Finding:
        return Finding(
            verdict=Verdict.DUPLICATED, job=self.job, due_ms=due, last_ms=due, version=owner.version.version,
            run=trails[0].key, detail="other zone data put a decided occurrence here, and it has a record here too",
            evidence=tuple(trail.last.place for trail in trails),
        )  # fmt: skip

    def _without_record(self, due: int, owner: Span, *, pending: bool) -> Finding:
        detail = "not decided yet" if pending else "no record: neither a run nor a summary"
        return Finding(
            verdict=Verdict.PENDING if pending else Verdict.MISSED, job=self.job, due_ms=due, last_ms=due,
            version=owner.version.version, detail=detail, evidence=(owner.seen.place,),
        )  # fmt: skip

    def _future(self, low: int, high: int) -> Iterator[Finding]:
        """Due times later than now without a record, as one finding a version."""
        for span in self.expected.spans:
            start, end = max(low, span.start), min(high, span.end)
            if start >= end or span.due_times is None:
                continue
            decided = sum(1 for due in self.by_due if start <= due < end and self.expected.owner(due) is span)
            count = self.expected.count(span, start, end) - decided
            first = span.due_times.next_after(start - 1)
            last = span.due_times.previous_before(end)
            if count > 0 and first is not None and last is not None:
                yield Finding(
                    verdict=Verdict.PENDING, job=self.job, due_ms=first, last_ms=last, count=count,
                    version=span.version.version, detail="in the future", evidence=(span.seen.place,),
                )  # fmt: skip

    def _unasked(self, due: int, trails: list[RunTrail]) -> Finding:
        trail, run = trails[0], trails[0].last.record
        return Finding(
            verdict=Verdict.UNEXPLAINED, job=self.job, due_ms=due, last_ms=due, version=run.job.version, run=trail.key,
            reason=run.reason, detail=f"a run record ({run.state}) for an instant that is no due time of the job",
            evidence=tuple(each.last.place for each in trails),
        )  # fmt: skip


def _records_by_job(evidence: Evidence) -> dict[str, JobRecords]:
    jobs = {job: JobRecords([], [], []) for job in evidence.histories.jobs}
    for trail in evidence.ledger.runs.values():
        run = trail.last.record
        records = jobs.setdefault(run.job.id, JobRecords([], [], []))
        (records.manual if run.command else records.scheduled).append(trail)
    for seen in evidence.ledger.summaries.values():
        jobs.setdefault(seen.record.job, JobRecords([], [], [])).summaries.append(seen)
    return jobs


def _of_the_log(evidence: Evidence) -> Iterator[Finding]:
    """What is wrong with records as such: undecodable, of the wrong kind, under the wrong key, of an ended term."""
    broken: list[Unreadable] = [
        *evidence.histories.unreadable,
        *evidence.ledger.unreadable,
        *evidence.ledger.stale,
        *evidence.attempts.unreadable,
    ]
    for record in broken:
        yield _record_finding(record.key, record.place, record.error)
    for trail in evidence.ledger.runs.values():
        if trail.key != trail.last.record.key:
            yield _record_finding(trail.key, trail.last.place, f"its content is that of {trail.last.record.key}")
    for seen in evidence.ledger.summaries.values():
        if seen.key != seen.record.key:
            yield _record_finding(seen.key, seen.place, f"its content is that of {seen.record.key}")
    for history in evidence.histories.jobs.values():
        for version in history.versions:
            yield from _misplaced(version)


def _misplaced(seen: Seen[JobVersion]) -> Iterator[Finding]:
    if seen.key != seen.record.key:
        yield _record_finding(seen.key, seen.place, f"its content is that of {seen.record.key}")


def _record_finding(key: str, place: Place, detail: str) -> Finding:
    return Finding(
        verdict=Verdict.UNEXPLAINED, job=key.split("@")[0].split("#")[0], count=0, run=key, detail=detail,
        evidence=(place,),
    )  # fmt: skip
