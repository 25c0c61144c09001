"""A small world for the planner: logs as lists, one leader, workers that say what a test lets them say. Time is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from random import Random
from typing import Any

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.core.inputs import Inputs, Problem, Read, Settings
from dueline.scheduler.core.plan import plan
from dueline.scheduler.core.ports import FenceResult
from dueline.scheduler.core.state import INDEXES, NUMBERS, TABLES, State
from dueline.schemas.base import NONE
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.job import Job, JobVersion, Misfire, Overlap
from dueline.schemas.ledger import Barrier, Fence, Position, Positions
from dueline.schemas.run import Run, Summary, run_key
from dueline.schemas.work import AttemptEvent, Dispatch, EventKind, Heartbeat, HeldClaim, Outcome, WorkerState

T0 = 1_800_000_000_000
"""2027-01-15T08:00:00Z: a whole hour."""

QUEUE, HANDLER = "default", "h"
LedgerRecord = Run | Summary | Fence | Positions | Barrier


def at(seconds: float) -> int:
    """An instant, in seconds after T0."""
    return T0 + int(seconds * 1000)


def every(text: str) -> str:
    """A schedule by interval."""
    return f'{{"every": "{text}"}}'


def job(id: str = "menu", **changes: Any) -> Job:
    """A job once a minute that is not offered ahead of time and never tried again, unless a test says so."""
    plain: dict[str, Any] = {"schedule": every("1m"), "handler": HANDLER, "dispatch_ahead_ms": 0, "max_retries": 0}
    return Job(id=id, **(plain | changes))


def worker(name: str = "w1", **changes: Any) -> Heartbeat:
    """A worker's heartbeat: its incarnation is `w1.0`."""
    plain: dict[str, Any] = {
        "incarnation": f"{name}.0",
        "worker": name,
        "queue": QUEUE,
        "home": 3,
        "state": WorkerState.RUNNING,
        "seq": 1,
        "slots": 4,
        "handlers": [HANDLER],
        "partitions": [0, 1],
        "transactional_ids": [f"{name}.0.claim", f"{name}.0.a", f"{name}.0.b"],
    }
    return Heartbeat(**(plain | changes))


def fleet(*workers: Heartbeat, queues: Mapping[str, int] | None = None) -> Fleet:
    """What the roster shows the planner."""
    return Fleet(workers={each.incarnation: each for each in workers}, queues=queues or {QUEUE: 8})


