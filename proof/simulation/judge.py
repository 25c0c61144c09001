"""What is said of a world when it has ended: its history, the checker's verdict, and what no process may do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from dueline.schemas.topics import Namespace
from proof.checker.check import check
from proof.history.acts import Bounds, Noted
from proof.history.history import History
from proof.history.verdict import Verdict
from proof.simulation.archive import Archive
from proof.simulation.fence import broken_fence
from proof.simulation.setup import Setup, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`digest`: the same for the same history. `findings`: what no process may do, which the history tells as its troubles.
    `cpu_s`: processor time it took."""

    setup: Setup
    history: History
    verdict: Verdict
    findings: tuple[str, ...]
    digest: str
    cpu_s: float
    steps: int

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict.holds and not self.findings

    def lines(self, limit: int = 20) -> list[str]:
        """What is wrong, a line each; of each kind the first comes first, so that none is cut off."""
        firsts = {one.kind: one for one in reversed(self.verdict.violations)}.values()
        others = [one for one in self.verdict.violations if not any(one is first for first in firsts)]
        told = [f"{one.kind.value}: {one.subject}: {one.what} [{one.evidence}]" for one in (*firsts, *others)]
        return [*self.findings, *told][:limit]


NOTICED_S = 15.0
"""A connection on which something was lost one way stands, and is noticed by the consumer's request time-out only: 10 s, and here
as long as a fetch may wait at the broker."""


def history_of(
    setup: Setup,
    sizes: Sizes,
    namespace: Namespace,
    noted: Noted,
    archive: Archive,
    topics: Sequence[str],
    *,
    epoch_ms: int,
    skew_ms: int,
) -> History:
    """What the checker is given."""
    return History(
        title=f"simulated: seed {setup.seed}, {setup.hours:g} h, {setup.profile.value}",
        seed=setup.seed,
        prefix=namespace.name,
        began_ms=epoch_ms,
        judged_ms=epoch_ms + round(setup.judged_s * 1000),
        log=archive.records(topics),
        noted=noted,
        bounds=Bounds(
            lateness_ms=round((NOTICED_S + 30 + 2 * sizes.session_s) * 1000),
            skew_ms=skew_ms,
            worker_timeout_ms=round(sizes.worker_timeout_s * 1000),
            session_ms=round(sizes.session_s * 1000),
        ),
    )


def judged(setup: Setup, history: History, findings: Sequence[str], *, cpu_s: float, steps: int) -> Judgement:
    """The checker's verdict and the rest."""
    troubles = (*findings, *broken_fence(history))
    history = replace(history, noted=replace(history.noted, troubles=troubles))
    return Judgement(
        setup=setup,
        history=history,
        verdict=check(history),
        findings=troubles,
        digest=digest(history),
        cpu_s=cpu_s,
        steps=steps,
    )


def digest(history: History) -> str:
    """Of every byte of the history."""
    found = hashlib.sha256()
    for partition, entries in sorted(history.log.items()):
        found.update(repr(partition).encode())
        for entry in entries:
            found.update(repr((entry.offset, entry.append_ms, entry.key, entry.value)).encode())
    noted = history.noted
    for part in (noted.published, noted.effects, noted.faults, noted.lives):
        for one in part:
            found.update(json.dumps(asdict(one), default=repr).encode())
    return found.hexdigest()

