"""(d) A worker's last word: with `stopped` an incarnation says that it holds nothing and writes nothing more.

- The heartbeat that says so names no claims.
- After it the incarnation sends no heartbeat, and writes no step and no event of an attempt (more than the skew later).
- By then it has told the end of each run it was granted before (more than the skew): `finished` or `declined`, of that claim.

Who was fenced, or gave up, says `lost` instead, and promises nothing. What `attempts` no longer has nobody is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from dueline.schemas.work import AttemptEvent, Heartbeat, Step, WorkerState
from proof.checker.attempts import attempts_of
from proof.checker.reading import Log, Placed
from proof.history.verdict import Kind, Violation

Words = dict[str, Placed[Heartbeat]]
"""The first heartbeat that says `stopped`, by incarnation."""


def check_stopping(log: Log) -> Iterator[Violation]:
    """Every incarnation that said so."""
    words: Words = {}
    for beat in log.beats:
        name, word = beat.record.incarnation, words.get(beat.record.incarnation)
        if word is not None:
            what = f"it said that it stopped, and then sent another heartbeat ({beat.record.state})"
            yield Violation(kind=Kind.UNEXPLAINED, subject=name, what=what, evidence=f"{word.where}, {beat.where}")
        elif beat.record.state == WorkerState.STOPPED:
            words[name] = beat
            if beat.record.claims:
                what = f"it said that it stopped, and names {len(beat.record.claims)} claims"
                yield Violation(kind=Kind.UNEXPLAINED, subject=name, what=what, evidence=beat.where)
    yield from _written(log, words)
    if log.whole("attempts"):
        yield from _held(log, words)


def _written(log: Log, words: Words) -> Iterator[Violation]:
    everything: list[Placed[Step] | Placed[AttemptEvent]] = [*log.steps, *log.events]
    for written in everything:
        word = words.get(written.record.incarnation)
        if word is not None and _after(log, written.entry.append_ms, word.entry.append_ms):
            late_ms = written.entry.append_ms - word.entry.append_ms
            what = f"written by {written.record.incarnation} {late_ms} ms after it had said that it stopped"
            evidence = f"{word.where}, {written.where}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=written.record.run, what=what, evidence=evidence)


def _held(log: Log, words: Words) -> Iterator[Violation]:
    for key, chain in log.runs.items():
        for attempt in attempts_of(log, key, chain):
            name = attempt.grant.record.incarnation
            word = words.get(name)
            if word is None or not _after(log, word.entry.append_ms, attempt.grant.entry.append_ms):
                continue
            if attempt.told is None or _after(log, attempt.told.entry.append_ms, word.entry.append_ms):
                what = f"{name} said that it stopped, and had not told the end of attempt {attempt.number}"
                evidence = f"{attempt.grant.where}, {word.where}"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=evidence)


def _after(log: Log, at_ms: int, other_ms: int) -> bool:
    return at_ms > other_ms + log.skew.at(at_ms, other_ms)
