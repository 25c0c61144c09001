"""The checks of one record: what a run or a summary must satisfy beside standing for a due time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dueline.scheduler.audit.evidence import Place, Seen
from dueline.scheduler.audit.expected import Expected, Span
from dueline.scheduler.audit.findings import SEVERITY, Finding, Verdict
from dueline.scheduler.audit.readmodel import Attempts, RunTrail
from dueline.schemas.base import NONE
from dueline.schemas.run import Run, RunState, Summary, Trigger, iso
from dueline.schemas.work import AttemptEvent

PAUSED: Final = "paused"
"""The reason of due times passed over because the job was paused."""

Problem = tuple[Verdict, str]


@dataclass(slots=True, kw_only=True)
class Rules:
    """What the checks of a job's records look at."""

    expected: Expected
    attempts: Attempts
    skew_ms: int
    tzdata: str = ""  # with which due times are recomputed
    recorded: set[int] = field(default_factory=set)  # due times that have a record of their own, and ends of summaries


def judge_run(rules: Rules, due: int, owner: Span | None, trails: list[RunTrail]) -> Finding:
    """The verdict on a due time that has a run record, or (owner None) on a manual run."""
    trail = trails[0]
    run = trail.last.record
    successes = _accepted_successes(rules.attempts, trail)
    problems: list[Problem] = [
        *_duplicates(trails, successes),
        *_early(rules, trail),
        *((Verdict.UNEXPLAINED, text) for text in trail.impossible),
        *_without_finish(rules, trail, successes),
    ]
    if owner is not None:
        problems += [
            *_version(rules, due, owner, run),
            *_chain(rules, due, owner, run.previous_due_ms),
            *_pause(rules, due, run),
        ]
    evidence = (*(each.last.place for each in trails), *(seen.place for seen in successes))
    verdict, detail = _worst(problems) if problems else _plain(rules, trail, owner)
    if owner is not None and owner.other_rules and not owner.is_due(due):
        detail = "; ".join(filter(None, (detail, f"{other_zone_data(rules, owner)}, which does not have this due time")))
    return Finding(
        verdict=verdict,
        job=run.job.id,
        due_ms=due,
        last_ms=due,
        version=run.job.version,
        run=trail.key,
        manual=bool(run.command),
        reason=run.reason,
        detail=detail,
        evidence=evidence,
    )


def judge_summary(rules: Rules, seen: Seen[Summary], *, overlapping: Seen[Summary] | None) -> Finding:
    """The verdict on a summary: recounted from the schedule, alone in its stretch, and not written ahead of time."""
    summary = seen.record
    evidence: tuple[Place, ...] = (seen.place,)
    problems: list[Problem] = [(Verdict.UNEXPLAINED, text) for text in _recount(rules, summary)]
    if overlapping is not None and summary.first_ms <= overlapping.record.last_ms:
        problems.append((Verdict.DUPLICATED, f"it overlaps the summary {overlapping.key}"))
        evidence = (*evidence, overlapping.place)
    if seen.place.append_ms < summary.last_ms:
        early = summary.last_ms - seen.place.append_ms
        problems.append((Verdict.EARLY, f"written {early} ms before its last due time"))
    span = rules.expected.of_version(summary.version)
    told = f"not recounted: {other_zone_data(rules, span)}" if span is not None and span.other_rules else "recounted"
    verdict, detail = _worst(problems) if problems else (Verdict.COVERED, told)
    return Finding(
        verdict=verdict,
        job=summary.job,
        due_ms=summary.first_ms,
        last_ms=summary.last_ms,
        count=summary.count,
        version=summary.version,
        run=seen.key,
        reason=summary.reason,
        detail=detail,
        evidence=evidence,
    )


def other_zone_data(rules: Rules, span: Span) -> str:
    """Why the due times of a version may lie elsewhere now."""
    return f"other zone data: recorded with {span.version.tzdata}, recomputed with {rules.tzdata}"


