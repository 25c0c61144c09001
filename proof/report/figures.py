"""The figures of a report: what several histories and their verdicts add up to. Nothing is judged here: a violation is what the
checker called one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proof.history.acts import Fault
from proof.history.history import History
from proof.history.verdict import Kind, TakeOver, Verdict, Violation
from proof.report.spread import Bin, Spread, histogram, spread

Pair = tuple[History, Verdict]

EDGES_MS: Final = (0, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)
"""Edges of the lateness histogram."""
ORDERLY_MS: Final = 1_500
"""A leader that is asked to end hands over within this."""
ORDERLY: Final = ("sigterm", "term", "rolling", "drain")
"""Words by which the kind of a fault is known as such a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindOfFault:
    """`again`: second effects of steps that the checker puts down to this kind. `total_ms`: summed length of its faults.
    `no_effect`: how many more were tried and took no effect."""

    kind: str
    count: int
    no_effect: int
    total_ms: int
    again: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A take-over that took longer than `aim_ms`. `meanwhile`: the faults that were on while it lasted."""

    title: str
    seed: int
    cause: str
    since_began_ms: int
    took_ms: int
    aim_ms: int
    meanwhile: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOvers:
    """Take-overs after one kind of fault at one session time-out. `took_ms`: each of them, in the order of time."""

    cause: str
    session_ms: int
    aim_ms: int
    took_ms: tuple[int, ...]
    spread: Spread
    outliers: tuple[Outlier, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A violation and the history it was found in."""

    title: str
    seed: int
    violation: Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Sums over all histories. `judged_ms`: judged time, from each history's beginning to its last judged due time. `starved`:
    how often the machine stood still, for `starved_ms` altogether; that is no fault and counts as none. `no_effect`: faults that
    were tried and took no effect, which count as none, too. `troubles`: what is wrong beside the records of the histories, and
    breaks them; `notes`: what is told and breaks nothing; a line each, with the history's title."""

    histories: int
    judged_ms: int
    faults: int
    no_effect: int
    starved: int
    starved_ms: int
    due_times: int
    runs: int
    runs_by_state: dict[str, int]
    violations: tuple[Found, ...]
    violations_by_kind: dict[Kind, int]
    lateness: Spread | None
    lateness_bins: tuple[Bin, ...]
    lateness_bounds_ms: tuple[int, ...]
    steps_executed: int
    steps_again: int
    kills_in_flight: int
    leaderless_ms: int
    unmeasured: int
    kinds: tuple[KindOfFault, ...]
    take_overs: tuple[TakeOvers, ...]
    troubles: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was judged: such a report shows nothing, and says so."""
        return self.due_times == 0

    @property
    def holds(self) -> bool:
        """No violation and no trouble, in at least one judged due time."""
        return not self.violations and not self.troubles and not self.empty


def figures(pairs: Sequence[Pair]) -> Figures:
    """What these add up to."""
    verdicts = [verdict for _, verdict in pairs]
    noted = [fault for history, _ in pairs for fault in history.noted.faults]
    injected, starved = [one for one in noted if one.injected], [one for one in noted if not one.injected]
    faults = [one for one in injected if one.struck]
    found = tuple(
        Found(title=history.title, seed=history.seed, violation=one) for history, verdict in pairs for one in verdict.violations
    )
    lateness_ms = [late for verdict in verdicts for late in verdict.lateness_ms]
    again = [pair for verdict in verdicts for pair in verdict.steps_again]
    states: Counter[str] = Counter()
    for verdict in verdicts:
        states.update(verdict.runs_by_state)
    return Figures(
        histories=len(pairs),
        judged_ms=sum(max(0, history.judged_ms - history.began_ms) for history, _ in pairs),
        faults=len(faults),
        no_effect=len(injected) - len(faults),
        starved=len(starved),
        starved_ms=sum(one.ended_ms - one.began_ms for one in starved),
        due_times=sum(verdict.due_times for verdict in verdicts),
        runs=sum(verdict.runs for verdict in verdicts),
        runs_by_state=dict(sorted(states.items())),
        violations=found,
        violations_by_kind=by_kind(one.violation for one in found),
        lateness=spread(lateness_ms),
        lateness_bins=histogram(lateness_ms, EDGES_MS),
        lateness_bounds_ms=tuple(sorted({history.bounds.lateness_ms for history, _ in pairs})),
        steps_executed=sum(verdict.steps_executed for verdict in verdicts),
        steps_again=sum(count for _, count in again),
        kills_in_flight=sum(verdict.kills_in_flight for verdict in verdicts),
        leaderless_ms=sum(verdict.leaderless_ms for verdict in verdicts),
        unmeasured=sum(verdict.unmeasured for verdict in verdicts),
        kinds=kinds_of_faults(injected, again),
        take_overs=take_overs(pairs),
        troubles=troubles_of(pairs),
        notes=tuple(f"{history.title}: {note}" for history, _ in pairs for note in history.noted.notes),
    )


def troubles_of(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """A line each, with the history's title."""
    return tuple(f"{history.title}: {trouble}" for history, verdict in pairs for trouble in verdict.troubles)


