"""Worlds for the tests of the audit: job versions, and the ledger and attempts that a leader without faults would write.

The writer here is not the product's leader: it walks the due times of each span one by one and writes what each needs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dueline.scheduler.audit.auditor import Evidence, Window, audit
from dueline.scheduler.audit.expected import Compile
from dueline.scheduler.audit.findings import Audit
from dueline.scheduler.audit.readmodel import Attempts, Histories, Ledger
from dueline.scheduler.core.ports import Received
from dueline.scheduler.core.schedule import Schedule, compile_schedule
from dueline.schemas.base import NONE
from dueline.schemas.codec import Record, encode
from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.run import Run, RunJob, RunState, Summary, Trigger
from dueline.schemas.work import AttemptEvent, EventKind, Outcome

EPOCH = 1_796_000_400_000  # a whole hour
MINUTE = 60_000
NAMESPACE = "test"
JOB = "menu"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A record to be written to a topic under a key."""

    topic: str
    key: str
    record: Record
    append_ms: int
    partition: int = 0


@dataclass(kw_only=True, repr=False)
class World:
    """What stands in the log."""

    versions: list[JobVersion] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    now_ms: int = EPOCH + 24 * 60 * MINUTE
    rules: Compile = field(default_factory=lambda: compile_version)

    def audit(self, **changes: object) -> Audit:
        """The audit of the whole world."""
        window = replace(Window(from_ms=EPOCH - MINUTE, to_ms=self.now_ms, now_ms=self.now_ms), **changes)  # type: ignore[arg-type]
        histories, ledger, attempts = Histories(), Ledger(), Attempts()
        attempts.extent.starts[0] = 0
        models: dict[str, Histories | Ledger | Attempts] = {"versions": histories, "runs": ledger, "attempts": attempts}
        written = [Entry(topic="versions", key=v.key, record=v, append_ms=v.effective_ms) for v in self.versions]
        for offset, entry in enumerate([*written, *self.entries]):
            models[entry.topic].add(received(entry, offset))
        evidence = Evidence(histories=histories, ledger=ledger, attempts=attempts)
        return audit(evidence, window, self.rules, namespace=NAMESPACE)

    def runs(self) -> list[Entry]:
        """The run records as they ended."""
        last: dict[str, Entry] = {}
        for entry in self.entries:
            if isinstance(entry.record, Run):
                last[entry.key] = entry
        return list(last.values())

    def summaries(self) -> list[Entry]:
        """The summary records."""
        return [entry for entry in self.entries if isinstance(entry.record, Summary)]

    def without(self, key: str) -> World:
        """The world without any record under the key."""
        return replace(self, entries=[entry for entry in self.entries if entry.key != key])

    def plus(self, *entries: Entry) -> World:
        """The world with more records behind the others."""
        return replace(self, entries=[*self.entries, *entries])

    def changed(self, key: str, **fields: object) -> World:
        """The world with fields of every ledger record under the key changed; the key stays."""
        entries = [
            replace(entry, record=replace(entry.record, **fields))  # type: ignore[arg-type]
            if entry.key == key and entry.topic == "runs"
            else entry
            for entry in self.entries
        ]
        return replace(self, entries=entries)


def received(entry: Entry, offset: int) -> Received:
    return Received(
        topic=f"{NAMESPACE}.{entry.topic}",
        partition=entry.partition,
        offset=offset,
        append_ms=entry.append_ms,
        key=entry.key.encode(),
        value=encode(entry.record),
    )


def compile_version(version: JobVersion) -> Schedule:
    return compile_schedule(version.definition.schedule, job_id=version.job)


def make_version(
    number: int,
    effective_ms: int,
    schedule: str = '"*/5 * * * *"',
    *,
    change: str = Change.DEFINED,
    paused: bool = False,
    taken: Iterable[int] = (),
    job: str = JOB,
) -> JobVersion:
    return JobVersion(
        job=job,
        version=number,
        change=change,
        effective_ms=effective_ms,
        paused=paused,
        definition=Job(id=job, schedule=schedule, handler="send"),
        source_topic=f"{NAMESPACE}.jobs",
        source_partition=0,
        source_offset=number,
        source_ms=effective_ms,
        taken=sorted(taken),
    )


