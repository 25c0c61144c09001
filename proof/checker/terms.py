"""(f) Terms along the logs that only leaders write.

A barrier in `runs` opens a term: its offset, or one more than the term before if that is higher. Every later record carries the
term of the last barrier before it; an older one is a deposed leader's, a newer one comes from nowhere. In `job-versions` the
barrier of the same id opens the same term; one that `runs` does not have opens none (a take-over that was torn), and nothing may
follow it. Barriers in `rejected` open nothing: terms there never fall, but for a letter that its transaction could not carry.
Leader time never goes back in `runs`, and no record there is of a leader time that lies (more than the skew) after its own append
time: it was decided before it stood there. A record names the generation of the group that the barrier of its term names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dueline.schemas.command import Rejected
from dueline.schemas.ledger import Barrier
from proof.checker.reading import LedgerRecord, Log, Placed
from proof.history.acts import Role
from proof.history.verdict import Kind, Violation

FOLLOWS_MS: Final = 11 * 60_000
"""How long after its decision a letter may come that its transaction could not carry (`rejected_waits` in docs/operations.md)."""
RESTS_MS: Final = 60_000
"""How long before it a fault may have made the leader leave `rejected` alone."""


@dataclass(slots=True, kw_only=True)
class Term:
    """One term of office: its barrier, and what its leader wrote in `runs`."""

    number: int
    barrier: Placed[Barrier]
    records: list[Placed[LedgerRecord]] = field(default_factory=list)


def terms_of(log: Log) -> list[Term]:
    """The terms in order, by the barriers of `runs`; each record with the barrier before it, whatever term it names."""
    found: list[Term] = []
    number = -1
    for placed in log.ledger:
        if isinstance(placed.record, Barrier):
            number = max(placed.entry.offset, number + 1)
            found.append(Term(number=number, barrier=placed))  # type: ignore[arg-type]
        elif found:
            found[-1].records.append(placed)
    return found


def check_terms(log: Log, terms: list[Term]) -> Iterator[Violation]:
    """Everything that breaks the order of terms."""
    yield from _ledger(log, terms)
    yield from _versions(log, terms)
    yield from _rejected(log)


def _ledger(log: Log, terms: list[Term]) -> Iterator[Violation]:
    first = terms[0].barrier.entry.offset if terms else None
    for placed in log.ledger:
        if first is not None and placed.entry.offset >= first:
            break
        yield _violation(placed, "stands before the first barrier: nobody had a term yet")
    ids: dict[str, str] = {}
    leader_ms = -1
    for term in terms:
        barrier = term.barrier
        if barrier.record.id in ids:
            yield Violation(
                kind=Kind.DOUBLED, subject=f"barrier {barrier.record.id}", what="the same barrier twice in `runs`",
                evidence=f"{ids[barrier.record.id]}, {barrier.where}",
            )  # fmt: skip
        ids[barrier.record.id] = barrier.where
        for placed in term.records:
            record = placed.record
            assert not isinstance(record, Barrier), "terms are cut at barriers"
            if record.term != term.number:
                yield _violation(placed, f"is of term {record.term}, while term {term.number} holds")
            elif record.generation != barrier.record.generation:
                yield _violation(placed, f"is of generation {record.generation}, its term of {barrier.record.generation}")
            if record.leader_ms < leader_ms:
                yield _violation(placed, f"leader time goes back by {leader_ms - record.leader_ms} ms")
            leader_ms = max(leader_ms, record.leader_ms)
            ahead = record.leader_ms - placed.entry.append_ms
            if ahead > log.skew.at(placed.entry.append_ms, record.leader_ms):
                yield _violation(placed, f"was decided {ahead} ms after it stood in the log")


def _versions(log: Log, terms: list[Term]) -> Iterator[Violation]:
    numbers = {term.barrier.record.id: term.number for term in terms}
    generation = -1
    term: int | None = None
    highest = -1
    seen: set[str] = set()
    for placed in log.versions:
        record = placed.record
        if isinstance(record, Barrier):
            term, generation = numbers.get(record.id), record.generation
            if record.id in seen:
                yield Violation(
                    kind=Kind.DOUBLED, subject=f"barrier {record.id}", what="the same barrier twice in `job-versions`",
                    evidence=placed.where,
                )  # fmt: skip
            seen.add(record.id)
            if term is not None and term < highest:
                yield _violation(placed, f"opens term {term} after term {highest}")
            highest = max(highest, -1 if term is None else term)
        elif term is None:
            yield _violation(placed, "no barrier before it opened a term")
        elif record.term != term:
            yield _violation(placed, f"is of term {record.term}, while term {term} holds")
        elif record.generation != generation:
            yield _violation(placed, f"is of generation {record.generation}, its term of {generation}")
    for missing in sorted(set(numbers) - seen):
        led = next(each for each in terms if each.barrier.record.id == missing)
        if led.records:  # one that led had read its barrier back from both topics
            yield _violation(led.barrier, "its term wrote records, but its barrier does not stand in `job-versions`")


def _rejected(log: Log) -> Iterator[Violation]:
    highest = -1
    for placed in log.rejected:
        if placed.record.term < highest and not _followed(log, placed):
            yield _violation(placed, f"is of term {placed.record.term}, after one of term {highest}")
        highest = max(highest, placed.record.term)


def _followed(log: Log, placed: Placed[Rejected]) -> bool:
    """Whether it may have come after its transaction, which could not carry it: a fault kept its leader from `rejected`."""
    decided, at = placed.record.leader_ms, placed.entry.append_ms
    schedulers = {life.process for life in log.history.noted.lives if life.role == Role.SCHEDULER}
    return at - decided <= FOLLOWS_MS and log.blame.explains(schedulers, decided - RESTS_MS, at)


def _violation(placed: Placed, what: str) -> Violation:
    key = getattr(placed.record, "key", type(placed.record).__name__)
    subject = key if isinstance(key, str) else type(placed.record).__name__
    return Violation(kind=Kind.ORDER, subject=subject, what=what, evidence=placed.where)
