"""(b) Exactly one record for every due time, none early, none late without a reason, none without a due time.

- A due time up to `judged_ms` has one run, or one summary of its version covers it; never both, never two of either.
- A run without command has a due time of the job; its version is the one that owns the due time, or (an offer that was asked
  back) a later one up to the version that holds then.
- Early: a record that is not ahead of time stands in `runs` before its due time by the broker's clock; one ahead of time more
  than `dispatch_ahead` (and the skew) before it; an effect more than the skew before it.
- Late: the first record stands after the deadline of `disturbance.py`. For a summary the first due time that it covers counts,
  for a manual run the append time of its command.
- Order: under one version, due times get their first records in order; a torn transaction must never leave a hole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator

from dueline.schemas.run import Run, RunState, Summary, Trigger, iso
from proof.checker.disturbance import Disturbances
from proof.checker.expected import Expected
from proof.checker.reading import Log, Placed
from proof.history.verdict import Kind, Violation

S = RunState


def check_identity(log: Log, expected: dict[str, Expected], disturbances: Disturbances) -> Iterator[Violation]:
    """Due times against records, both ways."""
    by_job: defaultdict[str, dict[int, Placed[Run]]] = defaultdict(dict)
    for key, chain in log.runs.items():
        run = chain[0].record
        yield from _early(log, expected.get(run.job.id), key, chain)
        yield from _late(key, chain[0], run.due_ms, disturbances)
        if not run.command:
            by_job[run.job.id][run.due_ms] = chain[0]
    for job in sorted({*expected, *by_job, *log.summaries}):
        known = expected.get(job) or Expected(job=job, spans=[])
        yield from _due_times(log, known, by_job[job])
        yield from _without_due_time(log, known, by_job[job])
        yield from _summaries(log, known, disturbances)
        yield from _in_order(log, job, by_job[job])


def check_effects_in_time(log: Log) -> Iterator[Violation]:
    """Effects by the harness's clock: none early, none of a due time in the future of `judged_ms` is asked about."""
    for effect in log.history.noted.effects:
        skew = log.skew.at(effect.due_ms, effect.at_ms)
        if effect.at_ms < effect.due_ms - skew and effect.due_ms <= log.history.judged_ms:
            early = effect.due_ms - effect.at_ms
            yield Violation(
                kind=Kind.EARLY, subject=f"{effect.job}@{iso(effect.due_ms)}",
                what=f"the effect of step {effect.step!r} happened {early} ms before the due time (skew {skew} ms)",
                evidence=f"effect at {effect.at_ms} in {effect.process}",
            )  # fmt: skip


def first_lateness(log: Log) -> Iterator[int]:
    """First record less due time, of each run that was due by a schedule and not ahead of time."""
    for chain in log.runs.values():
        run = chain[0].record
        if not run.command and not run.ahead and run.due_ms <= log.history.judged_ms:
            yield chain[0].entry.append_ms - run.due_ms


def ends_of_due_times(log: Log, expected: dict[str, Expected]) -> dict[str, int]:
    """How many judged due times of schedules ended how: by the state of their run's last record, `passed over` where that is
    skipped or a summary covers them, `none` where there is no record."""
    last = [chain[-1].record for chain in log.runs.values() if not chain[0].record.command]
    runs = {(run.job.id, run.due_ms): run for run in last}
    found: Counter[str] = Counter()
    for job, known in expected.items():
        covered = _covered(log, known)
        for due in known.owner:
            if due <= log.history.judged_ms:
                run = runs.get((job, due))
                passed = run.state == S.SKIPPED if run is not None else due in covered
                found["passed over" if passed else run.state if run is not None else "none"] += 1
    return dict(sorted(found.items()))


# --- due times --------------------------------------------------------------------------------------------------------


def _due_times(log: Log, expected: Expected, runs: dict[int, Placed[Run]]) -> Iterator[Violation]:
    covered = _covered(log, expected)
    for due in sorted(expected.owner):
        span, placed, by = expected.owner[due], runs.get(due), covered.get(due, [])
        subject = f"{expected.job}@{iso(due)}"
        if placed is None and not by and due <= log.history.judged_ms:
            what = f"no record: version {span.version.version} has this due time"
            yield Violation(kind=Kind.MISSED, subject=subject, what=what, evidence=span.placed.where)
        if (placed is not None) + len(by) > 1:
            places = [each.where for each in by]
            if placed is not None:
                places.append(placed.where)
            what = f"{len(places)} records for one due time"
            yield Violation(kind=Kind.DOUBLED, subject=subject, what=what, evidence=", ".join(places))