def make_run(version: JobVersion, due_ms: int, previous_ms: int = NONE) -> Run:
    """A run that its leader has just made."""
    job = version.definition
    constants = RunJob(id=job.id, version=version.version, queue=job.queue, handler=job.handler, payload=job.payload)
    return Run(job=constants, due_ms=due_ms, previous_due_ms=previous_ms, trigger=Trigger.SCHEDULE, created_ms=due_ms)


@dataclass
class Writer:
    """Writes what happens to due times, in order."""

    world: World
    previous_ms: int = NONE
    claims: int = 0

    def run(self, version: JobVersion, due_ms: int, how: str, *, ahead: bool = False, delay_ms: int = 100) -> None:
        """`how`: succeeded | retried | failed | skipped | cancelled | running."""
        run = make_run(version, due_ms, self.previous_ms)
        self.previous_ms = due_ms
        if how in ("skipped", "cancelled"):
            self._put(replace(run, state=how, reason="overlap" if how == "skipped" else "by hand"), due_ms + delay_ms)
            return
        attempt = self._attempt(run, 1, due_ms + delay_ms, ahead=ahead)
        if how == "running":
            return
        if how == "retried":
            self._finish(attempt, Outcome.FAILURE, due_ms + delay_ms, final=False)
            attempt = self._attempt(replace(attempt, failures=1), 2, due_ms + delay_ms + 5_000, ahead=False)
        outcome = Outcome.FAILURE if how == "failed" else Outcome.SUCCESS
        self._finish(attempt, outcome, due_ms + delay_ms + 1_000 * attempt.attempt, final=True)

    def skip(self, version: JobVersion, dues: list[int], reason: str, at_ms: int) -> None:
        """Due times in a row passed over: one record each, or from three on a summary."""
        if len(dues) >= 3:
            summary = Summary(
                job=version.job, version=version.version, reason=reason,
                first_ms=dues[0], last_ms=dues[-1], count=len(dues), previous_due_ms=self.previous_ms,
            )  # fmt: skip
            self.world.entries.append(Entry(topic="runs", key=summary.key, record=summary, append_ms=at_ms))
            self.previous_ms = dues[-1]
            return
        for due in dues:
            run = replace(make_run(version, due, self.previous_ms), state=RunState.SKIPPED, reason=reason)
            self.previous_ms = due
            self._put(run, max(at_ms, due))

    def _attempt(self, run: Run, number: int, at_ms: int, *, ahead: bool) -> Run:
        self.claims += 1
        granted = replace(
            run, state=RunState.RUNNING, attempt=number, ahead=ahead, claim=self.claims, incarnation="w.1", worker="w",
            home=0, begun=False,
        )  # fmt: skip
        append = run.due_ms - 3_000 if ahead else at_ms
        offered = replace(run, state=RunState.DISPATCHED, attempt=number, ahead=ahead)
        self._put(offered, append)
        self._put(granted, append)
        return granted

    def _finish(self, run: Run, outcome: Outcome, started_ms: int, *, final: bool) -> None:
        event = AttemptEvent(
            kind=EventKind.FINISHED, run=run.key, attempt=run.attempt, claim=run.claim, incarnation=run.incarnation,
            worker=run.worker, queue=run.job.queue, home=0, outcome=outcome, started_ms=started_ms,
            finished_ms=started_ms + 500,
        )  # fmt: skip
        entry = Entry(topic="attempts", key=run.key, record=event, append_ms=started_ms + 500)
        self.world.entries.append(entry)
        state = RunState.SUCCEEDED if outcome == Outcome.SUCCESS else RunState.FAILED
        if final:
            ended = replace(run, state=state, outcome=outcome, started_ms=started_ms, finished_ms=started_ms + 500)
            self._put(ended, started_ms + 510)
        else:
            self._put(replace(run, state=RunState.WAITING, reason="retry", failures=1), started_ms + 510)

    def _put(self, run: Run, append_ms: int) -> None:
        self.world.entries.append(Entry(topic="runs", key=run.key, record=run, append_ms=append_ms))


