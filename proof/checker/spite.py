"""(a) Due times that ran in spite of what the definition says: the converse of `passing.py`.

*Late* is a due time whose start (the due time and its `jitter`) was more than `misfire_grace` ago when its first record was
decided; its run is a `catch-up`, any other one a `schedule`. By the version that the due time belongs to, nothing runs

- at a due time of a paused version, unless it had been taken before the pause;
- that is late, with `misfire: skip`;
- that is late and older than `catch_up_window`, whatever `misfire` says;
- that is late, with `misfire: latest`, if a later due time of the job had come that runs;
- that is late, with `misfire: all`, if `catch_up_max` later ones had come that are late, too, and may run.

A later due time counts if its own version was known by then (its `leader_ms`), is not paused, and does not list it as taken; if
that one is late itself, it must lie within its own window, and not be skipped. It does not matter what became of it: it was found
in the same round, by a leader that decides in order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from dueline.schemas.job import Misfire
from dueline.schemas.run import Run, RunState, Trigger
from proof.checker.expected import Expected, Span
from proof.checker.jitter import offset_ms
from proof.checker.reading import Log, Placed
from proof.history.verdict import Kind, Violation

S = RunState


def check_spite(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Runs of due times up to `judged_ms`."""
    dues = {job: sorted(known.owner) for job, known in expected.items()}
    for key, chain in log.runs.items():
        first = chain[0].record
        known = expected.get(first.job.id)
        if known is None or first.due_ms > log.history.judged_ms:
            continue
        wrong = _wrong_trigger(known, first) or _in_a_pause(known, chain) or _ran_in_spite(known, dues[known.job], first)
        if wrong:
            yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=wrong, evidence=chain[0].where)


def is_late(span: Span, due_ms: int, now_ms: int) -> bool:
    """Whether a due time of this span was late by the job's `misfire_grace` when it was decided."""
    return due_ms + offset_ms(span.version.job, span.dues, due_ms) < now_ms - span.version.definition.misfire_grace_ms


def _wrong_trigger(known: Expected, first: Run) -> str:
    span = known.number(first.job.version)
    if first.command:
        wanted = Trigger.MANUAL
    elif first.state == S.SKIPPED or span is None or not is_late(span, first.due_ms, first.leader_ms):
        wanted = Trigger.SCHEDULE
    else:
        wanted = Trigger.CATCH_UP
    if first.trigger == wanted:
        return ""
    return f"made as {first.trigger!r}, {first.leader_ms - first.due_ms} ms after its due time; that is {wanted.value!r}"


def _in_a_pause(known: Expected, chain: list[Placed[Run]]) -> str:
    run = chain[-1].record
    holding = known.holding(run.due_ms)
    if run.command or run.state not in (S.SUCCEEDED, S.FAILED) or holding is None:
        return ""
    in_spite = holding.version.paused and run.due_ms not in known.taken
    return f"{run.state}, though the job was paused at its due time" if in_spite else ""


def _ran_in_spite(known: Expected, dues: list[int], first: Run) -> str:
    span, due, now = known.number(first.job.version), first.due_ms, first.leader_ms
    if first.command or first.state == S.SKIPPED or span is None or not is_late(span, due, now):
        return ""
    job = span.version.definition
    found = f"made to run, though it was found {now - due} ms late and"
    if now - due > job.catch_up_window_ms:
        return f"{found} the catch-up window is {job.catch_up_window_ms} ms"
    if job.misfire == Misfire.SKIP:
        return f"{found} the policy is to skip"
    later = [other for other in dues[bisect_right(dues, due) : bisect_right(dues, now)] if other not in known.taken]
    if job.misfire == Misfire.LATEST:
        following = next((other for other in later if _runs(known.owner[other], other, now)), None)
        return f"{found} {following} had come, too; the policy is to run the latest" if following is not None else ""
    count = sum(_catches_up(known.owner[other], other, now) for other in later)
    return f"{found} {count} later ones were; {job.catch_up_max} may run" if count >= job.catch_up_max else ""


def _runs(span: Span, due_ms: int, now_ms: int) -> bool:
    """Whether this due time, found at that instant, is one that runs, unless a later one does instead."""
    version = span.version
    if version.paused or version.leader_ms > now_ms:
        return False
    if not is_late(span, due_ms, now_ms):
        return True
    return version.definition.misfire != Misfire.SKIP and now_ms - due_ms <= version.definition.catch_up_window_ms


def _catches_up(span: Span, due_ms: int, now_ms: int) -> bool:
    """Whether it is one of the late ones that `all` wants to run."""
    return span.version.definition.misfire == Misfire.ALL and is_late(span, due_ms, now_ms) and _runs(span, due_ms, now_ms)
