"""A tiny honest leader, written from the records' definitions and docs/states.md: it keeps every promise, and nothing else of the
product is in it (but for `jitter`). It decides in rounds; a round is one transaction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from dueline.schemas.codec import decode_as
from dueline.schemas.command import Command, Rejected
from dueline.schemas.definition import parse_command, parse_job
from dueline.schemas.errors import ContractError, DecodeError
from dueline.schemas.job import Job, JobVersion
from dueline.schemas.ledger import Barrier, Fence, Positions
from dueline.schemas.run import Run, StepRange, Summary, run_key
from dueline.schemas.work import AttemptEvent
from proof.history.entry import Entry
from tests.unit.proof.checker.crew import ATTEMPTS, STEPS
from tests.unit.proof.checker.log import PREFIX
from tests.unit.proof.checker.made import FOREVER, by_job_and_due, dues, granted, offered, run_job, start_ms, told, waiting
from tests.unit.proof.checker.whispers import whisper

if TYPE_CHECKING:
    from tests.unit.proof.checker.crew import Worker
    from tests.unit.proof.checker.world import World

RUNS, VERSIONS, JOBS, CONTROL, REJECTED = (f"{PREFIX}.{n}" for n in ("runs", "job-versions", "jobs", "control", "rejected"))
COUNTS = {"no-worker", "retry", "declined", "interrupted", "worker-lost", "jitter"}
ENDED = {"succeeded", "failed", "cancelled", "skipped"}


class Leader:
    """The state that the ledger tells, and the leader who goes on from it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.term = -1
        self.seq = 0
        self.versions: defaultdict[str, list[JobVersion]] = defaultdict(list)
        self.recorded: defaultdict[str, dict[int, int]] = defaultdict(dict)  # job -> due time -> version
        self.live: dict[str, Run] = {}
        self.known: set[str] = set()
        self.read: defaultdict[tuple[str, int], int] = defaultdict(int)  # how many entries of each input were read
        self._runs: dict[str, Run] = {}
        self._others: list[Summary | Fence] = []
        self._made: list[JobVersion] = []
        self._refused: list[Rejected] = []

    @property
    def now(self) -> int:
        return self.world.writing.now

    def take_over(self, process: str) -> None:
        """A barrier in both topics opens a term."""
        barrier = Barrier(id=f"b{self.now}-{process}", process=f"host:{process}", generation=1)
        self.world.writing.append(VERSIONS, barrier)
        self.term = max(self.world.writing.append(RUNS, barrier).offset, self.term + 1)
        self.seq = 0

    def round(self) -> None:
        """Read, decide, write."""
        self._workers_did()
        self._users_want()
        self._recalled()
        for job in list(self.versions):
            self._due(job)
        self._timers()
        self._wake()
        for job in list(self.versions):
            self._ahead(job)
        self._write()

    # -- inputs ------------------------------------------------------------------------------------------------------

    def _new(self, topic: str, partition: int) -> list[Entry]:
        entries = self.world.writing.log[topic, partition]
        fresh = entries[self.read[topic, partition] :]
        self.read[topic, partition] = len(entries)
        return fresh

    def _workers_did(self) -> None:
        for home in range(4):
            for entry in self._new(ATTEMPTS, home):
                assert entry.value is not None
                self._event(decode_as(AttemptEvent, entry.value))
        for worker in self.world.workers:
            if worker.stopped_ms >= 0 and not worker.fenced and self.now >= worker.stopped_ms + self.world.timeout_ms:
                self._fence(worker)

    def _event(self, event: AttemptEvent) -> None:
        run = self.live.get(event.run)
        if run is None or run.attempt != event.attempt:
            return
        if event.kind == "claimed" and run.state == "dispatched":
            self._put(granted(run, event, self.now))
        elif run.state == "running" and event.claim == run.claim:
            self._finished(run, event)

    def _finished(self, run: Run, event: AttemptEvent) -> None:
        if event.kind == "declined":
            self._put(waiting(run, "recalled" if run.recall else "declined"))
            return
        run, ended = told(run, event), event.finished_ms
        if event.outcome == "success":
            self._put(replace(run, state="succeeded", finished_ms=ended))
        elif event.outcome == "cancelled":
            self._put(replace(run, state="cancelled", reason="by command", finished_ms=ended))
        else:
            run = self._ranged(replace(run, failures=run.failures + 1))
            if run.failures > run.job.max_retries:
                self._put(replace(run, state="failed", reason="failure", finished_ms=ended))
            else:
                back_off = run.job.retry_backoff_ms * run.job.retry_backoff_factor ** (run.failures - 1)
                self._put(waiting(run, "retry", self.now + round(0.9 * back_off)))

    def _fence(self, worker: Worker) -> None:
        common = {"incarnation": worker.incarnation, "worker": worker.name, "queue": "default", "home": worker.home}
        self._others.append(Fence(phase="intent", reason="no heartbeat", **common))  # type: ignore[arg-type]
        worker.fenced = True
        for run in [run for run in self.live.values() if run.state == "running" and run.incarnation == worker.incarnation]:
            began = self.now >= run.due_ms
            self._put(waiting(self._ranged(replace(run, losses=run.losses + began, begun=run.begun or began)), "worker-lost"))

    def _done(self, fence: Fence) -> Fence:
        ends = self.world.writing.end
        return replace(fence, phase="done", steps_end=ends(STEPS, fence.home), attempts_end=ends(ATTEMPTS, fence.home))

    def _ranged(self, run: Run) -> Run:
        end = self.world.writing.end(STEPS, run.home)
        if end <= run.steps_from:
            return run
        part = StepRange(attempt=run.attempt, home=run.home, start=run.steps_from, end=end)
        return replace(run, earlier=[*run.earlier, part])

    def _users_want(self) -> None:
        for entry in sorted([*self._new(JOBS, 0), *self._new(CONTROL, 0)], key=lambda entry: entry.append_ms):
            try:
                if entry.topic == CONTROL:
                    self._command(entry, parse_command(entry.value or b""))
                else:
                    self._definition(entry, None if entry.value is None else parse_job(entry.value))
            except ContractError as error:
                invalid = "invalid-command" if entry.topic == CONTROL else "invalid-job"
                self._refuse(entry, "undecodable" if isinstance(error, DecodeError) else invalid, str(error))

    def _definition(self, entry: Entry, job: Job | None) -> None:
        name = (entry.key or b"").decode()
        latest = self.versions[name][-1] if self.versions[name] else None
        lives = latest is not None and latest.change != "deleted"
        if job is None and lives:
            assert latest is not None
            self._version(entry, "deleted", latest.definition)
        elif job is not None and not (lives and latest is not None and latest.definition == job):
            self._version(entry, "defined", job)

    def _command(self, entry: Entry, command: Command) -> None:
        if command.kind == "cancel":
            self._cancel(entry, command)
            return
        latest = self.versions[command.job][-1] if self.versions[command.job] else None
        if any(version.command == command.id for version in self.versions[command.job]):
            return
        if latest is None or latest.change == "deleted":
            self._refuse(entry, "unknown-job", "")
        elif command.kind == "trigger":
            key = run_key(command.job, 0, command.id)
            if key not in self.known:
                run = self._created(latest, entry.append_ms, "manual", command.id)
                self._put(waiting(run, "overlap"))
        elif command.kind == "delete":
            self._version(entry, "deleted", latest.definition, command=command.id)
        elif latest.paused == (command.kind == "pause"):
            self._refuse(entry, "no-change", "")
        else:
            change = "paused" if command.kind == "pause" else "resumed"
            self._version(entry, change, latest.definition, command=command.id, paused=change == "paused")

    def _cancel(self, entry: Entry, command: Command) -> None:
        run = self.live.get(command.run)
        if run is None:
            self._refuse(entry, "not-active", "")
        elif run.state == "running":
            self._put(replace(run, recall="cancel:by command"))
        else:
            self._put(replace(run, state="cancelled", reason="by command", until_ms=-1, finished_ms=self.now))

    def _refuse(self, entry: Entry, error: str, detail: str) -> None:
        self._refused.append(
            Rejected(
                topic=entry.topic, partition=entry.partition, offset=entry.offset, error=error, detail=detail,
                key=entry.key or b"", term=self.term, leader_ms=self.now,
            )
        )  # fmt: skip

    def _version(self, entry: Entry, change: str, job: Job, *, command: str = "", paused: bool | None = None) -> None:
        before = self.versions[job.id][-1] if self.versions[job.id] else None
        effective = max(entry.append_ms, before.effective_ms if before else 0)
        held = before is not None and before.change != "deleted" and before.paused
        version = JobVersion(
            job=job.id, version=before.version + 1 if before else 1, change=change, effective_ms=effective,
            paused=held if paused is None else paused, definition=job, source_topic=entry.topic,
            source_partition=entry.partition, source_offset=entry.offset, source_ms=entry.append_ms, command=command,
            taken=sorted(due for due in self.recorded[job.id] if due >= effective), term=self.term, generation=1,
            leader_ms=self.now,
        )  # fmt: skip
        self.versions[job.id].append(version)
        self._made.append(version)
        for run in [run for run in self.live.values() if run.job.id == job.id and run.trigger == "schedule" and not run.begun]:
            if self._holding(job.id, run.due_ms).version <= run.job.version or run.reason == "recalled":
                continue
            if run.state != "running":
                self._put(waiting(run, "recalled"))
            elif run.ahead and self.now < run.due_ms and not run.recall:
                self._put(replace(run, recall=change))

    # -- due times -----------------------------------------------------------------------------------------------------

    def _holding(self, job: str, instant: int) -> JobVersion:
        return [version for version in self.versions[job] if version.effective_ms <= instant][-1]

    def _undecided(self, job: str, until_ms: int) -> list[tuple[int, JobVersion]]:
        found = []
        versions = self.versions[job]
        for place, version in enumerate(versions):
            end = versions[place + 1].effective_ms if place + 1 < len(versions) else FOREVER
            mine = [due for due, number in self.recorded[job].items() if number == version.version]
            low = max([version.effective_ms, *(due + 1 for due in mine)])
            for due in dues(version, low, min(end, until_ms)):
                if due not in version.taken:
                    found.append((due, version))
        return found

    def _due(self, job: str) -> None:
        found = self._undecided(job, self.now + 1)
        row: list[tuple[int, JobVersion, str]] = []
        for place, (due, version) in enumerate(found):
            later = [other for other in found[place + 1 :] if not other[1].paused]
            reason = self._passed(due, version, later)
            admitted = "" if reason else self._admission(version, due)
            if reason or admitted == "never":
                entry = (due, version, reason or "overlap")
                if row and (row[0][1:] != entry[1:]):
                    self._flush(row)
                row.append(entry)
                continue
            self._flush(row)
            late = start_ms(version, due) < self.now - version.definition.misfire_grace_ms
            run = self._created(version, due, "catch-up" if late else "schedule")
            self._put(self._started(run, version) if admitted == "now" else waiting(run, admitted))
        self._flush(row)

    def _passed(self, due: int, version: JobVersion, later: list[tuple[int, JobVersion]]) -> str:
        job = version.definition
        late = start_ms(version, due) < self.now - job.misfire_grace_ms
        if version.paused:
            return "paused"
        if late and due < self.now - job.catch_up_window_ms:
            return "catch-up-window"
        if not late or (job.misfire == "latest" and not later):
            return ""
        if job.misfire == "skip":
            return "misfire-skip"
        if job.misfire == "latest":
            return "later-due-time"
        return "catch-up-max" if sum(o[0] < self.now - job.misfire_grace_ms for o in later) >= job.catch_up_max else ""

    def _flush(self, row: list[tuple[int, JobVersion, str]]) -> None:
        if len(row) >= 3:
            first, last, version, reason = row[0][0], row[-1][0], row[0][1], row[0][2]
            self._others.append(
                Summary(
                    job=version.job, version=version.version, reason=reason, first_ms=first, last_ms=last, count=len(row),
                    previous_due_ms=self._previous(version.job, first), term=self.term, generation=1, leader_ms=self.now,
                )
            )  # fmt: skip
            self.recorded[version.job].update({due: version.version for due, _, _ in row})
        else:
            for due, version, reason in row:
                run = self._created(version, due, "schedule")
                self._put(replace(run, state="skipped", reason=reason, finished_ms=self.now))
        row.clear()

    def _ahead(self, job: str) -> None:
        latest = self.versions[job][-1] if self.versions[job] else None
        if latest is None or latest.change == "deleted" or latest.paused or not self._free():
            return
        found = self._undecided(job, self.now + latest.definition.dispatch_ahead_ms + 1)
        for due, version in found[:1]:
            if due > self.now and version is latest and start_ms(version, due) == due and self._admission(version, due) == "now":
                run = self._offered(self._created(version, due, "schedule"))
                self._put(run)

    def _created(self, version: JobVersion, due: int, trigger: str, command: str = "") -> Run:
        previous = -1 if command else self._previous(version.job, due)
        if not command:
            self.recorded[version.job][due] = version.version
        job = run_job(version)
        return Run(job=job, due_ms=due, command=command, trigger=trigger, created_ms=self.now, previous_due_ms=previous)

    def _previous(self, job: str, due: int) -> int:
        return max((other for other in self.recorded[job] if other < due), default=-1)

    def _admission(self, version: JobVersion, due: int, key: str = "") -> str:
        job = version.definition
        others = [run for other, run in self.live.items() if run.job.id == job.id and other != key]
        engaged = sum(run.state in ("dispatched", "running") or run.reason in COUNTS for run in others)
        behind = sum(run.state == "waiting" and run.reason in ("overlap", "limit") for run in others)
        limit = 1 if job.overlap == "skip" else job.max_concurrent or FOREVER
        if not behind and engaged < limit:
            return "now"
        if job.overlap == "allow":
            return "limit" if job.max_concurrent else "now"
        return "overlap" if due < self.now - job.misfire_grace_ms and job.misfire == "all" else "never"

    def _recalled(self) -> None:
        for key, run in sorted(self.live.items(), key=lambda each: each[1].due_ms):
            if run.state != "waiting" or run.reason != "recalled" or self.now < run.due_ms:
                continue
            if any(due < run.due_ms for due, _ in self._undecided(run.job.id, self.now + 1)):
                continue
            version = self._holding(run.job.id, run.due_ms)
            reason = "" if run.due_ms in dues(version, run.due_ms, run.due_ms + 1) else "superseded"
            reason = "deleted" if version.change == "deleted" else reason or ("paused" if version.paused else "")
            admitted = self._admission(version, run.due_ms, key)
            if reason or admitted == "never":
                self._put(replace(run, state="skipped", reason=reason or "overlap", finished_ms=self.now))
            else:
                again = replace(run, job=run_job(version), previous_due_ms=self._previous(run.job.id, run.due_ms))
                self._put(self._started(again, version) if admitted == "now" else waiting(again, admitted))

    # -- offers ------------------------------------------------------------------------------------------------------

    def _free(self) -> list[Worker]:
        return [worker for worker in self.world.workers if worker.stopped_ms < 0]

    def _started(self, run: Run, version: JobVersion) -> Run:
        start = start_ms(version, run.due_ms)
        return waiting(run, "jitter", start) if start > self.now else self._offered(run)

    def _offered(self, run: Run) -> Run:
        if not self._free():
            return waiting(run, "no-worker")
        self.seq += 1
        return offered(run, self.now, self.term, self.seq)

    def _timers(self) -> None:
        for run in list(self.live.values()):
            if run.state == "waiting" and run.reason in COUNTS and run.until_ms <= self.now and self._free():
                self._put(self._offered(run))

    def _wake(self) -> None:
        blocked = [run for run in self.live.values() if run.state == "waiting" and run.reason in ("overlap", "limit")]
        for run in sorted(blocked, key=lambda run: run.due_ms):
            job = self.versions[run.job.id][-1].definition
            others = [each for each in self.live.values() if each.job.id == run.job.id]
            engaged = sum(each.state in ("dispatched", "running") or each.reason in COUNTS for each in others)
            if engaged < (1 if job.overlap == "skip" else job.max_concurrent or FOREVER):
                self._put(self._offered(run))

    # -- writing -----------------------------------------------------------------------------------------------------

    def _put(self, run: Run) -> None:
        run = replace(run, term=self.term, generation=1, leader_ms=self.now)
        self.known.add(run.key)
        self._runs[run.key] = run
        if run.state in ENDED:
            self.live.pop(run.key, None)
        else:
            self.live[run.key] = run

    def _write(self) -> None:
        stamp = {"term": self.term, "generation": 1, "leader_ms": self.now}
        writing = self.world.writing
        for version in self._made:
            writing.append(VERSIONS, version)
        summaries = [other for other in self._others if isinstance(other, Summary)]
        decided: list[Run | Summary] = [*self._runs.values(), *summaries]
        ordered = sorted(decided, key=by_job_and_due)
        fences = [replace(other, **stamp) for other in self._others if isinstance(other, Fence)]  # type: ignore[arg-type]
        ledger = [*fences, *ordered, *map(self._done, fences)]
        if ledger or self._made or self._refused:
            for record in ledger:
                writing.append(RUNS, record)
            writing.append(RUNS, Positions(sequence=self.seq, **stamp))  # type: ignore[arg-type]
        for refused in self._refused:
            writing.append(REJECTED, refused, key=refused.key)
        runs = list(self._runs.values())
        for run in runs:
            whisper(writing, run)
        self._made, self._refused, self._others, self._runs = [], [], [], {}
        self.world.tell(runs)
