"""The read model: job histories, the ledger and the attempts, folded from the log. Shared by the audit and the command.

Each model is fed with records in log order by `add`, and knows where each fact stands. It keeps what a reader needs of
the earlier states of a run, not every record: a ledger has many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from dueline.scheduler.audit.evidence import Place, Seen, Unreadable, key_of, place_of
from dueline.scheduler.audit.reading import Extent, read_topic
from dueline.scheduler.core.ports import LogAdmin, Received
from dueline.schemas.base import NONE
from dueline.schemas.codec import Record, decode
from dueline.schemas.errors import DecodeError
from dueline.schemas.job import Change, JobVersion
from dueline.schemas.ledger import Barrier, Fence, Positions
from dueline.schemas.run import Run, RunState, Summary
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, Outcome, Step

R = TypeVar("R", bound=Record)

FINAL_STATES = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED})
"""States that no record may follow."""


@dataclass(slots=True, kw_only=True)
class JobHistory:
    """A job's versions in the order of their numbers."""

    job: str
    versions: list[Seen[JobVersion]] = field(default_factory=list)

    @property
    def latest(self) -> Seen[JobVersion]:
        """The version that holds now, or will from its instant on."""
        return self.versions[-1]

    @property
    def deleted(self) -> bool:
        """Whether the job is gone."""
        return self.latest.record.change == Change.DELETED


@dataclass(slots=True, kw_only=True)
class Histories:
    """`job-versions`, folded."""

    jobs: dict[str, JobHistory] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)

    def add(self, received: Received) -> None:
        """Take the next record. A version written twice under one key counts once: the record that stands last."""
        seen = _decoded(received, self.unreadable)
        if seen is None or isinstance(seen.record, Barrier):
            return
        if not isinstance(seen.record, JobVersion):
            self.unreadable.append(_stranger(seen))
            return
        version = seen.record
        history = self.jobs.setdefault(version.job, JobHistory(job=version.job))
        kept = [other for other in history.versions if other.record.version != version.version]
        kept.append(Seen(place=seen.place, key=seen.key, record=version))
        kept.sort(key=lambda each: each.record.version)
        history.versions = kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The first ledger record that gave an attempt to a claim."""

    place: Place
    attempt: int
    claim: int
    incarnation: str
    worker: str
    ahead: bool


@dataclass(slots=True, kw_only=True)
class RunTrail:
    """A run as its records tell it: the last one, the grants, and steps from one state to the next that can't be."""

    key: str
    last: Seen[Run]
    first: Place
    grants: list[Grant] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)

    @property
    def final(self) -> bool:
        """Whether the run has ended."""
        return self.last.record.state in FINAL_STATES

    def add(self, seen: Seen[Run]) -> None:
        """Take the run's next record."""
        before, after = self.last.record, seen.record
        if after.term < before.term:
            return  # a stale write that landed late; the ledger as a whole reports it
        if self.final and after.state != before.state:
            self.impossible.append(f"{after.state} after {before.state}, at {seen.place}")
        if after.attempt < before.attempt:
            self.impossible.append(f"attempt {after.attempt} after attempt {before.attempt}, at {seen.place}")
        self.last = seen
        self.note_grant(seen)

    def note_grant(self, seen: Seen[Run]) -> None:
        """Remember the first record of each grant; two claims for one attempt are impossible."""
        run = seen.record
        if run.state != RunState.RUNNING:
            return
        for grant in self.grants:
            if grant.attempt == run.attempt:
                if (grant.claim, grant.incarnation) != (run.claim, run.incarnation):
                    self.impossible.append(
                        f"attempt {run.attempt} granted to {run.incarnation} claim {run.claim}, at {seen.place}, "
                        f"after {grant.incarnation} claim {grant.claim}, at {grant.place}"
                    )
                return
        self.grants.append(
            Grant(
                place=seen.place,
                attempt=run.attempt,
                claim=run.claim,
                incarnation=run.incarnation,
                worker=run.worker,
                ahead=run.ahead,
            )
        )


