"""W1 to W10 taken out of the worker's and the leader's real code, one at a time.

Each class stands where the real one is named and differs from it by the rule alone. What a rule that is out leads to is found by
`tests/simulation/test_controls.py`, with the plans beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, ParamSpec, TypeVar, cast

from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.ports import (
    BeforeCommit,
    Delivered,
    Fenced,
    FenceResult,
    GroupOffsets,
    LogAdmin,
    Outgoing,
    Partition,
    Received,
    TransactionWriter,
    Unavailable,
    UnfencedOffset,
    WriteError,
)
from dueline.scheduler.core.state import State
from dueline.scheduler.kafka import client
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.fencer import KafkaFencer
from dueline.scheduler.kafka.vocabulary import Consumer, KafkaError
from dueline.scheduler.leader.intake import Intake
from dueline.schemas.base import NONE
from dueline.schemas.topics import Namespace
from dueline.schemas.work import Dispatch, Heartbeat, WorkerState
from dueline.workers.claim import ClaimId, Claims, ClaimState, Decision, Resume
from dueline.workers.claiming import Claiming
from dueline.workers.context import Context, _Running
from dueline.workers.events import Ask, Write, Written
from dueline.workers.incarnation import Incarnation, Opener
from dueline.workers.lease import Lease
from dueline.workers.loop import GroupCommit
from dueline.workers.readback import Pause
from dueline.workers.resume import StepsExpired, read_earlier
from dueline.workers.steps import Recorded
from dueline.workers.worker import Worker
from proof.simulation.substitution import KAFKA, Names
from proof.simulation.workload import QUEUE
from proof.simulation.world import Sabotage

WORKERS_GROUP: Final = Namespace().worker_group(QUEUE)
P = ParamSpec("P")
R = TypeVar("R")


class Undying:
    """Port `TransactionWriter`: the same ids are initialised again whenever their producers are fenced, and what was refused is
    written again."""

    def __init__(self, writer: TransactionWriter, reopen: Callable[[], TransactionWriter]) -> None:
        self._writer, self._reopen = writer, reopen

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> list[Delivered]:
        """See the port."""
        try:
            return self._writer.write(groups, offsets=offsets, before_commit=before_commit)
        except Fenced:
            self._writer.close()
            self._writer = self._reopen()
            return self._writer.write(groups, offsets=offsets, before_commit=before_commit)

    @property
    def producers(self) -> int:
        """See the port."""
        return self._writer.producers

    def survivor(self) -> TransactionWriter | None:
        """See the port."""
        survivor = self._writer.survivor()
        return None if survivor is None else Undying(survivor, self._reopen)

    def serve(self) -> None:
        """See the port."""
        self._writer.serve()

    def close(self) -> None:
        """See the port."""
        self._writer.close()


class Reviving(Opener):
    """W1: an incarnation whose pair was fenced initialises its ids again, and writes on."""

    def _build(self) -> Incarnation:
        incarnation, settings = super()._build(), self._settings
        ids = settings.namespace.worker_ids(incarnation.name)[1:]

        def reopen() -> TransactionWriter:
            return self._kafka.writers().open(ids, transaction_timeout_s=settings.transaction_timeout_s)

        incarnation.commits._writer = Undying(incarnation.commits._writer, reopen)
        return incarnation


class Untold(Claiming):
    """W2: a claim does not carry the end of its home partition of `steps`."""

    def _events(self, ask: Ask, steps_from: int) -> list[Outgoing]:
        del steps_from
        return super()._events(ask, NONE)


class Latest:
    """W2: the module `client` of a worker's group, which begins at the latest record where no offset was committed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(client, name)

    def consumer(self, config: KafkaConfig, on_error: Callable[[KafkaError], None], **named: Any) -> Consumer:
        """See `client.consumer`."""
        if named["group_id"] == WORKERS_GROUP:
            named["auto_offset_reset"] = "latest"
        return client.consumer(config, on_error, **named)


class Eager(Claims):
    """W3: a claim that was committed counts as granted."""

    def committed(self, ids: Iterable[ClaimId], now_s: float) -> list[Decision]:
        """See Claims."""
        ids = list(ids)
        decisions = super().committed(ids, now_s)
        for id in ids:
            claim = self.get(id)
            if claim is None or claim.state != ClaimState.REQUESTED:
                continue
            claim.state = ClaimState.HELD
            if claim.dispatch.earlier:
                decisions.append(Resume(claim=claim))
            else:
                self._list(claim, now_s)
        return decisions


def say_nothing_again(_draft: Draft, _worker: Heartbeat) -> None:
    """W4: what a heartbeat shows a worker not to know is not said again."""


def send_nothing_again(_draft: Draft) -> None:
    """W4: a new term does not send the offers that stand again."""


