"""A whole history made by hand: users, an honest leader, workers, and faults, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from dueline.schemas.run import Run
from proof.history.acts import Bounds, Conduct, Effect, Fault, Life, Noted, Outcome, Published, Role
from proof.history.history import History
from tests.unit.proof.checker.crew import Worker
from tests.unit.proof.checker.honest import CONTROL, JOBS, Leader
from tests.unit.proof.checker.log import PREFIX, Writing
from tests.unit.proof.checker.whispers import beat

START_MS = 1_796_000_000_000
STEP_MS = 20
POSTS = "posts"
BOUNDS = Bounds(lateness_ms=2_000, skew_ms=100, worker_timeout_ms=1_500, session_ms=1_000)
CONDUCTS = {
    "tick": Conduct(steps=("send",), result="null", takes_ms=2_000),
    "walk": Conduct(steps=tuple(f"item/{number}" for number in range(5)), result="null"),
    "post": Conduct(steps=("write", "post"), produces=POSTS, produced="posted"),
    "flop": Conduct(steps=("try",), fails=True),
    "ping": Conduct(),
}

Act = Callable[["World"], None]


class World:
    """`at(seconds, act)` plans what happens; `history(seconds)` lets it happen."""

    timeout_ms = BOUNDS.worker_timeout_ms

    def __init__(self, seed: int = 0, *, pace_ms: int = 60, workers: int = 2) -> None:
        self.writing = Writing(seed)
        self.writing.now = START_MS
        self.conducts, self.pace_ms = CONDUCTS, pace_ms
        self.effects: list[Effect] = []
        self.faults: list[Fault] = []
        self.lives: list[Life] = []
        self.published: list[Published] = []
        self.leader = Leader(self)
        self.doubt: bool | None = None
        self.leading: int = -1  # number of the scheduler that leads; -1: nobody
        self.workers = [Worker(f"w{number}", number) for number in range(workers)]
        for worker in self.workers:
            beat(self.writing, worker.name, worker.incarnation, worker.home, list(CONDUCTS))
        self._plan: list[tuple[int, int, Act]] = []
        self._schedulers = 0
        self.lives += [_life(worker.name, Role.WORKER, START_MS) for worker in self.workers]
        self.lives.append(_life("b1", Role.BROKER, START_MS))

    def at(self, seconds: float, act: Act) -> World:
        self._plan.append((START_MS + round(seconds * 1000), len(self._plan), act))
        return self

    def history(self, seconds: float, *, settle: float = 6.0) -> History:
        """Until so many seconds have passed, and `settle` more in which what is due by then can end."""
        judged = START_MS + round(seconds * 1000)
        if not any(each[2] is lead for each in self._plan):
            self.at(0, lead)
        plan = sorted(self._plan, key=lambda each: each[:2])
        while self.writing.now < judged + settle * 1000:
            while plan and plan[0][0] <= self.writing.now:
                plan.pop(0)[2](self)
            for worker in self.workers:
                worker.act(self)
            if self.leading >= 0:
                self.leader.round()
            self.writing.now += STEP_MS
        noted = Noted(
            published=tuple(self.published), effects=tuple(self.effects), faults=tuple(self.faults), lives=tuple(self.lives),
            conducts=self.conducts,
        )  # fmt: skip
        log = {place: tuple(entries) for place, entries in self.writing.log.items() if entries}
        return History(
            title="made by hand", seed=0, prefix=PREFIX, began_ms=START_MS, judged_ms=judged, log=log, noted=noted, bounds=BOUNDS
        )

    def tell(self, runs: list[Run]) -> None:
        """What the leader's transaction says to workers."""
        for run in runs:
            free = [worker for worker in self.workers if worker.stopped_ms < 0]
            if run.state == "dispatched" and free:
                self.writing.random.choice(free).take(self, run)
            elif run.state == "running":
                for worker in self.workers:
                    work = worker.works.get(run.key)
                    if work is not None and worker.incarnation == run.incarnation and work.claim == run.claim:
                        work.granted, work.recall = True, run.recall

    def send(self, topic: str, key: str, value: bytes | None) -> None:
        """Publish. `doubt`: the answer is lost; then it lands or does not."""
        outcome, lands = (Outcome.ACKNOWLEDGED, True) if self.doubt is None else (Outcome.UNKNOWN, self.doubt)
        offset = self.writing.append(topic, value, key=key.encode()).offset if lands else -1
        now = self.writing.now
        self.published.append(
            Published(
                topic=topic, key=key.encode(), value=value, sent_ms=now, answered_ms=now + 5, outcome=outcome,
                offset=offset if outcome == Outcome.ACKNOWLEDGED else -1,
            )
        )  # fmt: skip


