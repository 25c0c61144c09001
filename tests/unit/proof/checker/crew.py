"""Workers of the hand-made world: they claim offers, wait for the grant and the due time, and leave effects and steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dueline.schemas.codec import decode_as
from dueline.schemas.run import Run
from dueline.schemas.work import AttemptEvent, EventKind, Outcome, Step
from proof.history.acts import Effect
from tests.unit.proof.checker.log import PREFIX

if TYPE_CHECKING:
    from tests.unit.proof.checker.world import World

STEPS, ATTEMPTS = f"{PREFIX}.steps", f"{PREFIX}.attempts"
COMMIT_MS = 20


@dataclass(slots=True)
class Work:
    """One attempt on a worker."""

    run: Run
    claim: int
    steps_from: int
    todo: list[str]
    granted: bool = False
    recall: str = ""
    next_ms: int = -1  # when the step under way has its effect, or is committed
    happened: bool = False
    began: bool = False
    began_ms: int = -1
    done: int = 0


@dataclass(slots=True)
class Worker:
    """One life of a worker process."""

    name: str
    home: int
    stopped_ms: int = -1  # killed or frozen
    frozen: bool = False
    fenced: bool = False
    works: dict[str, Work] = field(default_factory=dict)
    claims: int = 0
    now_ms: int = -1

    @property
    def incarnation(self) -> str:
        """As the ledger knows it."""
        return f"{self.name}.0000aaaa"

    def act(self, world: World) -> None:
        """One look at every attempt."""
        self.now_ms = world.writing.now
        if self.stopped_ms < 0:
            for work in list(self.works.values()):
                self._go_on(world, work)

    def take(self, world: World, run: Run) -> None:
        """An offer: claimed at once."""
        self.claims += 1
        done = _recorded(world, run)
        todo = [step for step in world.conducts[run.job.handler].steps if step not in done]
        work = Work(run, self.claims, world.writing.end(STEPS, self.home), todo)
        self.works[run.key] = work
        world.writing.append(ATTEMPTS, self._event(work, EventKind.CLAIMED), partition=self.home)

    def wake_up(self, world: World) -> None:
        """A frozen process goes on: what it was about to do outside happens, and nothing that it writes is taken."""
        for work in self.works.values():
            if work.began and work.todo and not work.happened:
                self._happen(world, work)
        self.works.clear()

    def _go_on(self, world: World, work: Work) -> None:
        now = world.writing.now
        if not work.granted:
            return
        if work.recall and not work.began and now < work.run.due_ms:
            self._end(world, work, self._event(work, EventKind.DECLINED, reason="recalled"))
            return
        if now < work.run.due_ms:
            return
        if not work.began:
            work.began, work.began_ms, work.next_ms = True, now, now + world.writing.random.randrange(5, world.pace_ms)
        if work.todo and now >= work.next_ms:
            self._step(world, work)
        elif not work.todo and work.recall.startswith("cancel:"):
            self._end(world, work, self._event(work, EventKind.FINISHED, outcome=Outcome.CANCELLED))
        elif not work.todo:
            if not world.conducts[work.run.job.handler].steps:
                self._happen(world, work)
            fails = world.conducts[work.run.job.handler].fails
            outcome = Outcome.FAILURE if fails else Outcome.SUCCESS
            self._end(world, work, self._event(work, EventKind.FINISHED, outcome=outcome))

    def _step(self, world: World, work: Work) -> None:
        if not work.happened:
            self._happen(world, work)
            work.next_ms = world.writing.now + COMMIT_MS
            return
        name = work.todo.pop(0)
        now = world.writing.now
        world.writing.append(
            STEPS, partition=self.home,
            record=Step(
                run=work.run.key, attempt=work.run.attempt, claim=work.claim, incarnation=self.incarnation, name=name,
                encoding="json", result=b"null", started_ms=now, finished_ms=now,
            ),
        )  # fmt: skip
        topic = world.conducts[work.run.job.handler].produces
        if topic:
            world.writing.append(topic, b"posted", key=f"{work.run.key}/{name}".encode(), partition=self.home % 2)
        work.done, work.happened, work.next_ms = work.done + 1, False, now + world.writing.random.randrange(5, world.pace_ms)
        if work.recall.startswith("cancel:"):
            self._end(world, work, self._event(work, EventKind.FINISHED, outcome=Outcome.CANCELLED))

    def _happen(self, world: World, work: Work) -> None:
        run, step = work.run, work.todo[0] if work.todo else ""
        world.effects.append(
            Effect(
                job=run.job.id, due_ms=run.due_ms, step=step, key=f"{run.key}/{step or 'body'}", run=run.key, attempt=run.attempt,
                at_ms=world.writing.now, process=self.name,
            )
        )  # fmt: skip
        work.happened = True

    def _end(self, world: World, work: Work, event: AttemptEvent) -> None:
        world.writing.append(ATTEMPTS, event, partition=self.home)
        self.works.pop(work.run.key, None)

    def _event(self, work: Work, kind: str, *, outcome: str = "", reason: str = "") -> AttemptEvent:
        claimed = kind == EventKind.CLAIMED
        return AttemptEvent(
            kind=kind, run=work.run.key, attempt=work.run.attempt, claim=work.claim, incarnation=self.incarnation,
            worker=self.name, queue=work.run.job.queue, home=self.home,
            dispatch_term=work.run.dispatch_term if claimed else -1, dispatch_seq=work.run.dispatch_seq if claimed else -1,
            steps_from=work.steps_from if claimed else -1, outcome=outcome, reason=reason, steps_done=work.done,
            started_ms=work.began_ms, finished_ms=self.now_ms if kind == EventKind.FINISHED else -1,
            error="it flopped" if outcome == Outcome.FAILURE else "",
        )  # fmt: skip


def _recorded(world: World, run: Run) -> set[str]:
    """What earlier attempts recorded, read where the offer says."""
    found = set()
    for part in run.earlier:
        for entry in world.writing.log[STEPS, part.home]:
            if part.start <= entry.offset < part.end and entry.value is not None:
                step = decode_as(Step, entry.value)
                if step.run == run.key:
                    found.add(step.name)
    return found