class Hasty(Context):
    """W5: a step returns before its completion is committed."""

    def step(self, name: str, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """See Context."""
        recorded = self._attempt.skip(name)
        if recorded is not None:
            return cast(R, recorded.value())
        self._attempt.await_lease()
        with _Running(self._attempt.open_step(name)) as step:
            result = fn(*args, **kwargs)
        recorded, _ = self._attempt.complete(step, result)
        return cast(R, recorded.value())


class Apart(GroupCommit):
    """W5: what a step produces goes out in a transaction of its own, before its completion's."""

    def _write(self, batch: Sequence[Write]) -> Written:
        produced = [record for write in batch for record in write.produced]
        if produced:
            try:
                self._writer.write([produced])
            except WriteError as error:
                return self._recover(batch, error)
        return super()._write([_bare(write) for write in batch])


def _bare(write: Write) -> Write:
    return Write(
        id=write.id, kind=write.kind, name=write.name, record=write.record, attempt=write.attempt, answer=write.answer
    )


class Unread(GroupCommit):
    """W6: after a doubtful commit the other producer writes all of it again; nothing is read back."""

    def _recover(self, batch: Sequence[Write], error: WriteError) -> Written:
        survivor = self._writer.survivor()
        if survivor is None:
            return Written(incarnation=self.incarnation, landed=(), again=batch, over=str(error))
        doubtful, self._writer = self._writer, survivor
        doubtful.close()
        return Written(incarnation=self.incarnation, landed=(), again=batch)


class Trusting(KafkaFencer):
    """W7: silence alone ends an incarnation; none of its ids is initialised."""

    def _fence(self, incarnation: str, ids: Sequence[str], home: int, group: str) -> FenceResult:
        del ids, group
        admin = self._admin()
        return FenceResult(
            incarnation=incarnation,
            attempts_end=admin.end_offset((self._attempts, home)),
            steps_end=admin.end_offset((self._steps, home)),
        )


class Impatient(Intake):
    """W7: after a fence the home partition of `attempts` is not read out before the next attempt."""

    def _read_out(self, result: FenceResult, state: State) -> bool:
        return state.fences.get(result.incarnation) is not None


def let_it_stand(*_: object) -> None:
    """W7: what a killed broker forgot to end of a dead incarnation is not ended."""


def unasked(*_: object, **__: object) -> bool:
    """W7: nobody asks whether what it wrote can be read, or nobody ends what stands before it."""
    return True


class Endless(Lease):
    """W8: a lease that lasts until the incarnation is over."""

    __slots__ = ()

    def holds(self, now_s: float) -> bool:
        """See Lease."""
        del now_s
        return self._length_s > 0


def start_over(
    _admin: LogAdmin, _topic: str, _dispatch: Dispatch, *, wanted: Callable[[], bool], pause: Pause
) -> Mapping[str, Recorded]:
    """W9: an attempt does not read what earlier ones recorded."""
    del wanted, pause
    return {}


class Brief:
    """Port `LogAdmin` of a resume that reads what is stable now, and does not wait for the rest."""

    def __init__(self, admin: LogAdmin) -> None:
        self._admin = admin

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:
        """See the port."""
        with suppress(Unavailable):
            yield from self._admin.read_range(partition, start, end, timeout_s=min(1.0, timeout_s))


def resume_at_once(
    admin: LogAdmin, topic: str, dispatch: Dispatch, *, wanted: Callable[[], bool], pause: Pause
) -> Mapping[str, Recorded]:
    """W9: an attempt reads up to the last stable offset only, though another worker's open transaction stands before the end."""
    return read_earlier(cast(LogAdmin, Brief(admin)), topic, dispatch, wanted=wanted, pause=pause)


def resume_what_is_left(
    admin: LogAdmin, topic: str, dispatch: Dispatch, *, wanted: Callable[[], bool], pause: Pause
) -> Mapping[str, Recorded]:
    """W9: a run whose steps have expired is started over, and nobody is told."""
    try:
        return read_earlier(admin, topic, dispatch, wanted=wanted, pause=pause)
    except StepsExpired:
        return {}


class Leaving(Worker):
    """W10: who stops does not wait for what it holds, and says that it stopped."""

    def _retire(self, incarnation: Incarnation) -> None:
        if incarnation.state == WorkerState.DRAINING and self.claims.of(incarnation.name):
            if incarnation.idle and (self.left_group or not self.draining):
                incarnation.state = WorkerState.STOPPED
                self._beat(incarnation)
                del self.incarnations[incarnation.name]
                self._act(self.claims.over(incarnation.name))
                incarnation.close()
            return
        super()._retire(incarnation)


def _named(names: Names) -> Callable[[], Names]:
    return lambda: dict(names)


RULES: Final[Mapping[str, Names]] = {
    "W1": {("dueline.workers.process", "Opener"): Reviving},
    "W2": {("dueline.workers.incarnation", "Claiming"): Untold},
    "W2-latest": {(f"{KAFKA}.group", "client"): Latest()},
    "W3": {("dueline.workers.process", "Claims"): Eager},
    "W4": {
        ("dueline.scheduler.core.plan", "answer_heartbeat"): say_nothing_again,
        ("dueline.scheduler.core.plan", "send_again"): send_nothing_again,
    },
    "W5": {("dueline.workers.executor", "Context"): Hasty},
    "W5-apart": {("dueline.workers.incarnation", "GroupCommit"): Apart},
    "W6": {("dueline.workers.incarnation", "GroupCommit"): Unread},
    "W7": {(f"{KAFKA}.cluster", "KafkaFencer"): Trusting},
    "W7-unread": {("dueline.scheduler.leader.scheduler", "Intake"): Impatient},
    "W7-forgotten": {(f"{KAFKA}.fencer", "forget"): let_it_stand},
    "W7-idle": {("dueline.workers.loop", "end"): unasked},
    "W7-sign-off": {("dueline.workers.loop", "end"): unasked, ("dueline.workers.loop", "sign_off"): unasked},
    "W8": {("dueline.workers.incarnation", "Lease"): Endless},
    "W9": {("dueline.workers.process", "read_earlier"): start_over},
    "W9-stable": {("dueline.workers.process", "read_earlier"): resume_at_once},
    "W9-expired": {("dueline.workers.process", "read_earlier"): resume_what_is_left},
    "W10": {("dueline.workers.process", "Worker"): Leaving},
}

WORKERS: Final[Mapping[str, Sabotage]] = {
    rule: Sabotage(rule=rule, names=_named(names)) for rule, names in RULES.items()
}
