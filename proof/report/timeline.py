"""What a picture of one history shows, before anything is drawn: runs, terms, spells without a leader, faults, violations.

Read from the committed log and the notes, not from the verdict, but for the spells without a leader (the checker's take-overs)
and the violations. Times are the broker's append times and the harness's, milliseconds since the epoch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dueline.schemas.codec import decode
from dueline.schemas.errors import DecodeError
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, RunState, Summary
from proof.history.acts import Fault
from proof.history.entry import Entry
from proof.history.history import History
from proof.history.verdict import Verdict

OPEN: Final = "open"
"""A run that has not ended in what was read."""
SUMMED: Final = "summed up"
"""Due times passed over, in one record."""
STATES: Final = ("succeeded", "failed", "cancelled", "skipped", OPEN, SUMMED)
ENDS: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED})
MAX_ROWS: Final = 30
OTHERS: Final = "other jobs"

_NAMED: Final = re.compile(r"(?P<job>[^\s@]+)@(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<millis>\d{3}))?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A run, from its due time (a manual one: its first record) to the record of its end."""

    row: int
    state: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A leader's time: from its barrier until it ended or the next barrier."""

    term: int
    process: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A violation that names a job and a time."""

    row: int
    at_ms: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """`rows`: names of the job rows; `bars`, `marks`: point into them. `gaps`: [from, to) without a leader. `starved`: [from, to)
    in which the machine gave no process a turn. `unread`: records of the ledger that could not be decoded."""

    began_ms: int
    ended_ms: int
    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    terms: tuple[Term, ...]
    gaps: tuple[tuple[int, int], ...]
    faults: tuple[Fault, ...]
    starved: tuple[tuple[int, int], ...]
    marks: tuple[Mark, ...]
    unread: int


def timeline(history: History, verdict: Verdict) -> Timeline:
    """Of this history. From its beginning to the last thing that happened in it."""
    ledger = [entry for (topic, _), log in history.log.items() if topic == f"{history.prefix}.runs" for entry in log]
    lives, barriers, unread = read(ledger)
    placed = list(marked(verdict))
    counts = Counter(life.job for life in lives)
    counts.update(job for job, _, _ in placed)
    names = row_names(counts)
    row_of = {name: number for number, name in enumerate(names)}

    def row(job: str) -> int:
        return row_of.get(job, len(names) - 1)

    gaps = tuple(sorted((one.at_ms, one.at_ms + one.took_ms) for one in verdict.take_overs))
    noted = sorted(history.noted.faults, key=lambda fault: (fault.began_ms, fault.ended_ms, fault.kind, fault.target))
    starved = tuple((one.began_ms, one.ended_ms) for one in noted if not one.injected)
    ended_ms = max(
        [history.judged_ms, history.began_ms + 1]
        + [entry.append_ms for entry in ledger[-1:]]
        + [fault.ended_ms for fault in noted]
    )
    bars = tuple(
        Bar(row=row(life.job), state=life.state, from_ms=life.from_ms, to_ms=ended_ms if life.to_ms < 0 else life.to_ms)
        for life in lives
    )
    return Timeline(
        began_ms=history.began_ms, ended_ms=ended_ms, rows=names, bars=bars, terms=terms(barriers, gaps, ended_ms), gaps=gaps,
        faults=tuple(one for one in noted if one.injected and one.struck), starved=starved,
        marks=tuple(Mark(row=row(job), at_ms=at_ms, what=what) for job, at_ms, what in placed), unread=unread,
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Life:
    """What is known of a run while the ledger is read. `to_ms` -1: not ended."""

    job: str
    state: str
    from_ms: int
    to_ms: int


def read(ledger: Sequence[Entry]) -> tuple[list[Life], list[tuple[Entry, Barrier]], int]:
    """(runs and summaries, barriers, how many records could not be decoded)."""
    lives: dict[str, Life] = {}
    barriers: list[tuple[Entry, Barrier]] = []
    unread = 0
    for entry in ledger:
        if entry.value is None:
            continue
        try:
            record = decode(entry.value)
        except DecodeError:
            unread += 1
            continue
        if isinstance(record, Barrier):
            barriers.append((entry, record))
        elif isinstance(record, Summary):
            lives[record.key] = Life(job=record.job, state=SUMMED, from_ms=record.first_ms, to_ms=record.last_ms)
        elif isinstance(record, Run):
            begin_ms = entry.append_ms if record.command else record.due_ms
            life = lives.setdefault(record.key, Life(job=record.job.id, state=OPEN, from_ms=begin_ms, to_ms=-1))
            if record.state in ENDS and life.to_ms < 0:
                life.state, life.to_ms = record.state, max(entry.append_ms, life.from_ms)
    return list(lives.values()), barriers, unread


def row_names(counts: Counter[str]) -> tuple[str, ...]:
    """The jobs, by name; beyond MAX_ROWS the ones with the fewest runs share a last row."""
    if len(counts) <= MAX_ROWS:
        return tuple(sorted(counts))
    kept = sorted(counts, key=lambda job: (-counts[job], job))[: MAX_ROWS - 1]
    return (*sorted(kept), f"{len(counts) - len(kept)} {OTHERS}")


def terms(
    barriers: Sequence[tuple[Entry, Barrier]], gaps: Sequence[tuple[int, int]], ended_ms: int
) -> tuple[Term, ...]:
    """A term ends when its leader's end begins a take-over, else with the next barrier."""
    made = []
    for number, (entry, barrier) in enumerate(barriers):
        next_ms = barriers[number + 1][0].append_ms if number + 1 < len(barriers) else ended_ms
        lost_ms = next((from_ms for from_ms, _ in gaps if entry.append_ms <= from_ms < next_ms), next_ms)
        made.append(
            Term(term=entry.offset, process=barrier.process, from_ms=entry.append_ms, to_ms=max(entry.append_ms, lost_ms))
        )
    return tuple(made)


def marked(verdict: Verdict) -> Iterator[tuple[str, int, str]]:
    """(job, time, what) of each violation whose subject names a run by its key."""
    for violation in verdict.violations:
        named = _NAMED.search(violation.subject)
        if named:
            try:
                at = datetime.fromisoformat(named["at"]).replace(tzinfo=UTC)
            except ValueError:
                continue
            at_ms = int(at.timestamp()) * 1000 + int(named["millis"] or 0)
            yield named["job"], at_ms, f"{violation.kind}: {violation.subject}: {violation.what}"
