"""What a checker says of a history."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of violations, by what was promised."""

    MISSED = "missed"
    """A due time without run record, or a run that nothing explains."""
    DOUBLED = "doubled"
    """More than one run record, grant of an attempt, or effect than the promise allows."""
    EARLY = "early"
    LATE = "late"
    """Later than the bound that the history states."""
    UNEXPLAINED = "unexplained"
    """A record, an end or an effect that no rule accounts for."""
    LOST = "lost"
    """A step, a produced record or an acknowledged input that is gone."""
    ORDER = "order"
    """A term that does not grow, a record that follows one it may not follow."""
    LIMIT = "limit"
    """An overlap policy or a limit was exceeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """`subject`: job and due time, run, step or offset. `evidence`: topic, partition and offset, or which note."""

    kind: Kind
    subject: str
    what: str
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """From the fault that ended a leader to the next one's barrier, milliseconds. `cause`: the fault's kind, or "none".
    `session_ms`: the session time-out of the leader that ended; 0: that of the history's bounds."""

    cause: str
    at_ms: int
    took_ms: int
    session_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`due_times`: judged, and by what became of them in `ends` (a run's state, or "passed over"). `runs`: manual ones too.
    `lateness_ms`: first record less due time, of each run that was not ahead of time; `granted_ms`, `begun_ms`: first grant, and
    first effect, less due time, of each run that nothing but the cluster kept waiting. `steps_executed`: effects of steps;
    `steps_again`: (fault kind, count) of second effects. `leaderless_ms`: from a leader to the next, without the `unmeasured`
    changes of terms beside which a broker's clock was moved. `terms`: barriers; `terms_unled`: those in whose term nothing was
    decided. `faults`: that struck; `faults_missed`: that did not. `troubles`: what was wrong beside the records, as the history
    tells."""

    violations: tuple[Violation, ...]
    due_times: int
    runs: int
    runs_by_state: dict[str, int] = field(default_factory=dict)
    lateness_ms: tuple[int, ...] = ()
    steps_executed: int = 0
    steps_again: tuple[tuple[str, int], ...] = ()
    kills_in_flight: int = 0
    take_overs: tuple[TakeOver, ...] = ()
    leaderless_ms: int = 0
    unmeasured: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    granted_ms: tuple[int, ...] = ()
    begun_ms: tuple[int, ...] = ()
    terms: int = 0
    terms_unled: int = 0
    faults: int = 0
    faults_missed: int = 0
    troubles: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing was found that breaks the promise, and nothing was wrong beside the records. With no due time judged
        this shows nothing: see `empty`."""
        return not self.violations and not self.troubles

    @property
    def empty(self) -> bool:
        """Whether there was nothing to judge."""
        return not self.due_times