# --- acts -------------------------------------------------------------------------------------------------------------


def job(name: str, every: str = "2s", handler: str = "tick", *, schedule: object = None, **fields: object) -> Act:
    """Publish a definition."""
    return _send(JOBS, name, {"id": name, "schedule": schedule or {"every": every}, "handler": handler, **fields})


def _send(topic: str, key: str, value: object) -> Act:
    data = json.dumps(value).encode()
    return lambda world: world.send(topic, key, data)


def delete(name: str) -> Act:
    return lambda world: world.send(JOBS, name, None)


def command(kind: str, id: str, *, job: str = "", run: str = "") -> Act:
    fields = {"job": job} if job else {"run": run}
    return _send(CONTROL, id, {"id": id, "kind": kind, **fields})


def in_doubt(act: Act, *, lands: bool) -> Act:
    """The same publication, but its answer was lost."""

    def send(world: World) -> None:
        world.doubt = lands
        act(world)
        world.doubt = None

    return send


def lead(world: World) -> None:
    """A scheduler starts, and leads."""
    world._schedulers += 1
    world.leading = world._schedulers
    world.lives.append(_life(f"s{world.leading}", Role.SCHEDULER, world.writing.now, pid=world.leading))
    world.leader.take_over(str(world.leading))


def kill_leader(world: World) -> None:
    """Nobody leads, and no scheduler lives, until another one starts."""
    now = world.writing.now
    world.faults.append(_fault("kill", f"s{world.leading}", now))
    world.lives = [replace(life, ended_ms=now) if life.process == f"s{world.leading}" else life for life in world.lives]
    world.leading = -1


def kill_worker(number: int) -> Act:
    def act(world: World) -> None:
        world.workers[number].stopped_ms = world.writing.now
        world.faults.append(_fault("kill", f"w{number}", world.writing.now))

    return act


def freeze_worker(number: int, seconds: float) -> Act:
    def act(world: World) -> None:
        worker, now = world.workers[number], world.writing.now
        worker.stopped_ms, worker.frozen = now, True
        world.faults.append(_fault("freeze", worker.name, now, now + round(seconds * 1000)))

    return act


def wake_worker(number: int) -> Act:
    return lambda world: world.workers[number].wake_up(world)


def new_worker(number: int) -> Act:
    """Another life of a worker process that had been stopped, under a name of its own."""

    def act(world: World) -> None:
        worker = Worker(f"w{len(world.workers)}", number)
        world.workers.append(worker)
        beat(world.writing, worker.name, worker.incarnation, worker.home, list(CONDUCTS))
        world.lives.append(_life(world.workers[-1].name, Role.WORKER, world.writing.now))

    return act


def _fault(kind: str, target: str, began_ms: int, ended_ms: int = -1) -> Fault:
    return Fault(kind=kind, target=target, began_ms=began_ms, ended_ms=began_ms if ended_ms < 0 else ended_ms)


def _life(process: str, role: Role, began_ms: int, pid: int = 0) -> Life:
    return Life(process=process, role=role, pid=pid, began_ms=began_ms, ended_ms=-1, how="")
