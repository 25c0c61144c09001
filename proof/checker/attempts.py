"""The attempts of a run that were granted, and how each came back: by its worker's word, or by the fence of its incarnation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dueline.schemas.ledger import Fence
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import AttemptEvent, EventKind
from proof.checker.reading import Log, Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One granted attempt. `told`: what the granted claim told last, if it told of an end or gave the run back. `after`: the
    first record of the run that is not this attempt's."""

    number: int
    grant: Placed[Run]
    told: Placed[AttemptEvent] | None
    after: Placed[Run] | None

    @property
    def failed(self) -> bool:
        """Whether its worker told of a failure."""
        return self.told is not None and self.told.record.outcome == "failure"


def attempts_of(log: Log, key: str, chain: Sequence[Placed[Run]]) -> Iterator[Attempt]:
    """In order."""
    seen: set[int] = set()
    for place, placed in enumerate(chain):
        run = placed.record
        if run.state != RunState.RUNNING or run.attempt in seen:
            continue
        seen.add(run.attempt)
        held = (RunState.RUNNING, run.attempt)
        after = (each for each in chain[place + 1 :] if (each.record.state, each.record.attempt) != held)
        ends = [
            event
            for event in log.finishes.get((key, run.attempt), ())
            if event.record.kind != EventKind.CLAIMED
            and (event.record.incarnation, event.record.claim) == (run.incarnation, run.claim)
        ]
        yield Attempt(number=run.attempt, grant=placed, told=ends[-1] if ends else None, after=next(after, None))


def fences_of(log: Log) -> dict[str, Placed[Fence]]:
    """The first fence of each incarnation that has one."""
    found: dict[str, Placed[Fence]] = {}
    for placed in log.ledger:
        if isinstance(placed.record, Fence):
            found.setdefault(placed.record.incarnation, placed)  # type: ignore[arg-type]
    return found


def was_lost(attempt: Attempt, fences: dict[str, Placed[Fence]]) -> bool:
    """Whether nobody told of its end and its incarnation was fenced before the run went on."""
    fence = fences.get(attempt.grant.record.incarnation)
    if attempt.told is not None or fence is None:
        return False
    return attempt.after is None or fence.entry.offset < attempt.after.entry.offset
