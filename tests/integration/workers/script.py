"""A scripted leader: writes dispatches and signals by the real ports, and reads what the worker answers."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from dueline.scheduler.core.ports import EARLIEST, Kafka, Outgoing, Received
from dueline.scheduler.kafka.clock import SystemClock
from dueline.schemas.base import NONE
from dueline.schemas.codec import Record, decode, encode, headers
from dueline.schemas.ledger import FORGOTTEN_KEY
from dueline.schemas.run import RunJob, StepRange, run_key
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, Dispatch, EventKind, Heartbeat, Signal, SignalKind, Step
from dueline.workers.process import WorkerProcess
from dueline.workers.registry import HandlerFunction, Registry
from dueline.workers.settings import WorkerSettings

WAIT_S = 20.0
TERM = 7
R = TypeVar("R", AttemptEvent, Heartbeat, Step)


@dataclass
class Seen:
    """A record of the worker's and where it stands."""

    record: Record
    at: Received


@dataclass
class Script:
    """See the module's text."""

    kafka: Kafka
    namespace: Namespace
    queue: str = "menu"
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._writer = self.kafka.writers().open(self.namespace.leader_ids)
        self._reader = self.kafka.log_reader("script")
        admin = self.kafka.admin()
        topics = (self.namespace.attempts, self.namespace.steps, self.namespace.workers)
        self._reader.assign({(topic, n): EARLIEST for topic in topics for n in range(admin.partitions(topic))})
        self._seq = 0

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    # -- writes --------------------------------------------------------------------------------------------------------

    def offer(
        self,
        name: str = "daily",
        *,
        handler: str = "menu",
        due_ms: int | None = None,
        attempt: int = 1,
        earlier: Sequence[StepRange] = (),
        ahead: bool = False,
        payload: str = "null",
        timeout_ms: int = 0,
        partition: int = 0,
    ) -> Dispatch:
        due_ms = now_ms() if due_ms is None else due_ms
        job = RunJob(
            id=name, version=1, queue=self.queue, handler=handler, payload=payload, timeout_ms=timeout_ms
        )
        self._seq += 1
        dispatch = Dispatch(
            job=job, run=run_key(name, due_ms), due_ms=due_ms, trigger="schedule", attempt=attempt, term=TERM,
            seq=self._seq, ahead=ahead, earlier=list(earlier), leader_ms=now_ms(),
        )  # fmt: skip
        self.write_raw(self.namespace.dispatch(self.queue), partition, dispatch.run, encode(dispatch), headers(dispatch))
        return dispatch

    def write_raw(
        self, topic: str, partition: int, key: str, value: bytes, marks: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        record = Outgoing(topic=topic, key=key.encode(), value=value, headers=marks, partition=partition)
        self._writer.write([[record]])

    def signal(self, kind: SignalKind, claim: AttemptEvent, reason: str = "") -> None:
        self.send(
            Signal(
                kind=kind, incarnation=claim.incarnation, run=claim.run, attempt=claim.attempt, claim=claim.claim,
                reason=reason, term=TERM, leader_ms=now_ms(),
            ),
            claim.home,
        )  # fmt: skip

    def grant(self, claim: AttemptEvent) -> None:
        self.signal(SignalKind.GRANT, claim)

    def send(self, signal: Signal, home: int) -> None:
        self.write_raw(self.namespace.signals, home, signal.run, encode(signal), headers(signal))

    # -- reads ---------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        for record in self._reader.poll(0.05, 500):
            if record.key == FORGOTTEN_KEY:
                continue
            assert record.value is not None
            self.seen.append(Seen(record=decode(record.value), at=record))

    def all(self, kind: type[R], where: Callable[[R], bool] = lambda _: True) -> list[R]:
        return [one.record for one in self.seen if isinstance(one.record, kind) and where(one.record)]

    def wait(self, kind: type[R], where: Callable[[R], bool] = lambda _: True, *, timeout_s: float = WAIT_S) -> R:
        """The first such record of the worker's; fails with what there is instead."""
        deadline = time.monotonic() + timeout_s
        while not (found := self.all(kind, where)):
            assert time.monotonic() < deadline, f"no such {kind.__name__}; there is: {[one.record for one in self.seen][-8:]}"
            self.pump()
        return found[0]

    def claimed(self, dispatch: Dispatch) -> AttemptEvent:
        return self.wait(
            AttemptEvent,
            lambda event: event.kind == EventKind.CLAIMED
            and (event.dispatch_term, event.dispatch_seq) == (dispatch.term, dispatch.seq),
        )

    def event(self, kind: EventKind, claim: AttemptEvent) -> AttemptEvent:
        return self.wait(
            AttemptEvent,
            lambda event: event.kind == kind and (event.incarnation, event.claim) == (claim.incarnation, claim.claim),
        )

    def finished(self, claim: AttemptEvent) -> AttemptEvent:
        return self.event(EventKind.FINISHED, claim)

    def declined(self, claim: AttemptEvent) -> AttemptEvent:
        return self.event(EventKind.DECLINED, claim)

    def heartbeat(self, where: Callable[[Heartbeat], bool] = lambda _: True) -> Heartbeat:
        return self.wait(Heartbeat, where)

    def next_heartbeats(self, incarnation: str, count: int) -> list[Heartbeat]:
        """That many heartbeats from now on: what the worker has read by then is no matter of luck."""
        have = len(self.all(Heartbeat, lambda one: one.incarnation == incarnation))
        self.wait_until(
            lambda: len(self.all(Heartbeat, lambda one: one.incarnation == incarnation)) >= have + count, "more heartbeats"
        )
        return self.all(Heartbeat, lambda one: one.incarnation == incarnation)[have:]

    def ready(self, worker: str, handler: str = "menu") -> Heartbeat:
        """The worker's first heartbeat that offers something can be sent to."""
        return self.heartbeat(lambda one: one.worker == worker and handler in one.handlers and bool(one.partitions))

    def wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"{what}: did not come; last records: {[s.record for s in self.seen][-8:]}"
            self.pump()

    def run_through(self, dispatch: Dispatch) -> AttemptEvent:
        """Grant the claim of an offer and wait for its end."""
        claim = self.claimed(dispatch)
        self.grant(claim)
        return self.finished(claim)


def now_ms() -> int:
    return SystemClock().wall_ms()


@dataclass
class RunningWorker:
    """A worker in a thread of the test's process."""

    settings: WorkerSettings
    stop: threading.Event
    thread: threading.Thread
    errors: list[BaseException]

    def drain(self, timeout_s: float = WAIT_S) -> None:
        self.stop.set()
        self.thread.join(timeout_s)
        assert not self.thread.is_alive(), "the worker did not drain in time"
        assert self.errors == []


@contextmanager
def running(
    kafka: Kafka,
    namespace: Namespace,
    handlers: Mapping[str, HandlerFunction],
    *,
    worker: str = "w1",
    slots: int = 4,
    drain_timeout_s: float = 2.0,
    worker_timeout_s: float = 3.0,
    heartbeat_s: float = 0.2,
) -> Iterator[RunningWorker]:
    """Runs a worker for as long as the block lasts, then drains it."""
    settings = WorkerSettings(
        queue="menu", namespace=namespace, worker=worker, slots=slots, drain_timeout_s=drain_timeout_s,
        worker_timeout_s=worker_timeout_s, heartbeat_s=heartbeat_s, transaction_timeout_s=6.0,
    )  # fmt: skip
    process = WorkerProcess(kafka, SystemClock(), Registry.of(handlers), settings)
    stop, errors = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            process.run(stop)
        except BaseException as error:  # noqa: BLE001 - the test's own thread looks at it
            errors.append(error)

    thread = threading.Thread(target=run, name=f"worker-{worker}", daemon=True)
    thread.start()
    here = RunningWorker(settings=settings, stop=stop, thread=thread, errors=errors)
    try:
        yield here
    finally:
        stop.set()
        thread.join(40)
        for error in errors:
            traceback.print_exception(error)
    assert not thread.is_alive()
    assert errors == []


__all__ = ["NONE", "RunningWorker", "Script", "now_ms", "running"]