class World:
    """One namespace. `state` is the leader's; `versions` and `runs` are the ledger's two topics."""

    def __init__(self, *workers: Heartbeat, now: int = T0 + 1_000, **settings: Any) -> None:
        self.now = now
        self.settings = Settings(**settings)
        self.fleet = fleet(*workers) if workers else fleet(worker())
        self.versions: list[JobVersion] = []
        self.runs: list[LedgerRecord] = []
        self.jobs_log: list[Read[Job]] = []
        self.control_log: list[Read[Command]] = []
        self.attempts_log: list[Read[AttemptEvent]] = []
        self.decisions: list[Decision] = []
        self.dispatches: list[Dispatch] = []
        self.state = State()
        self.led_ms = now
        self.first = True
        self._claims = 0
        self.take_over()

    # -- what users and workers write ------------------------------------------------------------------------------------

    def publish(self, value: Job | str, *, when: int | None = None, problem: Problem | None = None) -> Read[Job]:
        """A definition, or by its id its tombstone."""
        key = value if isinstance(value, str) else value.id
        read = Read(
            topic="jobs",
            partition=0,
            offset=len(self.jobs_log),
            append_ms=self.now if when is None else when,
            key=key.encode(),
            raw=b"raw",
            value=value if isinstance(value, Job) and problem is None else None,
            problem=problem,
        )
        self.jobs_log.append(read)
        return read

    def send(self, kind: CommandKind, job: str = "menu", *, id: str = "", when: int | None = None, **more: Any) -> Read[Command]:
        """A command."""
        number = len(self.control_log)
        command = Command(id=id or f"c{number}", kind=kind, job="" if kind == CommandKind.CANCEL else job, **more)
        read = Read(
            topic="control",
            partition=0,
            offset=number,
            append_ms=self.now if when is None else when,
            key=b"",
            raw=b"raw",
            value=command,
        )
        self.control_log.append(read)
        return read

    def say(self, event: AttemptEvent) -> AttemptEvent:
        """An attempt event."""
        self.attempts_log.append(
            Read(
                topic="attempts",
                partition=0,
                offset=len(self.attempts_log),
                append_ms=self.now,
                key=event.run.encode(),
                raw=b"raw",
                value=event,
            )
        )
        return event

    def claim(self, offer: Dispatch | None = None, by: str = "w1", **changes: Any) -> AttemptEvent:
        """A worker claims an offer: the last one, unless a test names another."""
        offer = offer or self.dispatches[-1]
        self._claims += 1
        plain: dict[str, Any] = {
            "kind": EventKind.CLAIMED,
            "run": offer.run,
            "attempt": offer.attempt,
            "claim": self._claims,
            "incarnation": f"{by}.0",
            "worker": by,
            "queue": QUEUE,
            "home": 3,
            "dispatch_term": offer.term,
            "dispatch_seq": offer.seq,
            "steps_from": 100 * self._claims,
        }
        return self.say(AttemptEvent(**(plain | changes)))

    def decline(self, claim: AttemptEvent, reason: str = "no slot") -> AttemptEvent:
        """The worker gives it back."""
        return self.say(replace(claim, kind=EventKind.DECLINED, reason=reason))

    def finish(self, claim: AttemptEvent, outcome: Outcome = Outcome.SUCCESS, **changes: Any) -> AttemptEvent:
        """The attempt ended."""
        return self.say(replace(claim, kind=EventKind.FINISHED, outcome=outcome, started_ms=self.now - 5, **changes))

    # -- rounds ------------------------------------------------------------------------------------------------------------

    def inputs(self, **changes: Any) -> Inputs:
        """Everything that the ledger's positions leave to be read, as of now."""
        plain: dict[str, Any] = {
            "jobs": self.jobs_log[self._read("jobs") :],
            "commands": self.control_log[self._read("control") :],
            "events": self.attempts_log[self._read("attempts") :],
            "positions": [
                Position(topic=topic, topic_id=f"{topic}-id", partition=0, offset=len(log))
                for topic, log in (("jobs", self.jobs_log), ("control", self.control_log), ("attempts", self.attempts_log))
            ],
            "steps_ends": {3: 10_000 + len(self.attempts_log)},
            "fleet": self.fleet,
            "jobs_topic": "jobs",
            "led_ms": self.led_ms,
            "first": self.first,
        }
        return Inputs(**(plain | changes))

    def plan(self, when: int | None = None, **changes: Any) -> Decision:
        """What the leader would decide; nothing is written."""
        self.now = self.now if when is None else when
        return plan(self.state, self.inputs(**changes), self.settings, self.now)

    def round(self, when: int | None = None, **changes: Any) -> Decision:
        """One round: decide, write all of it, apply."""
        decision = self.plan(when, **changes)
        self.write(decision)
        for record in (*decision.versions, *decision.ledger):
            assert self.state.apply(record)
        self.first = False
        self.dispatches += decision.dispatches
        return decision

    def rounds(self, when: int | None = None, **changes: Any) -> list[Decision]:
        """Rounds until nothing is left of a slice."""
        made = [self.round(when, **changes)]
        while made[-1].more:
            made.append(self.round(when, **changes))
        return made

    def write(self, decision: Decision, keep: int | None = None) -> None:
        """Write a decision's ledger records, or as a torn transaction leaves them only the first `keep`."""
        self.decisions.append(decision)
        for record in [*decision.versions, *decision.ledger][:keep]:
            if isinstance(record, JobVersion):
                self.versions.append(record)
            else:
                self.runs.append(record)

    def take_over(self, rng: Random | None = None) -> None:
        """A new leader: a barrier in the ledger, then everything from what is read back."""
        self.runs.append(Barrier(id=f"b{len(self.runs)}", process="test", generation=1))
        self.state = fold(self.versions, self.runs, rng)
        self.led_ms, self.first = max(self.now, self.state.leader_ms), True

    def crash(self, when: int | None = None, *, keep: int, **changes: Any) -> Decision:
        """A leader dies in its transaction, of which the first `keep` ledger records stand; another takes over."""
        decision = self.plan(when, **changes)
        self.write(decision, keep)
        self.take_over()
        return decision

    def fork(self, **settings: Any) -> World:
        """A world that goes on from here on its own."""
        twin = copy(self)
        twin.settings = replace(self.settings, **settings)
        twin.state = self.state.copy()
        for name in ("versions", "runs", "jobs_log", "control_log", "attempts_log", "decisions", "dispatches"):
            setattr(twin, name, list(getattr(self, name)))
        return twin

    # -- shortcuts -----------------------------------------------------------------------------------------------------------

    def started(self, key: str, by: str = "w1", **changes: Any) -> AttemptEvent:
        """Claim the last offer of this run and let it be granted."""
        offer = next(each for each in reversed(self.dispatches) if each.run == key)
        claim = self.claim(offer, by, **changes)
        self.round()
        return claim

    def record(self, key: str) -> Run:
        """The last record of a run."""
        return next(each for each in reversed(self.runs) if isinstance(each, Run) and each.key == key)

    def due(self, seconds: float, job: str = "menu") -> Run:
        """The last record of a job's run due at this second after T0."""
        return self.record(run_key(job, at(seconds)))

    def fence(self, heartbeat: Heartbeat, *, steps_end: int = 900) -> None:
        """A worker fell silent: intent in one round, fenced and read out in the next."""
        self.round(dead=[heartbeat])
        self.round(fenced=[FenceResult(incarnation=heartbeat.incarnation, attempts_end=0, steps_end=steps_end)])

    def _read(self, topic: str) -> int:
        position = self.state.positions.get((topic, 0))
        return position.offset if position is not None else 0


