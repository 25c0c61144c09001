"""The cluster's state as the ledger tells it: the fold of `job-versions` and `runs`, live and on replay by the same `apply`.

Runs that ended are not kept: what a later decision needs of them stands in the cursors, the last due times and the set of
manual runs. Every index is derived from the records and can be rebuilt by applying them again in any prefix.
"""

from __future__ import annotations

from typing import TypeVar

from dueline.scheduler.core.spans import JobState, NextDue, next_due
from dueline.scheduler.core.tables import Entry, Index, Table
from dueline.scheduler.core.transitions import TERMINAL
from dueline.scheduler.core.trouble import Trouble, trouble_of
from dueline.scheduler.core.waiting import BLOCKED, Waiting, admits, engages
from dueline.schemas.base import NONE
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Fence, FencePhase, Position, Positions
from dueline.schemas.run import Run, RunState, Summary, Trigger

K = TypeVar("K")

LedgerRecord = Run | Summary | Positions | Fence | JobVersion

TABLES = (
    "jobs", "cursors", "last_due", "runs", "manual", "engaged", "behind", "offers", "held", "fences", "positions", "dues",
    "caught_up", "pacing", "paces",
)  # fmt: skip
INDEXES = (
    "due", "ahead", "live", "ready", "blocked", "wakeable", "timers", "recalled", "holding", "offered", "fencing", "paced",
    "pace", "zones",
)  # fmt: skip
NUMBERS = ("term", "versions_term", "leader_ms", "jobs_read_ms", "sequence")
"""What a state consists of, by name: to copy it, and to compare two of them."""