def by_kind(violations: Iterable[Violation]) -> dict[Kind, int]:
    """Every kind there is, so that a zero is said and not left out."""
    counts = Counter(violation.kind for violation in violations)
    return {kind: counts[kind] for kind in Kind}


def kinds_of_faults(faults: Sequence[Fault], again: Sequence[tuple[str, int]]) -> tuple[KindOfFault, ...]:
    """Most frequent first. A kind that only the checker names has a row too, with no fault."""
    counts = Counter(fault.kind for fault in faults if fault.struck)
    no_effect = Counter(fault.kind for fault in faults if not fault.struck)
    total_ms: Counter[str] = Counter()
    for fault in faults:
        total_ms[fault.kind] += max(0, fault.ended_ms - fault.began_ms) if fault.struck else 0
    repeated: Counter[str] = Counter()
    for kind, count in again:
        repeated[kind] += count
    names = sorted({*counts, *no_effect, *repeated}, key=lambda kind: (-counts[kind], kind))
    return tuple(
        KindOfFault(kind=kind, count=counts[kind], no_effect=no_effect[kind], total_ms=total_ms[kind], again=repeated[kind])
        for kind in names
    )


def aim_of(cause: str, session_ms: int) -> int:
    """How long a take-over should take at most: after a request to end, ORDERLY_MS; else the session time-out and a quarter of
    it (at least 1 s): 7.5 s at sessions of 6 s, 2 s at sessions of 1 s."""
    words = cause.lower().replace("-", " ").split()
    if any(word in ORDERLY for word in words):
        return ORDERLY_MS
    return session_ms + max(1_000, session_ms // 4)


def take_overs(pairs: Sequence[Pair]) -> tuple[TakeOvers, ...]:
    """Grouped by cause and session time-out, most frequent first."""
    groups: defaultdict[tuple[str, int], list[tuple[History, TakeOver]]] = defaultdict(list)
    for history, verdict in pairs:
        for one in sorted(verdict.take_overs, key=lambda one: one.at_ms):
            groups[one.cause, one.session_ms or history.bounds.session_ms].append((history, one))
    made = []
    for (cause, session_ms), members in groups.items():
        took_ms = tuple(one.took_ms for _, one in members)
        found = spread(took_ms)
        assert found is not None, "a group has a member"
        aim_ms = aim_of(cause, session_ms)
        outliers = tuple(outlier(history, one, aim_ms) for history, one in members if one.took_ms > aim_ms)
        made.append(
            TakeOvers(cause=cause, session_ms=session_ms, aim_ms=aim_ms, took_ms=took_ms, spread=found, outliers=outliers)
        )
    return tuple(sorted(made, key=lambda group: (-group.spread.count, group.cause, group.session_ms)))


def outlier(history: History, one: TakeOver, aim_ms: int) -> Outlier:
    """With the faults whose time meets the take-over's."""
    end_ms = one.at_ms + one.took_ms
    meanwhile = tuple(
        f"{fault.kind} {fault.target}"
        for fault in history.noted.faults
        if fault.struck and fault.began_ms <= end_ms and fault.ended_ms >= one.at_ms
    )
    return Outlier(
        title=history.title, seed=history.seed, cause=one.cause, since_began_ms=one.at_ms - history.began_ms,
        took_ms=one.took_ms, aim_ms=aim_ms, meanwhile=meanwhile,
    )  # fmt: skip
