"""(d) Where effects came from: the process whose incarnation was granted the attempt, and within that process's life.

A worker's id is the name of its process, or that name and the pid of its life ("w1-12"). A life is the one with that pid, else
the one that went on when the attempt was granted. An effect of another process, or (more than the skew) outside that life, is
unexplained.
"""

from __future__ import annotations

from collections.abc import Iterator

from dueline.schemas.run import Run, RunState
from proof.checker.reading import Log, Placed
from proof.checker.schedule import FOREVER
from proof.history.acts import Effect, Life, Role
from proof.history.history import History
from proof.history.verdict import Kind, Violation


def of_worker(history: History, worker: str) -> set[str]:
    """The process that a worker id stands for; none if no life of such a process was noted."""
    names = {worker, worker.rpartition("-")[0]}
    return {life.process for life in history.noted.lives if life.role == Role.WORKER and life.process in names}


def check_processes(log: Log) -> Iterator[Violation]:
    """Every effect of a granted attempt."""
    grants: dict[tuple[str, int], Placed[Run]] = {}
    for key, chain in log.runs.items():
        for placed in chain:
            if placed.record.state == RunState.RUNNING:
                grants.setdefault((key, placed.record.attempt), placed)
    lives = [life for life in log.history.noted.lives if life.role == Role.WORKER]
    for effect in log.history.noted.effects if lives else ():
        grant = grants.get((effect.run, effect.attempt))
        wrong = _wrong(log, effect, grant, lives) if grant is not None else ""
        if grant is not None and wrong:
            evidence = f"effect at {effect.at_ms}, grant {grant.where}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=effect.run, what=wrong, evidence=evidence)


def _wrong(log: Log, effect: Effect, grant: Placed[Run], lives: list[Life]) -> str:
    worker, granted_ms = grant.record.worker, grant.entry.append_ms
    pid = worker.removeprefix(effect.process).removeprefix("-")
    mine = [life for life in lives if life.process == effect.process and worker.startswith(effect.process)]
    if worker not in (effect.process, f"{effect.process}-{pid}") or not mine:
        return f"step {effect.step!r} of attempt {effect.attempt} happened in {effect.process}; it was granted to {worker}"
    skew = log.skew.at(effect.at_ms, granted_ms)
    begin = effect.began_ms if effect.began_ms >= 0 else effect.at_ms
    for life in [each for each in mine if pid and str(each.pid) == pid] or mine:
        ended_ms = life.ended_ms if life.ended_ms >= 0 else FOREVER
        granted = life.began_ms <= granted_ms + skew and granted_ms - skew <= ended_ms
        if granted and life.began_ms <= begin + skew and effect.at_ms - skew <= ended_ms:
            return ""
    return f"step {effect.step!r} of attempt {effect.attempt} happened outside the life of {worker} that was granted it"