class State:
    """What leader, standbys and tests fold. `draft()` gives a state to decide on; `apply` is the only way to change one."""

    def __init__(self, base: State | None = None) -> None:
        self.jobs: Table[str, JobState] = Table(base.jobs if base else None)
        self.cursors: Table[str, dict[int, int]] = Table(base.cursors if base else None)  # job -> version -> latest due recorded
        self.last_due: Table[str, int] = Table(base.last_due if base else None)
        self.runs: Table[str, Run] = Table(base.runs if base else None)  # not ended
        self.manual: Table[str, bool] = Table(base.manual if base else None)  # run ids of manual runs, ended ones too
        self.engaged: Table[str, int] = Table(base.engaged if base else None)  # job -> runs that count for overlap and limits
        self.behind: Table[str, int] = Table(base.behind if base else None)  # job -> runs that wait for an earlier one
        self.offers: Table[tuple[str, int], int] = Table(base.offers if base else None)  # dispatch partition -> unanswered
        self.held: Table[str, int] = Table(base.held if base else None)  # incarnation -> granted runs
        self.fences: Table[str, Fence] = Table(base.fences if base else None)
        self.positions: Table[tuple[str, int], Position] = Table(base.positions if base else None)
        self.dues: Table[str, NextDue] = Table(base.dues if base else None)  # derived: job -> its next undecided due time
        self.caught_up: Table[str, int] = Table(base.caught_up if base else None)  # job -> last offer of a late run
        self.pacing: Table[str, int] = Table(base.pacing if base else None)  # job -> late runs that wait for `catch_up_every`
        self.paces: Table[str, int] = Table(base.paces if base else None)  # derived: job -> when the first of them may go

        self.due: Index = Index(base.due if base else None)  # (due, job)
        self.ahead: Index = Index(base.ahead if base else None)  # (due - dispatch_ahead, job), unless paused or put off
        self.live: Index = Index(base.live if base else None)  # (job, due, run): every run not ended
        self.ready: Index = Index(base.ready if base else None)  # (queue, handler, due, run): waits for a worker
        self.blocked: Index = Index(base.blocked if base else None)  # (job, due, run): waits for an earlier run
        self.wakeable: Index = Index(base.wakeable if base else None)  # (job,): its first blocked run may go on
        self.timers: Index = Index(base.timers if base else None)  # (until, run)
        self.recalled: Index = Index(base.recalled if base else None)  # (job, due, run)
        self.holding: Index = Index(base.holding if base else None)  # (incarnation, run)
        self.offered: Index = Index(base.offered if base else None)  # (dispatched at, run)
        self.paced: Index = Index(base.paced if base else None)  # (job, due, run): late, waits for `catch_up_every`
        self.pace: Index = Index(base.pace if base else None)  # (not before, job)
        self.zones: Index = Index(base.zones if base else None)  # (tzdata, job): jobs whose schedule has a zone
        self.fencing: Index = Index(base.fencing if base else None)  # (incarnation,): fence intended, not done

        self.term: int = base.term if base else NONE
        self.versions_term: int = base.versions_term if base else NONE
        self.leader_ms: int = base.leader_ms if base else NONE
        self.jobs_read_ms: int = base.jobs_read_ms if base else NONE
        self.sequence: int = base.sequence if base else 0
        self.aside: dict[str, Trouble] = dict(base.aside) if base else {}
        """Jobs whose next due time cannot be worked out, or which a leader set aside; not ledger state. Their cursors stay."""
        self._unsettled: set[str] = set(base._unsettled) if base else set()

    def draft(self) -> State:
        """A state that begins as this one and can be changed without changing it. Settles this one first."""
        self.settle()
        return State(self)

    def copy(self) -> State:
        """An independent state with the same content. What was set aside is tried again there."""
        self.settle()
        twin = State()
        for name in TABLES + INDEXES:
            setattr(twin, name, getattr(self, name).copy())
        for name in NUMBERS:
            setattr(twin, name, getattr(self, name))
        twin._unsettled.update(self.aside)
        return twin

    # -- apply: one record, idempotent ---------------------------------------------------------------------------

    def apply(self, record: LedgerRecord) -> bool:
        """Fold one record. False: it came from a term that has ended and changes nothing."""
        if isinstance(record, JobVersion):
            if record.term < self.versions_term:
                return False
            self.versions_term = record.term
            self._apply_version(record)
        else:
            if record.term < self.term:
                return False
            self.term = record.term
            if isinstance(record, Run):
                self.apply_run(record, record.key)
            elif isinstance(record, Summary):
                self._decided(record.job, record.version, record.last_ms)
            elif isinstance(record, Positions):
                self._apply_positions(record)
            else:
                self._apply_fence(record)
        self.leader_ms = max(self.leader_ms, record.leader_ms)
        return True

    def apply_barrier(self, offset: int) -> int:
        """Fold a take-over's marker of `runs`; returns the term it opens (L4)."""
        self.term = max(offset, self.term + 1)
        return self.term

    def _apply_version(self, record: JobVersion) -> None:
        old = self.jobs.get(record.job)
        job = (old or JobState(id=record.job, spans=())).with_version(record)
        self.jobs.put(record.job, job)
        if old is not None:
            self.zones.discard((old.latest.tzdata, record.job))
        if job.latest.zoned:
            self.zones.add((job.latest.tzdata, record.job))
        self.aside.pop(record.job, None)
        self._unsettled.add(record.job)
        self._rewake(record.job)
        self._repace(record.job)

    def apply_run(self, run: Run, key: str) -> None:
        """Fold a run of the present term, whose key is known: what `apply` does with it."""
        job = run.job.id
        old = self.runs.get(key)
        if old is not None:
            self._unindex(old, key)
        if run.state in TERMINAL:
            self.runs.drop(key)
        else:
            self.runs.put(key, run)
            self._index(run, key)
        if self.behind.get(job):
            self._rewake(job)
        if run.trigger == Trigger.CATCH_UP:
            self.caught_up.put(job, max(run.dispatched_ms, self.caught_up.get(job) or NONE))
            self._repace(job)
        if run.command:
            self.manual.put(key, True)
        elif run.trigger in (Trigger.SCHEDULE, Trigger.CATCH_UP):
            self._decided(job, run.job.version, run.due_ms)

    def _apply_positions(self, record: Positions) -> None:
        for position in record.positions:
            self.positions.put((position.topic, position.partition), position)
        self.jobs_read_ms = record.jobs_read_ms
        self.sequence = max(self.sequence, record.sequence)

    def _apply_fence(self, fence: Fence) -> None:
        self.fences.put(fence.incarnation, fence)
        if fence.phase == FencePhase.INTENT:
            self.fencing.add((fence.incarnation,))
        else:
            self.fencing.discard((fence.incarnation,))

    # -- indexes ----------------------------------------------------------------------------------------------------

    def _index(self, run: Run, key: str) -> None:
        job = run.job.id
        self.live.add((job, run.due_ms, key))
        if engages(run):
            _count(self.engaged, job, 1)
        if run.state == RunState.WAITING:
            self._shelf(run).add(_place(run, key))
            if run.reason in BLOCKED:
                _count(self.behind, job, 1)
            elif run.reason == Waiting.CATCH_UP:
                _count(self.pacing, job, 1)
        elif run.state == RunState.DISPATCHED:
            self.offered.add((run.dispatched_ms, key))
            _count(self.offers, (run.job.queue, run.partition), 1)
        elif run.state == RunState.RUNNING:
            self.holding.add((run.incarnation, key))
            _count(self.held, run.incarnation, 1)

    def _unindex(self, run: Run, key: str) -> None:
        job = run.job.id
        self.live.discard((job, run.due_ms, key))
        if engages(run):
            _count(self.engaged, job, -1)
        if run.state == RunState.WAITING:
            self._shelf(run).discard(_place(run, key))
            if run.reason in BLOCKED:
                _count(self.behind, job, -1)
                self.wakeable.discard((job,))
            elif run.reason == Waiting.CATCH_UP:
                _count(self.pacing, job, -1)
        elif run.state == RunState.DISPATCHED:
            self.offered.discard((run.dispatched_ms, key))
            _count(self.offers, (run.job.queue, run.partition), -1)
        elif run.state == RunState.RUNNING:
            self.holding.discard((run.incarnation, key))
            _count(self.held, run.incarnation, -1)

    def _rewake(self, job_id: str) -> None:
        """Whether the job's first blocked run may go on."""
        job, engaged = self.jobs.get(job_id), self.engaged.get(job_id) or 0
        if self.behind.get(job_id) and (job is None or admits(job.latest.job, engaged)):
            self.wakeable.add((job_id,))
        else:
            self.wakeable.discard((job_id,))

    def _repace(self, job_id: str) -> None:
        """When the job's first paced run may go on: `catch_up_every` after the last late run was offered."""
        old, new, job = self.paces.get(job_id), None, self.jobs.get(job_id)
        if self.pacing.get(job_id):
            new = (self.caught_up.get(job_id) or NONE) + (job.latest.job.catch_up_every_ms if job is not None else 0)
        if old is not None:
            self.pace.discard((old, job_id))
            self.paces.drop(job_id)
        if new is not None:
            self.pace.add((new, job_id))
            self.paces.put(job_id, new)

    def _shelf(self, run: Run) -> Index:
        if run.reason == Waiting.RECALLED:
            return self.recalled
        if run.reason in BLOCKED:
            return self.blocked
        if run.reason == Waiting.CATCH_UP:
            return self.paced
        return self.timers if run.until_ms != NONE else self.ready

    def _decided(self, job: str, version: int, due_ms: int) -> None:
        cursors = self.cursors.get(job) or {}
        if due_ms > cursors.get(version, NONE):
            self.cursors.put(job, {**cursors, version: due_ms})
            self._unsettled.add(job)
        self.last_due.put(job, max(due_ms, self.last_due.get(job) or NONE))

    def previous_due(self, job_id: str, due_ms: int) -> int:
        """The job's due time before this one; NONE: it has none."""
        last = self.last_due.get(job_id)
        if last is None or last < due_ms:
            return NONE if last is None else last  # the usual case: everything before has a record, nothing after
        job = self.jobs.get(job_id)
        return job.previous(due_ms) if job is not None else NONE

    # -- derived: the next due time of each job -----------------------------------------------------------------------

    def settle(self) -> None:
        """Work out the next due time of every job that a record touched since the last call."""
        while self._unsettled:
            self._settle_job(self._unsettled.pop())

    def _settle_job(self, job_id: str) -> None:
        old, new, ahead = self.dues.get(job_id), None, False
        if job_id not in self.aside:
            try:
                new = self._next_due(job_id)
                ahead = new is not None and not new.span.paused and not new.span.offset(new.due_ms)
            except Exception as error:  # noqa: BLE001 - a bug that this job meets is not everybody's
                self.aside[job_id], new = trouble_of(error), None
        if old is not None:
            self.due.discard((old.due_ms, job_id))
            self.ahead.discard((old.due_ms - old.span.job.dispatch_ahead_ms, job_id))
            self.dues.drop(job_id)
        if new is not None:
            self.dues.put(job_id, new)
            self.due.add((new.due_ms, job_id))
            if ahead:
                self.ahead.add((new.due_ms - new.span.job.dispatch_ahead_ms, job_id))

    def _next_due(self, job_id: str) -> NextDue | None:
        job = self.jobs.get(job_id)
        return next_due(job, self.cursors.get(job_id) or {}) if job else None

    def set_aside(self, job_id: str, trouble: Trouble) -> None:
        """Leave the job as it is until a new version of it or a copy of this state: it cannot be decided."""
        self.aside[job_id] = trouble
        self._unsettled.add(job_id)

    def next_wake(self, now: int) -> int | None:
        """The earliest instant at which time alone changes something: a due time, one ahead of it, a timer, a pace."""
        self.settle()
        later = (next(index.between((now + 1,)), None) for index in (self.ahead, self.pace))
        firsts = (self.due.first(), self._first_timer(), *later)
        instants = [int(first[0]) for first in firsts if first is not None]
        instants += [int(due) for _, due, _ in self.recalled.between() if due > now]
        return min(instants, default=None)

    def _first_timer(self) -> Entry | None:
        if not self.aside:
            return self.timers.first()
        return next((entry for entry in self.timers.between() if self.runs[entry[1]].job.id not in self.aside), None)


def _count(table: Table[K, int], key: K, change: int) -> None:
    """Count up or down; nobody is kept who counts nothing, so that every way to the same state gives the same tables."""
    number = (table.get(key) or 0) + change
    if number:
        table.put(key, number)
    else:
        table.drop(key)


def _place(run: Run, key: str) -> tuple[object, ...]:
    """A waiting run's entry in its index."""
    if run.reason in (Waiting.RECALLED, Waiting.CATCH_UP) or run.reason in BLOCKED:
        return (run.job.id, run.due_ms, key)
    return (run.until_ms, key) if run.until_ms != NONE else (run.job.queue, run.job.handler, run.due_ms, key)