SCHEDULES = ('"*/5 * * * *"', '"*/15 * * * *"', '{"every":"7m"}', '"0 * * * *"', '"30 2 * * *"')


def random_world(seed: int, *, versions: int, hours: int) -> World:
    """Random versions of one job over some hours, and a ledger in which nothing is wrong."""
    rng = random.Random(seed)
    world = World(now_ms=EPOCH + hours * 60 * MINUTE + 1)
    world.versions = _random_versions(rng, versions, hours)
    writer = Writer(world)
    owned = _owned_dues(world.versions, world.now_ms)
    position = 0
    while position < len(owned):
        due, version, taken = owned[position]
        row = _row(owned, position)
        if not taken and version.paused:
            writer.skip(version, row, "paused", row[-1])
            position += len(row)
        elif not taken and len(row) >= 3 and rng.random() < 0.25:
            count = rng.randint(1, len(row))
            writer.skip(version, row[:count], "later-due-time", row[count - 1] + 5)
            position += count
        else:
            how = rng.choice(["succeeded"] * 5 + ["retried", "failed", "skipped", "cancelled"])
            writer.run(version, due, how, ahead=taken or rng.random() < 0.5, delay_ms=rng.choice([0, 20, 900, 90_000]))
            position += 1
    return world


def _random_versions(rng: random.Random, count: int, hours: int) -> list[JobVersion]:
    instants = sorted(EPOCH + rng.randrange(hours * 3_600) * 1_000 + rng.choice([0, 0, 250]) for _ in range(count))
    made = [make_version(1, EPOCH, rng.choice(SCHEDULES))]
    for number, instant in enumerate(instants, 2):
        before = made[-1]
        deleted = before.change == Change.DELETED
        change = Change.DEFINED if deleted else rng.choice([Change.DEFINED, Change.PAUSED, Change.RESUMED, Change.DELETED])
        if (change == Change.PAUSED and before.paused) or (change == Change.RESUMED and not before.paused):
            change = Change.DEFINED
        schedule = rng.choice(SCHEDULES) if change == Change.DEFINED else before.definition.schedule
        paused = change == Change.PAUSED or (before.paused and change == Change.DEFINED and not deleted)
        taken = set()
        if not deleted and not before.paused and rng.random() < 0.5:
            coming = compile_version(before).next_after(instant - 1)
            # What a version lists as taken was granted: offered ahead, so at most a minute before its due time.
            if coming is not None and coming <= instant + MINUTE and coming not in before.taken:
                taken = {coming}
        taken |= {due for due in before.taken if due >= instant}
        made.append(make_version(number, instant, schedule, change=change, paused=paused, taken=taken))
    return made


def _owned_dues(versions: list[JobVersion], now_ms: int) -> list[tuple[int, JobVersion, bool]]:
    """(due time, version it belongs to, taken) of every due time up to now, found by going through each second's due."""
    owned: dict[int, tuple[JobVersion, bool]] = {}
    for place, version in enumerate(versions):
        if place:
            for due in version.taken:
                owned.setdefault(due, (versions[place - 1], True))
    for place, version in enumerate(versions):
        end = versions[place + 1].effective_ms if place + 1 < len(versions) else now_ms
        if version.change != Change.DELETED:
            for due in compile_version(version).between(version.effective_ms, min(end, now_ms)):
                owned.setdefault(due, (version, False))
    return [(due, *owned[due]) for due in sorted(owned) if due < now_ms]


def _row(owned: list[tuple[int, JobVersion, bool]], position: int) -> list[int]:
    """The due times from this position on that belong to the same version, none taken."""
    version = owned[position][1]
    row = []
    for due, other, taken in owned[position:]:
        if other is not version or taken:
            break
        row.append(due)
    return row