# --- of runs ----------------------------------------------------------------------------------------------------------


def _duplicates(trails: list[RunTrail], successes: list[Seen[AttemptEvent]]) -> Iterator[Problem]:
    if len(trails) > 1:
        keys = ", ".join(trail.key for trail in trails)
        yield Verdict.DUPLICATED, f"{len(trails)} records for one due time: {keys}"
    if len(successes) > 1:
        ended = ", ".join(f"attempt {seen.record.attempt} on {seen.record.worker}" for seen in successes)
        yield Verdict.DUPLICATED, f"{len(successes)} attempts ended well: {ended}"


def _early(rules: Rules, trail: RunTrail) -> Iterator[Problem]:
    """By the clock of `runs` nothing that was not offered ahead is granted early; by any other clock, less the skew."""
    run = trail.last.record
    for grant in trail.grants:
        if not grant.ahead and grant.place.append_ms < run.due_ms:
            early = run.due_ms - grant.place.append_ms
            yield Verdict.EARLY, f"attempt {grant.attempt} granted {early} ms before its due time, at {grant.place}"
    started = first_start(rules.attempts, trail)
    if started != NONE and started < run.due_ms - rules.skew_ms:
        yield Verdict.EARLY, f"begun {run.due_ms - started} ms before its due time (allowed skew {rules.skew_ms} ms)"


def _without_finish(rules: Rules, trail: RunTrail, successes: list[Seen[AttemptEvent]]) -> Iterator[Problem]:
    """While nothing has been deleted from `attempts`, a success must stand there."""
    run = trail.last.record
    if run.state == RunState.SUCCEEDED and rules.attempts.extent.whole and not successes:
        yield Verdict.UNEXPLAINED, "succeeded in the ledger, but no worker recorded a success in `attempts`"


def _version(rules: Rules, due: int, owner: Span, run: Run) -> Iterator[Problem]:
    """A taken due time may have been asked back and decided again by a later version, up to the one that holds then."""
    holding = rules.expected.holding(due)
    newest = holding.version.version if holding is not None else owner.version.version
    if not owner.version.version <= run.job.version <= max(newest, owner.version.version):
        yield (
            Verdict.UNEXPLAINED,
            f"the record belongs to version {run.job.version}, the due time to version {owner.version.version}",
        )


def _chain(rules: Rules, due: int, owner: Span, previous: int) -> Iterator[Problem]:
    """`previous_due_ms` names a due time of the job, and leaves out none of the same version.

    It names none for the job's first due time, and for one that was decided after a later one which had been taken.
    """
    if owner.other_rules:
        return  # which due times lie between cannot be told any more
    before = rules.expected.before(owner, due)
    if previous == NONE:
        if before is not None and not any(taken > due for taken in rules.expected.taken):
            yield Verdict.UNEXPLAINED, f"the chain is broken: it names no due time before it, there is {iso(before)}"
    elif previous >= due:
        yield Verdict.UNEXPLAINED, f"the chain is broken: it names {iso(previous)} as the due time before it"
    elif before is not None and previous < before:
        yield Verdict.UNEXPLAINED, f"the chain has a gap: it names {iso(previous)}, but {iso(before)} lies between"
    elif previous not in rules.recorded and rules.expected.owner(previous) is None:
        yield Verdict.UNEXPLAINED, f"the chain is broken: {iso(previous)} is no due time of the job"


def _pause(rules: Rules, due: int, run: Run) -> Iterator[Problem]:
    """While paused nothing runs but what had been taken before; nothing is passed over as paused while it is not."""
    holding = rules.expected.holding(due)
    paused = holding is not None and holding.version.paused
    if run.state == RunState.SKIPPED and run.reason == PAUSED and not paused:
        yield Verdict.UNEXPLAINED, "passed over as paused, while the job was not paused"
    taken = due in rules.expected.taken
    if paused and not taken and run.state in (RunState.RUNNING, RunState.SUCCEEDED, RunState.FAILED):
        yield Verdict.UNEXPLAINED, f"{run.state}, while the job was paused"