@dataclass(slots=True, kw_only=True)
class Ledger:
    """`runs`, folded. `job` "" takes every job; `only` "" takes every run."""

    job: str = ""
    only: str = ""
    runs: dict[str, RunTrail] = field(default_factory=dict)
    summaries: dict[str, Seen[Summary]] = field(default_factory=dict)
    fences: dict[str, Seen[Fence]] = field(default_factory=dict)
    positions: Positions | None = None
    term: int = NONE
    stale: list[Unreadable] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    def add(self, received: Received) -> None:
        """Take the next record."""
        if received.value is None:
            self._remove(received)
            return
        if not self._wanted(received):
            return
        seen = _decoded(received, self.unreadable)
        if seen is None:
            return
        record, place, key = seen.record, seen.place, seen.key
        self._check_term(seen)
        match record:
            case Run():
                self._add_run(Seen(place=place, key=key, record=record))
            case Summary():
                self.summaries[key] = Seen(place=place, key=key, record=record)
            case Fence():
                self.fences[record.incarnation] = Seen(place=place, key=key, record=record)
            case Positions():
                self.positions = record
            case Barrier():
                self.term = max(self.term, place.offset)
            case _:
                self.unreadable.append(_stranger(seen))

    def _wanted(self, received: Received) -> bool:
        """Skips records of other jobs by their key, without decoding. Keys with `!` in front are the ledger's own."""
        if not self.job and not self.only:
            return True
        key = key_of(received)
        return key.startswith("!") or (key == self.only if self.only else key.startswith(f"{self.job}@"))

    def _add_run(self, seen: Seen[Run]) -> None:
        trail = self.runs.get(seen.key)
        if trail is None:
            trail = self.runs[seen.key] = RunTrail(key=seen.key, last=seen, first=seen.place)
            trail.note_grant(seen)
        else:
            trail.add(seen)

    def _check_term(self, seen: Seen[Record]) -> None:
        """Terms never fall along the ledger: only the leader of the newest term can write to it."""
        if isinstance(seen.record, Barrier):
            return  # it names no term: its offset is one, see `add`
        term = getattr(seen.record, "term", NONE)
        if term < self.term:
            self.stale.append(Unreadable(place=seen.place, key=seen.key, error=f"term {term} stands after term {self.term}"))
        self.term = max(self.term, term)

    def _remove(self, received: Received) -> None:
        key = key_of(received)
        self.runs.pop(key, None)
        self.summaries.pop(key, None)


@dataclass(slots=True, kw_only=True)
class Attempts:
    """`attempts`, folded: the events of each run. `only` "" takes every run."""

    only: str = ""
    finishes_only: bool = False
    events: dict[str, list[Seen[AttemptEvent]]] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    extent: Extent = field(default_factory=Extent)

    def add(self, received: Received) -> None:
        """Take the next record."""
        if self.only and key_of(received) != self.only:
            return
        seen = _decoded(received, self.unreadable)
        if seen is None:
            return
        event = seen.record
        if not isinstance(event, AttemptEvent):
            self.unreadable.append(_stranger(seen))
        elif not self.finishes_only or event.kind == EventKind.FINISHED:
            self.events.setdefault(event.run, []).append(Seen(place=seen.place, key=seen.key, record=event))

    def finishes(self, run: str) -> list[Seen[AttemptEvent]]:
        """The ends of a run's attempts, in the order of the attempts."""
        ends = [seen for seen in self.events.get(run, []) if seen.record.kind == EventKind.FINISHED]
        return sorted(ends, key=lambda seen: (seen.record.attempt, seen.place))

    def successes(self, run: str) -> list[Seen[AttemptEvent]]:
        """Those that ended well, each attempt and claim once."""
        by_claim: dict[tuple[int, str, int], Seen[AttemptEvent]] = {}
        for seen in self.finishes(run):
            event = seen.record
            if event.outcome == Outcome.SUCCESS:
                by_claim.setdefault((event.attempt, event.incarnation, event.claim), seen)
        return list(by_claim.values())


def read_histories(admin: LogAdmin, namespace: Namespace) -> Histories:
    """Every job's versions. Raises TopicMissing, Unavailable."""
    return _fed(Histories(), read_topic(admin, namespace.job_versions))


def read_ledger(admin: LogAdmin, namespace: Namespace, *, job: str = "", only: str = "") -> Ledger:
    """The ledger, of one job or one run where named. Raises TopicMissing, Unavailable."""
    return _fed(Ledger(job=job, only=only), read_topic(admin, namespace.runs))


def read_attempts(admin: LogAdmin, namespace: Namespace, *, only: str = "", finishes_only: bool = False) -> Attempts:
    """What workers recorded about attempts. Raises TopicMissing, Unavailable."""
    attempts = Attempts(only=only, finishes_only=finishes_only)
    return _fed(attempts, read_topic(admin, namespace.attempts, extent=attempts.extent))


def read_steps(admin: LogAdmin, namespace: Namespace, run: str) -> list[Seen[Step]]:
    """The completed steps of a run, in the order of their completion. Raises TopicMissing, Unavailable."""
    unreadable: list[Unreadable] = []
    steps: list[Seen[Step]] = []
    for received in read_topic(admin, namespace.steps):
        if not key_of(received).startswith(f"{run}/"):
            continue
        seen = _decoded(received, unreadable)
        if seen is not None and isinstance(seen.record, Step) and seen.record.run == run:
            steps.append(Seen(place=seen.place, key=seen.key, record=seen.record))
    return sorted(steps, key=lambda step: (step.record.finished_ms, step.place))


M = TypeVar("M", Histories, Ledger, Attempts)


def _fed(model: M, records: Iterable[Received]) -> M:
    for received in records:
        model.add(received)
    return model


def _decoded(received: Received, unreadable: list[Unreadable]) -> Seen[Record] | None:
    """None for a tombstone and for what can't be decoded, which is noted."""
    if received.value is None:
        return None
    try:
        record = decode(received.value)
    except DecodeError as error:
        unreadable.append(Unreadable(place=place_of(received), key=key_of(received), error=str(error)))
        return None
    return Seen(place=place_of(received), key=key_of(received), record=record)


def _stranger(seen: Seen[Record]) -> Unreadable:
    kind = type(seen.record).__name__
    return Unreadable(place=seen.place, key=seen.key, error=f"a record of type {kind} does not belong in this topic")
