"""Random histories of one namespace: users, workers, a clock that jumps forward, leaders that die in their transactions.

A history is a list of steps, each a small tuple of numbers, so that hypothesis can make a failing one short. Workers say
what they like, also what makes no sense: the planner must keep its promises whatever it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from dueline.scheduler.core.ports import FenceResult
from dueline.schemas.command import CommandKind
from dueline.schemas.job import Misfire, Overlap
from dueline.schemas.run import Run, RunState, Trigger
from dueline.schemas.work import AttemptEvent, Dispatch, EventKind, Heartbeat, Outcome, SignalKind
from tests.unit.core.world import World, every, fold, holding, job, snapshot, worker

JOBS = ("a", "b")
COMMANDS = (CommandKind.TRIGGER, CommandKind.PAUSE, CommandKind.RESUME, CommandKind.DELETE, CommandKind.CANCEL)
OUTCOMES = tuple(Outcome)
TIMES_S = (0.3, 1, 4, 9, 10, 31, 120, 900)

Step = tuple[str, int, int]


@dataclass(frozen=True, kw_only=True)
class History:
    """What happens, and the seed of what chance decides on the way."""

    steps: list[Step]
    seed: int
    max_records: int


def histories(steps: int = 30) -> st.SearchStrategy[History]:
    """Histories of up to this many steps."""
    kinds = st.sampled_from(
        ["time"] * 5 + ["publish"] * 2 + ["send"] * 2 + ["claim"] * 3 + ["finish"] * 2 + ["work"] * 5
        + ["hold"] * 2 + ["decline", "fence", "fence", "crash", "crash", "crash", "beat", "tombstone", "again", "late"]
    )  # fmt: skip
    step = st.tuples(kinds, st.integers(0, 200), st.integers(0, 200))
    return st.builds(
        History,
        steps=st.lists(step, min_size=steps // 2, max_size=steps),
        seed=st.integers(0, 1 << 16),
        max_records=st.sampled_from([1, 2, 5, 5_000]),
    )


def job_of(number: int, variety: int) -> Any:
    """One of many definitions."""
    rng = Random(variety)
    return job(
        JOBS[number % len(JOBS)],
        schedule=rng.choice([*map(every, ("10s", "10s", "15s", "1m", "7s")), '{"every": "10s", "jitter": "8s"}']),
        misfire=rng.choice(list(Misfire)),
        misfire_grace_ms=rng.choice([0, 5_000, 60_000]),
        catch_up_window_ms=rng.choice([20_000, 120_000, 86_400_000]),
        catch_up_max=rng.choice([2, 5, 1_000, 1_000]),
        catch_up_every_ms=rng.choice([0, 0, 4_000]),
        overlap=rng.choice([Overlap.SKIP, Overlap.SKIP, Overlap.ALLOW]),
        max_concurrent=rng.choice([0, 1, 2]),
        max_retries=rng.choice([0, 1]),
        retry_backoff_ms=2_000,
        max_worker_losses=rng.choice([0, 1, 5]),
        dispatch_ahead_ms=rng.choice([0, 5_000, 10_000, 30_000]),
    )


class Player:
    """Plays a history on a World."""

    kind: type[World] = World

    def __init__(self, history: History) -> None:
        self.rng = Random(history.seed)
        self.fleet = [worker("w1", partitions=[0, 1], home=1), worker("w2", partitions=[2, 3], home=2, slots=2)]
        self.world = self.kind(*self.fleet, max_records=history.max_records, offer_timeout_ms=5_000)
        self.claims: list[AttemptEvent] = []
        self.lives = 0
        self.steps = history.steps

    def play(self) -> World:
        """The whole history, of jobs that are there from the start, then rounds until nothing is left to decide."""
        for number in range(len(JOBS)):
            self._publish(number, self.rng.randrange(200))
        for kind, x, y in self.steps:
            getattr(self, f"_{kind}")(x, y)
            if kind != "crash":
                self._rounds()
        self._rounds()
        return self.world

    # -- steps ---------------------------------------------------------------------------------------------------------------

    def _time(self, x: int, y: int) -> None:
        self.world.now += int(TIMES_S[x % len(TIMES_S)] * 1000) + y

    def _publish(self, x: int, y: int) -> None:
        self.world.publish(job_of(x, y))

    def _late(self, x: int, y: int) -> None:
        """A definition or command that the leader reads some time after it was appended."""
        when = self.world.now
        self._time(x, 0)
        if y % 2:
            self.world.publish(job_of(x, y), when=self._not_before("jobs", when))
        else:
            kind = COMMANDS[y // 2 % 4]
            self.world.send(kind, JOBS[x % len(JOBS)], when=self._not_before("control", when))

    def _tombstone(self, x: int, _: int) -> None:
        self.world.publish(JOBS[x % len(JOBS)])

    def _send(self, x: int, y: int) -> None:
        kind = COMMANDS[x % len(COMMANDS)]
        run = ""
        if kind == CommandKind.CANCEL:
            runs = [record.key for record in self.world.runs if isinstance(record, Run)]
            run = runs[-1 - y % min(len(runs), 3)] if runs else "a@nothing"
        self.world.send(kind, JOBS[y % len(JOBS)], run=run)

    def _claim(self, x: int, y: int) -> None:
        if self.world.dispatches:
            recent = self.world.dispatches[-3:] if y % 4 else self.world.dispatches
            offer: Dispatch = recent[x % len(recent)]
            self.claims.append(self.world.claim(offer, by=f"w{1 + y % 2}", incarnation=self.fleet[y % 2].incarnation))

    def _finish(self, x: int, y: int) -> None:
        if self.claims:
            claim = self.claims[-1 - x % min(len(self.claims), 3)]
            outcome = OUTCOMES[y % len(OUTCOMES)]
            self.world.finish(claim, outcome, until_ms=self.world.now + 4_000 if outcome == Outcome.SNOOZE else -1)

    def _work(self, x: int, y: int) -> None:
        """A worker does what it is asked: claims the latest offer, and soon after ends it, mostly well."""
        if self.world.dispatches:
            self._claim(len(self.world.dispatches[-3:]) - 1, y * 4 + 1)
            self._rounds()
            self._time(x % 3, 0)
            self._finish(0, y if y % 3 == 0 else 0)

    def _hold(self, x: int, y: int) -> None:
        """A run is granted ahead of its due time; then, as may be, something else takes hold before that comes."""
        following = self.world.state.dues.get(JOBS[x % len(JOBS)])
        if following is not None and following.due_ms - 3_000 > self.world.now:
            self.world.now = following.due_ms - 3_000
            self._rounds()
            self._claim(len(self.world.dispatches[-3:]) - 1, y * 4 + 1)
            self._rounds()
            self.world.now += x
            if y % 3 == 0:
                self._publish(x, y)
            elif y % 3 == 1:
                self._send(y % 5, x)

    def _decline(self, x: int, y: int) -> None:
        if self.claims:
            self.world.decline(self.claims[x % len(self.claims)], reason=("no slot", "unknown claim", "recalled")[y % 3])

    def _again(self, x: int, _: int) -> None:
        """An event is read a second time."""
        if self.world.attempts_log:
            read = self.world.attempts_log[x % len(self.world.attempts_log)]
            if read.value is not None:
                self.world.say(read.value)

    def _beat(self, x: int, y: int) -> None:
        named = [(claim, "requested" if y % 2 else "running") for claim in self.claims if claim.incarnation == self._beating(x)]
        self.world.rounds(heartbeats=[holding(self.fleet[x % 2], *named)])

    def _fence(self, x: int, y: int) -> None:
        """A worker dies; its successor comes back as a new incarnation."""
        dead = self.fleet[x % 2]
        self.world.rounds(dead=[dead])
        fenced = FenceResult(incarnation=dead.incarnation, attempts_end=0, steps_end=5_000)
        if y % 2:
            self._tear(y, fenced=[fenced])
        self.world.rounds(fenced=[fenced])
        self.lives += 1
        self.fleet[x % 2] = replace(dead, incarnation=f"{dead.worker}.{self.lives}")
        self._show_fleet()

    def _crash(self, x: int, y: int) -> None:
        """A leader dies in its transaction, with due times, versions or commands in it."""
        if x % 3 == 0:
            self._publish(x, y)
        elif x % 3 == 1:
            self._send(y, x)
        if y % 2:
            self._time(x, y)
        self._tear(x + y)

    def _tear(self, keep: int, **inputs: Any) -> None:
        """A round of which only a prefix stands, then a new leader that reads the two topics back in any order."""
        decision = self.world.plan(**inputs)
        size = len(decision.versions) + len(decision.ledger)
        self.world.write(decision, keep=keep % (size + 1))
        self.world.take_over(self.rng)

    # -- parts ---------------------------------------------------------------------------------------------------------------

    def _rounds(self) -> None:
        for decision in self.world.rounds():
            for signal in decision.signals:
                if signal.kind == SignalKind.RECALL and self.rng.random() < 0.5:
                    self._give_back(signal.incarnation, signal.claim)
        self._check_overlap()
        assert forgotten(self.world) == [], "not asked back"

    def _give_back(self, incarnation: str, number: int) -> None:
        for claim in self.claims:
            if (claim.incarnation, claim.claim) == (incarnation, number):
                self.world.say(replace(claim, kind=EventKind.DECLINED, reason="recalled"))

    def _check_overlap(self) -> None:
        for name, state in self.world.state.jobs.items():
            if all(span.job.overlap == Overlap.SKIP for span in state.spans):
                assert (self.world.state.engaged.get(name) or 0) <= 1, f"{name}: two runs at once"

    def _not_before(self, topic: str, when: int) -> int:
        log: list[Any] = self.world.jobs_log if topic == "jobs" else self.world.control_log
        return max(when, log[-1].append_ms if log else 0)

    def _beating(self, x: int) -> str:
        return self.fleet[x % 2].incarnation

    def _show_fleet(self) -> None:
        beats: dict[str, Heartbeat] = {each.incarnation: each for each in self.fleet}
        self.world.fleet = replace(self.world.fleet, workers=beats)


def replayed(world: World, seed: int) -> bool:
    """Whether the ledger, folded in any order between its topics, gives the leader's own state."""
    return snapshot(fold(world.versions, world.runs, Random(seed))) == snapshot(world.state)