def _covered(log: Log, expected: Expected) -> dict[int, list[Placed[Summary]]]:
    found: defaultdict[int, list[Placed[Summary]]] = defaultdict(list)
    dues = sorted(expected.owner)
    for placed in log.summaries.get(expected.job, ()):
        summary = placed.record
        for due in dues[bisect_left(dues, summary.first_ms) : bisect_right(dues, summary.last_ms)]:
            if expected.owner[due].version.version == summary.version:
                found[due].append(placed)
    return found


def _without_due_time(log: Log, expected: Expected, runs: dict[int, Placed[Run]]) -> Iterator[Violation]:
    for due, placed in runs.items():
        subject, owner = f"{expected.job}@{iso(due)}", expected.owner.get(due)
        if owner is None:
            what = "a run, but no version of the job has this due time"
            yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=what, evidence=placed.where)
            continue
        holding = expected.holding(due) or owner
        first, last = owner.version.version, max(owner.version.version, holding.version.version)
        for each in log.runs[placed.record.key]:
            if not first <= each.record.job.version <= last:
                what = f"belongs to version {each.record.job.version}, the due time to version {first}"
                yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=what, evidence=each.where)


def _summaries(log: Log, expected: Expected, disturbances: Disturbances) -> Iterator[Violation]:
    dues = sorted(expected.owner)
    for placed in log.summaries.get(expected.job, ()):
        summary = placed.record
        inside = dues[bisect_left(dues, summary.first_ms) : bisect_right(dues, summary.last_ms)]
        mine = [due for due in inside if expected.owner[due].version.version == summary.version]
        if not mine or (mine[0], mine[-1], len(mine)) != (summary.first_ms, summary.last_ms, summary.count):
            what = f"says {summary.count} due times of version {summary.version}, there are {len(mine)}"
            if mine:
                what += f" from {iso(mine[0])} to {iso(mine[-1])}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=summary.key, what=what, evidence=placed.where)
        if placed.entry.append_ms < summary.last_ms:
            what = f"stands {summary.last_ms - placed.entry.append_ms} ms before its last due time"
            yield Violation(kind=Kind.EARLY, subject=summary.key, what=what, evidence=placed.where)
        yield from _late(summary.key, placed, summary.first_ms, disturbances)


def _in_order(log: Log, job: str, runs: dict[int, Placed[Run]]) -> Iterator[Violation]:
    firsts: list[tuple[int, int, int, str, str]] = []
    for due, placed in runs.items():
        firsts.append((placed.entry.offset, placed.record.job.version, due, placed.record.key, placed.where))
    for each in log.summaries.get(job, ()):
        firsts.append((each.entry.offset, each.record.version, each.record.first_ms, each.record.key, each.where))
    reached: dict[int, int] = {}
    for _, version, due, key, where in sorted(firsts):
        if due < reached.get(version, due):
            what = f"has its first record after a later due time of version {version}, {iso(reached[version])}"
            yield Violation(kind=Kind.ORDER, subject=key, what=what, evidence=where)
        reached[version] = max(due, reached.get(version, due))


# --- times ------------------------------------------------------------------------------------------------------------


def _early(log: Log, expected: Expected | None, key: str, chain: list[Placed[Run]]) -> Iterator[Violation]:
    for number, placed in enumerate(chain):
        run = placed.record
        skew = log.skew.at(run.due_ms, placed.entry.append_ms)
        early = run.due_ms - placed.entry.append_ms
        if early <= 0:
            continue
        ahead = 0
        if run.trigger not in (Trigger.SCHEDULE, Trigger.CATCH_UP):
            ahead = skew  # its due time is the command's append time, by the clock of another partition's broker
        elif run.ahead and run.state in (S.DISPATCHED, S.RUNNING):
            span = expected.number(run.job.version) if expected is not None else None
            ahead = (span.version.definition.dispatch_ahead_ms if span is not None else 0) + skew
        elif number and not (run.state == S.SKIPPED or (run.state == S.DISPATCHED and not run.ahead)):
            continue  # an offer made ahead of time came back, or ended by command, before the due time
        if early > ahead:
            what = f"{run.state}{' ahead of time' if run.ahead else ''}, {early} ms before its due time"
            yield Violation(kind=Kind.EARLY, subject=key, what=what, evidence=placed.where)


def _late(key: str, first: Placed[Run] | Placed[Summary], due_ms: int, disturbances: Disturbances) -> Iterator[Violation]:
    deadline = disturbances.deadline(due_ms, first.entry.append_ms)
    if first.entry.append_ms > deadline:
        late, over = first.entry.append_ms - due_ms, first.entry.append_ms - deadline
        what = f"its first record stands {late} ms after its due time, {over} ms more than anything explains"
        yield Violation(kind=Kind.LATE, subject=key, what=what, evidence=first.where)
