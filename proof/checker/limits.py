"""(e) Overlap policies and limits, by the ledger and by the effects.

By the ledger: a run is under way while it is `dispatched` or `running`, or waits for one of ENGAGED (docs/states.md, "counts as
running"). The records of one transaction are looked at together, since their order in it is by due time: after each transaction
that put a further run of a job under way, no more may be than the job allows. What it allows is the larger of what the run's own
version says and what the newest version says that was decided by then (the product decides a due time by the version that holds
then, and wakes waiting runs by the newest one); `overlap: skip` allows one.

By the effects: the time from a run's first to its last effect; more of them at one instant than the largest limit among their
versions is too many. An effect of an attempt that comes (within the skew) after the run went on in a later attempt, or ended
without this one, is left out: a process that wakes up may still do the one thing it was about to do.

A due time skipped for `overlap` needs another run of its job that was under way, or waited, before or after its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dueline.schemas.job import Job, Overlap
from dueline.schemas.ledger import Barrier, Positions
from dueline.schemas.run import Run, RunState, Summary
from proof.checker.expected import Expected
from proof.checker.reading import LedgerRecord, Log, Placed
from proof.checker.skew import Skew
from proof.history.acts import Effect
from proof.history.verdict import Kind, Violation

S = RunState
ENGAGED: Final = frozenset(
    {"no-worker", "retry", "snooze", "declined", "interrupted", "worker-lost", "internal-error", "jitter"}
)
QUEUED: Final = frozenset({"overlap", "limit", "catch-up-rate"})
NO_LIMIT: Final = 1 << 62


def check_limits(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Both ways of counting, and the skips."""
    counting = _Counting(expected)
    for transaction in transactions(log):
        yield from counting.fold(transaction)
    yield from _by_effects(log, expected)


def transactions(log: Log) -> Iterator[list[Placed[LedgerRecord]]]:
    """The ledger cut into transactions: each ends with its positions; one that was torn ends at the next barrier."""
    group: list[Placed[LedgerRecord]] = []
    for placed in log.ledger:
        if isinstance(placed.record, Barrier):
            if group:
                yield group
            group = []
            continue
        group.append(placed)
        if isinstance(placed.record, Positions):
            yield group
            group = []
    if group:
        yield group


def limit_of(job: Job) -> int:
    """How many runs of the job may be under way at one time."""
    return 1 if job.overlap == Overlap.SKIP else job.max_concurrent or NO_LIMIT


def under_way(run: Run) -> bool:
    """Whether the run counts for its job's overlap policy and limit."""
    return run.state in (S.DISPATCHED, S.RUNNING) or (run.state == S.WAITING and run.reason in ENGAGED)


class _Counting:
    """The runs of each job that are under way, and those that wait for others, transaction by transaction."""

    def __init__(self, expected: dict[str, Expected]) -> None:
        self._expected = expected
        self._engaged: defaultdict[str, set[str]] = defaultdict(set)
        self._queued: defaultdict[str, set[str]] = defaultdict(set)

    def fold(self, transaction: list[Placed[LedgerRecord]]) -> Iterator[Violation]:
        """What is wrong after it."""
        begun: defaultdict[str, list[Placed[Run]]] = defaultdict(list)
        skips: list[tuple[str, str, Placed]] = []
        before: dict[str, set[str]] = {}
        for placed in transaction:
            record = placed.record
            if isinstance(record, Summary) and record.reason == "overlap":
                skips.append((record.job, record.key, placed))
                before.setdefault(record.job, self._others(record.job))
            if not isinstance(record, Run):
                continue
            job, key = record.job.id, record.key
            before.setdefault(job, self._others(job))
            if record.state == S.SKIPPED and record.reason == "overlap":
                skips.append((job, key, placed))
            if under_way(record):
                if key not in self._engaged[job]:
                    begun[job].append(placed)  # type: ignore[arg-type]
                self._engaged[job].add(key)
            else:
                self._engaged[job].discard(key)
            if record.state == S.WAITING and record.reason in QUEUED:
                self._queued[job].add(key)
            else:
                self._queued[job].discard(key)
        for job, runs in begun.items():
            yield from self._too_many(job, runs)
        for job, key, placed in skips:
            if not (before[job] | self._others(job)) - {key}:
                what = "skipped for overlap, but no other run of the job was under way"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)

    def _others(self, job: str) -> set[str]:
        return self._engaged[job] | self._queued[job]

    def _too_many(self, job: str, runs: list[Placed[Run]]) -> Iterator[Violation]:
        count = len(self._engaged[job])
        for placed in runs:
            allowed = self._allowed(placed.record)
            if count > allowed and placed.record.key in self._engaged[job]:
                others = sorted(self._engaged[job] - {placed.record.key})
                what = f"{count} runs of the job are under way, {allowed} allowed; beside it {', '.join(others[:3])}"
                yield Violation(kind=Kind.LIMIT, subject=placed.record.key, what=what, evidence=placed.where)

    def _allowed(self, run: Run) -> int:
        spans = self._expected[run.job.id].spans if run.job.id in self._expected else []
        jobs = [span.version for span in spans if span.version.leader_ms <= run.leader_ms]
        own = [version for version in jobs if version.version == run.job.version]
        return max((limit_of(version.definition) for version in (*own, *jobs[-1:])), default=NO_LIMIT)


def _by_effects(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    by_run: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in log.history.noted.effects:
        by_run[effect.run].append(effect)
    stretches: defaultdict[str, list[tuple[int, int, str, int]]] = defaultdict(list)
    for key, effects in by_run.items():
        chain = log.runs.get(key)
        if chain is None:
            continue
        run = chain[-1].record
        known = expected.get(run.job.id)
        limits = {span.version.version: limit_of(span.version.definition) for span in known.spans} if known else {}
        if not limits or min(limits.values()) == NO_LIMIT:
            continue
        kept = [effect for effect in effects if not _overtaken(effect, chain, log.skew)]
        if kept:
            times = [effect.at_ms for effect in kept]
            stretches[run.job.id].append((min(times), max(times), key, limits.get(run.job.version, NO_LIMIT)))
    for job, found in stretches.items():
        yield from _crowds(job, sorted(found))


def _overtaken(effect: Effect, chain: list[Placed[Run]], skew: Skew) -> bool:
    """Whether the effect came after the run had gone on in a later attempt, or had ended without this one."""
    last = chain[-1]
    skew_ms = skew.at(effect.at_ms, last.entry.append_ms)
    if effect.attempt == last.record.attempt:
        lost = last.record.state in (S.FAILED, S.CANCELLED, S.SKIPPED)
        return lost and effect.at_ms >= last.entry.append_ms - skew_ms
    later = [placed.entry.append_ms for placed in chain if placed.record.attempt > effect.attempt]
    return bool(later) and effect.at_ms >= min(later) - skew_ms


def _crowds(job: str, stretches: list[tuple[int, int, str, int]]) -> Iterator[Violation]:
    ends: list[tuple[int, int]] = []  # (end, limit) of those that still go on
    for begin, end, key, limit in stretches:
        ends = [each for each in ends if each[0] > begin]
        allowed = max([limit, *(each[1] for each in ends)])
        if len(ends) + 1 > allowed:
            what = f"its effects come among those of {len(ends)} other runs of {job}, {allowed} allowed"
            yield Violation(kind=Kind.LIMIT, subject=key, what=what, evidence=f"effects from {begin} to {end}")
        ends.append((end, limit))
