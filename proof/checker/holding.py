"""(a) Which version holds: for runs by hand, for jobs that were deleted, and for what was decided ahead.

- A run by hand is of the version that held when it was decided: the newest made before, or one made in the same round. A job that
  was deleted then runs for nobody.
- Only a definition brings a deleted job back.
- What was due more than ASKED_BACK_MS after a version was made does not begin under an older one: offers made ahead are asked
  back. Unless a fault on a scheduler, on its worker or on a broker came between; or on the worker that had it when the version
  was made: one that did not hear of it and was lost may have begun, and so the run goes on elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from dueline.schemas.job import Change, JobVersion
from dueline.schemas.run import Run, RunState
from proof.checker.processes import of_worker
from proof.checker.reading import Log, Placed
from proof.history.acts import Role
from proof.history.verdict import Kind, Violation

ASKED_BACK_MS: Final = 5_000
"""How long it may take until a worker has heard that an offer made ahead is asked back; it begins nothing of which it has."""


def check_holding(log: Log) -> Iterator[Violation]:
    """Every job's versions, and the runs that they do not allow."""
    runs: defaultdict[str, list[tuple[str, list[Placed[Run]]]]] = defaultdict(list)
    for key, chain in log.runs.items():
        if chain[0].record.due_ms <= log.history.judged_ms:
            runs[chain[0].record.job.id].append((key, chain))
    for job, versions in log.by_job.items():
        yield from _resurrected(versions)
        for key, chain in runs[job] if log.whole("job-versions") else ():
            wrong = _by_hand(chain[0].record, versions) if chain[0].record.command else _ahead(log, chain, versions)
            if wrong:
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=wrong, evidence=chain[0].where)


def _resurrected(versions: list[Placed[JobVersion]]) -> Iterator[Violation]:
    for before, after in pairwise(versions):
        version = after.record
        if before.record.change == Change.DELETED and version.change != Change.DEFINED:
            what = f"{version.change}, though the job was deleted"
            subject = f"{version.job}#{version.version}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=what, evidence=f"{before.where}, {after.where}")


def _by_hand(run: Run, versions: list[Placed[JobVersion]]) -> str:
    before = [each.record for each in versions if each.record.leader_ms < run.leader_ms]
    held = [*before[-1:], *(each.record for each in versions if each.record.leader_ms == run.leader_ms)]
    own = [version for version in held if version.version == run.job.version]
    if not own:
        return f"a run by hand of version {run.job.version}, while {', '.join(str(each.version) for each in held) or 'none'} held"
    return "a run by hand of a job that was deleted" if own[0].change == Change.DELETED else ""


def _ahead(log: Log, chain: list[Placed[Run]], versions: list[Placed[JobVersion]]) -> str:
    last = next((placed.record for placed in reversed(chain) if placed.record.state == RunState.RUNNING), None)
    if last is None:
        return ""
    due_ms = chain[0].record.due_ms
    begun = [effect.at_ms for effect in log.effects.get(chain[0].record.key, ()) if effect.attempt == last.attempt]
    for placed in versions if begun else ():
        version, made_ms = placed.record, placed.entry.append_ms
        limit = made_ms + ASKED_BACK_MS + log.skew.at(made_ms, min(begun))
        if version.version <= last.job.version or version.change == Change.REZONED or due_ms <= limit or min(begun) <= limit:
            continue
        schedulers = {life.process for life in log.history.noted.lives if life.role == Role.SCHEDULER}
        workers = {last.worker, *_holders(log, chain, made_ms)}
        processes = {*schedulers, *(process for worker in workers for process in of_worker(log.history, worker))}
        since = made_ms - log.history.bounds.worker_timeout_ms
        if not log.blame.explains(processes, since, min(begun)):
            made = f"version {version.version} ({version.change}) was made"
            return f"begun {min(begun) - made_ms} ms after {made}, under version {last.job.version}"
    return ""


def _holders(log: Log, chain: list[Placed[Run]], made_ms: int) -> Iterator[str]:
    """The workers that may have had the run then: one at most, but for the skew."""
    for grant, after in pairwise(chain):
        if grant.record.state != RunState.RUNNING:
            continue
        begun_ms, ended_ms = grant.entry.append_ms, after.entry.append_ms
        if begun_ms <= made_ms + log.skew.at(begun_ms, made_ms) and ended_ms >= made_ms - log.skew.at(ended_ms, made_ms):
            yield grant.record.worker