def busy() -> World:
    """A world in which one round decides versions, runs of several jobs, summaries, refusals and commands at once."""
    world = World(worker(slots=3))
    world.publish(job("a", misfire=Misfire.ALL, overlap=Overlap.ALLOW))
    world.publish(job("b", misfire_grace_ms=1_000))
    world.publish(job("c", schedule=every("20s"), misfire=Misfire.SKIP))
    world.rounds()
    world.publish(job("a", schedule=every("30s"), misfire=Misfire.ALL, overlap=Overlap.ALLOW), when=at(130))
    world.send(CommandKind.PAUSE, "c", when=at(150))
    world.send(CommandKind.TRIGGER, "b", when=at(160))
    world.send(CommandKind.RESUME, "nobody", when=at(170))
    world.now = at(330)
    return world


def holding(heartbeat: Heartbeat, *claims: tuple[AttemptEvent, str]) -> Heartbeat:
    """The heartbeat of a worker that names these claims, each with its state."""
    held = [HeldClaim(run=each.run, attempt=each.attempt, claim=each.claim, state=state) for each, state in claims]
    return replace(heartbeat, claims=held)


def fold(versions: list[JobVersion], runs: list[LedgerRecord], rng: Random | None = None) -> State:
    """A state from the two topics of the ledger, in an order between them that is chance (or versions first)."""
    state, left, right = State(), list(versions), list(runs)
    offset = 0
    while left or right:
        if left and (not right or rng is None or rng.random() < len(left) / (len(left) + len(right))):
            assert state.apply(left.pop(0))
            continue
        record = right.pop(0)
        if isinstance(record, Barrier):
            state.apply_barrier(offset)
        else:
            assert state.apply(record)
        offset += 1
    return state


def snapshot(state: State) -> dict[str, Any]:
    """All that a state says, to compare two of them."""
    state.settle()
    tables = {name: dict(getattr(state, name).items()) for name in TABLES}
    indexes = {name: list(getattr(state, name).between()) for name in INDEXES}
    return tables | indexes | {name: getattr(state, name) for name in NUMBERS if name != "sequence"}


__all__ = ["NONE", "T0", "World", "at", "busy", "every", "fleet", "fold", "holding", "job", "snapshot", "worker"]
