"""A round being decided: the drafted state and the records so far. Each later step of the plan sees what earlier ones decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.fleet import Placement
from dueline.scheduler.core.guard import Guard
from dueline.scheduler.core.inputs import Inputs, Read, Settings
from dueline.scheduler.core.life import offered, waiting
from dueline.scheduler.core.state import State
from dueline.scheduler.core.transitions import START, check
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.codec import Record, encode
from dueline.schemas.command import Rejected
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Fence, FencePhase, Positions
from dueline.schemas.run import Run, RunState, Summary, Trigger
from dueline.schemas.work import Dispatch, Signal, SignalKind

RUN_BYTES: Final = 500
"""About what a run and its offer take beside payload, result and error."""

REJECTED_VALUE_BYTES: Final = 4_096
"""How much of a refused record is kept: enough to recognise it, little enough that a flood of them does no harm."""


class Draft:
    """Collects decisions. `now` is leader time; `state` already has every decision so far applied."""

    def __init__(self, state: State, inputs: Inputs, settings: Settings, now: int, guard: Guard | None = None) -> None:
        self.state = state.draft()
        self.guard = guard or Guard()
        self.inputs = inputs
        self.settings = settings
        self.now = now
        self._versions: list[JobVersion] = []
        self._runs: dict[str, Run] = {}
        self._summaries: list[Summary] = []
        self._fences: dict[str, Fence] = {}
        self._dispatches: dict[str, tuple[int, Dispatch]] = {}
        self._signals: dict[tuple[str, int, str], tuple[int, Signal]] = {}
        self._rejected: list[Rejected] = []
        self._not_before: dict[str, int] = {}
        self._sequence = self.state.sequence
        self._slice_from = 0
        self._bytes = 0  # about, of what this round writes
        self._stamp = (now, self.state.term, settings.generation)

    @cached_property
    def placement(self) -> Placement:
        """Where offers can go, as it stands when the first one is to be placed: what workers gave back counts."""
        return Placement(self.inputs.fleet, self.state)

    def begin_slice(self) -> None:
        """What follows has `max_records` of its own: a flood of inputs must not keep due times waiting."""
        self._slice_from = self._size

    def for_job(self, job_id: str, act: Callable[..., object], *args: Any) -> None:
        """Decide what time brings for a job, unless it was set aside."""
        if not self.leaves(job_id):
            self.guard.job(job_id, act, *args)

    def leaves(self, job_id: str) -> bool:
        """Whether the job was set aside: nothing that time brings is decided for it."""
        return job_id in self.state.aside or self.guard.leaves(job_id)

    @property
    def full(self) -> bool:
        """Whether the slice has as many records, or bytes, as one transaction should have."""
        return self._size - self._slice_from >= self.settings.max_records or self._bytes >= self.settings.max_bytes

    @property
    def _size(self) -> int:
        return len(self._runs) + len(self._summaries) + len(self._versions)

    # -- ledger ------------------------------------------------------------------------------------------------------

    def put_version(self, version: JobVersion) -> None:
        """Decide a job version."""
        version = replace(
            version,
            tzdata=self.settings.tzdata,
            term=self.state.term,
            generation=self.settings.generation,
            leader_ms=self.now,
        )
        self._probe(version, version.key)
        self._versions.append(version)
        self.state.apply(version)

    def put_run(self, run: Run, *, fires: bool = False) -> Run:
        """Decide a run's record. `fires`: it comes into being because its due time has come, so it must not be early."""
        return self._put_run(run, run.key, fires=fires)

    def _put_run(self, run: Run, key: str, *, fires: bool) -> Run:
        old = self.state.runs.get(key)
        check(key, old.state if old else START, run.state)
        if (run.leader_ms, run.term, run.generation) != self._stamp:
            run = replace(run, term=self.state.term, generation=self.settings.generation, leader_ms=self.now)
        self._probe(run, key)
        if fires or _must_not_be_early(run):
            self._not_before[key] = run.due_ms
        self._runs[key] = run
        self._bytes += RUN_BYTES + 2 * len(run.job.payload) + len(run.result) + len(run.error)
        self.state.apply_run(run, key)
        return run

    def put_summary(self, summary: Summary) -> None:
        """Decide that several due times are passed over."""
        summary = replace(summary, term=self.state.term, generation=self.settings.generation, leader_ms=self.now)
        self._probe(summary, summary.key)
        self._summaries.append(summary)
        self._not_before[summary.key] = summary.last_ms
        self.state.apply(summary)

    def put_fence(self, fence: Fence) -> None:
        """Decide the end of an incarnation."""
        fence = replace(fence, term=self.state.term, generation=self.settings.generation, leader_ms=self.now)
        self._probe(fence, fence.key)
        self._fences[fence.incarnation] = fence
        self.state.apply(fence)

    # -- derived -----------------------------------------------------------------------------------------------------

    def offer(self, run: Run, *, fires: bool = False) -> Run:
        """Offer the run's next attempt if a worker has room, else let it wait for one.

        Before its due time a run is offered ahead, whatever became of earlier offers: its worker holds it until then.
        """
        partition = self.placement.take(run.job.queue, run.job.handler)
        if partition is None:
            if run.state == RunState.WAITING and run.reason == Waiting.NO_WORKER and not fires:
                return run
            return self.put_run(waiting(run, Waiting.NO_WORKER), fires=fires)
        self._sequence += 1
        run = offered(
            run,
            partition=partition,
            seq=self._sequence,
            ahead=_keeps_time(run) and self.now < run.due_ms,
            term=self.state.term,
            generation=self.settings.generation,
            now=self.now,
        )
        key = run.key
        self._put_run(run, key, fires=fires)
        self.send_dispatch(run, key)
        return run

    def send_dispatch(self, run: Run, key: str) -> None:
        """Write the offer that the ledger has; again is harmless, since one claim of an attempt is granted."""
        if not self.inputs.fleet.queues.get(run.job.queue):
            return  # its topic is gone: everybody else's offers must not fail with this one
        record = Dispatch(
            job=run.job,
            run=key,
            due_ms=run.due_ms,
            trigger=run.trigger,
            attempt=run.attempt,
            term=run.dispatch_term,
            seq=run.dispatch_seq,
            ahead=run.ahead,
            earlier=run.earlier,
            leader_ms=self.now,
        )
        self._probe(record, key)
        self._dispatches[key] = (run.partition, record)

    def signal(
        self,
        kind: SignalKind,
        *,
        home: int,
        incarnation: str,
        run: str = "",
        claim: int = -1,
        attempt: int = 0,
        reason: str = "",
        deadline_ms: int = -1,
    ) -> None:
        """Tell the holder of a claim. The last word of a round about a claim counts."""
        word = Signal(
            kind=kind,
            incarnation=incarnation,
            run=run,
            attempt=attempt,
            claim=claim,
            reason=reason,
            deadline_ms=deadline_ms,
            term=self.state.term,
            leader_ms=self.now,
        )
        self._probe(word, run or incarnation)
        self._signals[(incarnation, claim, run)] = (home, word)

    def signal_run(self, kind: SignalKind, run: Run, reason: str = "") -> None:
        """Tell the worker that was granted this run."""
        self.signal(
            kind,
            home=run.home,
            incarnation=run.incarnation,
            run=run.key,
            claim=run.claim,
            attempt=run.attempt,
            reason=reason,
            deadline_ms=run.deadline_ms,
        )

    def reject(self, read: Read[object], error: str, detail: str) -> None:
        """Refuse an input, with its coordinates. Everybody else's jobs go on."""
        self._rejected.append(
            Rejected(
                topic=read.topic,
                partition=read.partition,
                offset=read.offset,
                error=error,
                detail=detail,
                key=read.key,
                value=read.raw[:REJECTED_VALUE_BYTES],
                term=self.state.term,
                leader_ms=self.now,
            )
        )

    def _probe(self, record: Record, key: str) -> None:
        """Whether the record can be written at all, asked at once when the guard looks for one that cannot."""
        if self.guard.probing:
            encode(record)
            key.encode()

    # -- the result ----------------------------------------------------------------------------------------------------

    def decision(self) -> Decision:
        """Everything decided, in writing order. Positions are written with anything else, so that one commit covers both.

        A fence is done only after the runs that it takes from its worker, else a torn transaction would leave them there.
        """
        decided: list[Run | Summary] = [*self._summaries, *self._runs.values()]
        decided.sort(key=_by_job_and_due)
        ledger: list[Run | Summary | Fence | Positions] = []
        ledger += (fence for fence in self._fences.values() if fence.phase == FencePhase.INTENT)
        ledger += decided
        ledger += (fence for fence in self._fences.values() if fence.phase == FencePhase.DONE)
        dispatches = [pair for key, pair in self._dispatches.items() if self._still_offered(key)]
        signals = [pair for pair in self._signals.values() if self._still_true(pair[1])]
        something = bool(ledger or self._versions or dispatches or signals or self._rejected)
        if something or self.inputs.anchor or self.inputs.first:
            ledger.append(self._positions())
        return Decision(
            versions=self._versions,
            ledger=ledger,
            dispatches=[record for _, record in dispatches],
            partitions=[partition for partition, _ in dispatches],
            signals=[word for _, word in signals],
            homes=[home for home, _ in signals],
            rejected=self._rejected,
            not_before=self._not_before,
            more=self.inputs.firing and self.full,
        )

    def _positions(self) -> Positions:
        merged = dict(self.state.positions.items())
        merged.update({(p.topic, p.partition): p for p in self.inputs.positions})
        return Positions(
            positions=[merged[key] for key in sorted(merged)],
            jobs_read_ms=max(self.state.jobs_read_ms, self.inputs.read_jobs_ms),
            sequence=self._sequence,
            term=self.state.term,
            generation=self.settings.generation,
            leader_ms=self.now,
        )

    def _still_offered(self, key: str) -> bool:
        run = self.state.runs.get(key)
        return run is not None and run.state == RunState.DISPATCHED

    def _still_true(self, word: Signal) -> bool:
        if word.kind != SignalKind.GRANT:
            return True
        run = self.state.runs.get(word.run)
        if run is None or run.state != RunState.RUNNING:
            return False
        return (run.incarnation, run.claim) == (word.incarnation, word.claim)


def _keeps_time(run: Run) -> bool:
    """Whether the run has a due time by the leader's clock; that of a manual run is when its command was appended."""
    return run.trigger in (Trigger.SCHEDULE, Trigger.CATCH_UP)


def _must_not_be_early(run: Run) -> bool:
    """Whether the record says that the due time has come: it is passed over, or a worker may begin at once."""
    begins = run.state == RunState.DISPATCHED and not run.ahead
    return (begins or run.state == RunState.SKIPPED) and _keeps_time(run)


def _by_job_and_due(record: Run | Summary) -> tuple[str, int]:
    """A job's records in due-time order, so that a torn transaction never has a later due time without an earlier one."""
    return (record.job.id, record.due_ms) if isinstance(record, Run) else (record.job, record.first_ms)