def stuck(world: World) -> list[str]:
    """Runs that nothing will move: each must stand in an index that a worker, a timer or another run's end serves."""
    state = world.state
    moved = {entry[-1] for index in (state.ready, state.timers, state.recalled, state.offered, state.holding, state.blocked,
                                state.paced)
             for entry in index.between()}  # fmt: skip
    found = [key for key, _ in state.runs.items() if key not in moved]
    found += [f"{entry[0]}: may go on, was not woken" for entry in state.wakeable.between()]
    holders = {str(entry[0]) for entry in state.holding.between()}
    found += [f"held by {name}, whose fence is done" for name in holders if _done(world, name)]
    return found


def forgotten(world: World) -> list[str]:
    """Runs of a version that does not hold at their due time any more, which have not begun and nobody asked back."""
    return [key for key, run in world.state.runs.items() if _forgotten(world, run)]


def _forgotten(world: World, run: Run) -> bool:
    job = world.state.jobs.get(run.job.id)
    span = job.at(run.due_ms) if job is not None else None
    if span is None or span.version <= run.job.version or run.trigger != Trigger.SCHEDULE or run.begun:
        return False
    if run.state == RunState.RUNNING:
        return run.ahead and world.now < run.due_ms and not run.recall
    return run.reason != "recalled"


def _done(world: World, incarnation: str) -> bool:
    fence = world.state.fences.get(incarnation)
    return fence is not None and fence.phase == "done"


__all__ = ["History", "Player", "histories", "replayed", "stuck"]