def _plain(rules: Rules, trail: RunTrail, owner: Span | None) -> tuple[Verdict, str]:
    """The verdict on a run that nothing is wrong with. Lateness counts from the instant to which jitter puts off the start."""
    run = trail.last.record
    match run.state:
        case RunState.SKIPPED:
            return Verdict.SKIPPED, ""
        case RunState.CANCELLED:
            return Verdict.CANCELLED, ""
        case RunState.WAITING | RunState.DISPATCHED | RunState.RUNNING:
            return Verdict.PENDING, f"{run.state}, attempt {run.attempt}"
    started = first_start(rules.attempts, trail)
    put_off = owner.start_of(run.due_ms) - run.due_ms if owner is not None else 0
    lateness = started - run.due_ms - put_off if started != NONE else NONE
    detail = f"attempt {run.attempt}"
    if started != NONE:
        detail += f", begun {started - run.due_ms} ms after" + (f", put off by {put_off} ms (jitter)" if put_off else "")
    if run.state == RunState.FAILED:
        return Verdict.FAILED, detail
    late = lateness > run.job.misfire_grace_ms or run.trigger == Trigger.CATCH_UP
    return (Verdict.LATE if late else Verdict.RAN), detail


def first_start(attempts: Attempts, trail: RunTrail) -> int:
    """When the run first began: by the workers' word, or (a worker that died told nothing) by the first grant's."""
    told = [seen.record.started_ms for seen in attempts.finishes(trail.key)]
    told.append(trail.last.record.started_ms)
    told = [instant for instant in told if instant != NONE]
    if not told:
        return NONE
    first = min(told)
    granted = [max(grant.place.append_ms, trail.last.record.due_ms) for grant in trail.grants if grant.attempt == 1]
    return min([first, *granted]) if trail.last.record.attempt > 1 else first


def _accepted_successes(attempts: Attempts, trail: RunTrail) -> list[Seen[AttemptEvent]]:
    """Successes of attempts that the ledger granted, or of which compaction left no trace."""
    grants = {grant.attempt: (grant.incarnation, grant.claim) for grant in trail.grants}
    return [
        seen
        for seen in attempts.successes(trail.key)
        if grants.get(seen.record.attempt, (seen.record.incarnation, seen.record.claim))
        == (seen.record.incarnation, seen.record.claim)
    ]


# --- of summaries -----------------------------------------------------------------------------------------------------


def _recount(rules: Rules, summary: Summary) -> Iterator[str]:
    span = rules.expected.of_version(summary.version)
    if span is None:
        yield f"there is no version {summary.version} of the job"
        return
    if summary.first_ms < span.start or summary.last_ms >= span.end:
        yield f"it reaches beyond the span of version {summary.version}"
        return
    if span.other_rules:
        yield from _paused_as_said(summary, span)
        return
    for name, instant in (("first", summary.first_ms), ("last", summary.last_ms)):
        if rules.expected.owner(instant) is not span:
            yield f"its {name} instant {iso(instant)} is no due time of version {summary.version}"
    count = rules.expected.count(span, summary.first_ms, summary.last_ms + 1)
    if count != summary.count:
        yield f"it says {summary.count} due times, there are {count}"
    yield from (text for _, text in _chain(rules, summary.first_ms, span, summary.previous_due_ms))
    yield from _paused_as_said(summary, span)


def _paused_as_said(summary: Summary, span: Span) -> Iterator[str]:
    if (summary.reason == PAUSED) != span.version.paused:
        was = "was" if span.version.paused else "was not"
        yield f"its reason is {summary.reason}, but the job {was} paused"


def _worst(problems: list[Problem]) -> tuple[Verdict, str]:
    verdict = max((each for each, _ in problems), key=SEVERITY.index)
    return verdict, "; ".join(text for _, text in problems)
