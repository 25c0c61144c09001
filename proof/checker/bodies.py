"""(c) Handlers without steps: what they do, they do once in each attempt, and in each that tells of an end of theirs.

An attempt has at most one effect of its body, under the key `<run>/body`. One that told of its success has one, and so has one
that failed as its handler always does, unless a fault on its process or on a broker came in its time. Without run ids:
`matching.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dueline.schemas.work import Outcome
from proof.checker.attempts import Attempt, attempts_of
from proof.checker.processes import of_worker
from proof.checker.reading import Log
from proof.history.acts import Conduct
from proof.history.verdict import Kind, Violation


def check_bodies(log: Log) -> Iterator[Violation]:
    """Every run of a handler without steps."""
    for key, chain in log.runs.items():
        conduct = log.history.noted.conducts.get(chain[-1].record.job.handler)
        if conduct is None or conduct.steps or not conduct.effects or chain[0].record.due_ms > log.history.judged_ms:
            continue
        effects = log.effects.get(key, [])
        for effect in effects:
            if effect.key != f"{key}/body":
                yield _of(Kind.DOUBLED, key, f"its body went out under the key {effect.key!r}", f"effect at {effect.at_ms}")
        count = Counter(effect.attempt for effect in effects)
        for attempt in attempts_of(log, key, chain):
            if count[attempt.number] > 1:
                what = f"its body happened {count[attempt.number]} times in attempt {attempt.number}"
                yield _of(Kind.DOUBLED, key, what, attempt.grant.where)
            elif attempt.told is not None and not count[attempt.number] and _must(log, attempt, conduct):
                what = f"attempt {attempt.number} told of {attempt.told.record.outcome}, and its body never happened"
                yield _of(Kind.LOST, key, what, attempt.told.where)


def _must(log: Log, attempt: Attempt, conduct: Conduct) -> bool:
    assert attempt.told is not None, "asked of attempts that told of an end"
    event = attempt.told.record
    if event.outcome == Outcome.SUCCESS:
        return True
    if event.outcome != Outcome.FAILURE or not conduct.fails:
        return False
    begin, end = attempt.grant.entry.append_ms, attempt.told.entry.append_ms
    skew = log.skew.at(begin, end)
    processes = of_worker(log.history, attempt.grant.record.worker)
    return not log.blame.explains(processes, begin - log.history.bounds.worker_timeout_ms - skew, end + skew)


def _of(kind: Kind, subject: str, what: str, evidence: str) -> Violation:
    return Violation(kind=kind, subject=subject, what=what, evidence=evidence)
