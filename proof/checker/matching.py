"""(c) Effects against due times, trusting no run id: only job, step and the instant of an effect count.

For each job and each step that its handler's runs leave (the body is one step of a handler without any), every run of the
ledger is a target: from its due time (less the skew) to its end (plus the skew). Each run that succeeded needs an effect of its
own in its window; each effect needs a target of its own: a run has as many places as it was granted attempts, those beyond the
first, and all of one that did not succeed after losing a worker, without end, since a frozen process may wake up late. Both are
decided by giving each effect, in order of time, to the open window that closes first, which finds a complete assignment if there
is one. If each of the two exists, so does one that is both.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from dueline.schemas.run import RunState
from proof.checker.reading import Log
from proof.checker.schedule import FOREVER
from proof.checker.states import ENDS
from proof.history.verdict import Kind, Violation

S = RunState


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Window:
    """One place for an effect. Milliseconds, both ends included."""

    begin: int
    end: int
    run: str


def check_matching(log: Log) -> Iterator[Violation]:
    """Runs without an effect, effects without a run."""
    musts: defaultdict[tuple[str, str], list[Window]] = defaultdict(list)
    mays: defaultdict[tuple[str, str], list[Window]] = defaultdict(list)
    _open_windows(log, musts, mays)
    effects: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for effect in log.history.noted.effects:
        if effect.step or (effect.job, "") in mays or (effect.job, "") in musts:
            insort(effects[effect.job, effect.step], effect.at_ms)
    last = log.history.judged_ms - log.skew.at(log.history.judged_ms)
    for job, step in sorted({*musts, *effects}):
        times = effects[job, step]
        for window in _unfilled(musts[job, step], times):
            what = f"no effect of step {step!r} is left for it between {window.begin} and {window.end}"
            yield Violation(kind=Kind.LOST, subject=window.run, what=what, evidence=f"{len(times)} effects of it in all")
        for at in _homeless([*musts[job, step], *mays[job, step]], times):
            if at <= last:
                what = f"step {step!r} happened at {at} once more than runs of that time can have done it"
                yield Violation(kind=Kind.DOUBLED, subject=job, what=what, evidence=f"effect at {at}")


def _open_windows(
    log: Log, musts: dict[tuple[str, str], list[Window]], mays: dict[tuple[str, str], list[Window]]
) -> None:
    conducts = log.history.noted.conducts
    for key, chain in log.runs.items():
        run = chain[-1].record
        conduct = conducts.get(run.job.handler)
        attempts = {placed.record.attempt for placed in chain if placed.record.state == S.RUNNING}
        if conduct is None or not conduct.effects or not attempts:
            continue
        skew = log.skew.at(run.due_ms, *(placed.entry.append_ms for placed in chain))
        ended = chain[-1].entry.append_ms + skew if run.state in ENDS else FOREVER
        begin = run.due_ms - skew
        succeeded = run.state == S.SUCCEEDED
        must = succeeded and run.due_ms <= log.history.judged_ms
        spare = Window(begin=begin, end=FOREVER if len(attempts) > 1 or not succeeded else ended, run=key)
        for step in conduct.steps or ("",):
            if must:
                musts[run.job.id, step].append(Window(begin=begin, end=ended, run=key))
            mays[run.job.id, step] += [spare] * (len(attempts) - must)


def _unfilled(windows: list[Window], times: list[int]) -> list[Window]:
    """Windows that get none of the sorted instants."""
    waiting, open_ends, missing = sorted(windows), list[tuple[int, Window]](), list[Window]()
    place = 0
    for at in times:
        while place < len(waiting) and waiting[place].begin <= at:
            heappush(open_ends, (waiting[place].end, waiting[place]))
            place += 1
        while open_ends and open_ends[0][0] < at:
            missing.append(heappop(open_ends)[1])
        if open_ends:
            heappop(open_ends)
    return [*missing, *(window for _, window in open_ends), *waiting[place:]]


def _homeless(windows: list[Window], times: list[int]) -> list[int]:
    """Instants that get none of the windows."""
    waiting, open_ends, left = sorted(windows), list[int](), list[int]()
    place = 0
    for at in times:
        while place < len(waiting) and waiting[place].begin <= at:
            heappush(open_ends, waiting[place].end)
            place += 1
        while open_ends and open_ends[0] < at:
            heappop(open_ends)
        if open_ends:
            heappop(open_ends)
        else:
            left.append(at)
    return left
