"""One attempt as its handler sees it, behind both kinds of context.

Who owns what: the handler's thread or task calls `enter`, `complete`, `check`; the loop calls `close` and `cancel`.
The two meet under one lock, which is never held while anything waits. A step's completion goes to the loop with a
future; the handler goes on when its commit was acknowledged, never before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

from dueline.scheduler.core.ports import Outgoing
from dueline.workers.errors import AttemptClosed, Interruption, RunCancelled, StepError
from dueline.workers.steps import Recorded, check_step_name, record_result

LEASE_LOOK_S: Final = 0.05
"""How often a step that may not begin looks again. Rare: only when heartbeats are not acknowledged."""

MAX_STEP_RECORDS_BYTES: Final = 900 * 1024
"""Of all records one step produces. Keys and values; below Kafka's default limit for one record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What stays the same during an attempt. `payload` is JSON text."""

    run: str
    job: str
    handler: str
    due_ms: int
    attempt: int
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """A step's completion on its way to the log, with the records it produced."""

    name: str
    recorded: Recorded
    started_ms: int
    finished_ms: int
    produced: Sequence[Outgoing]
    answer: Future[None]


class StepPort(Protocol):
    """What an attempt needs of its worker. Any thread."""

    def may_begin(self) -> bool:
        """Whether the lease holds."""
        ...

    def now_ms(self) -> int:
        """Log time."""
        ...

    def submit(self, done: StepDone) -> None:
        """Commit it; `done.answer` is resolved then, or fails with StepError or AttemptClosed."""
        ...

    def unwritable(self, topic: str) -> str:
        """Why a handler cannot produce to the topic; "" when it can."""
        ...


@dataclass(slots=True, kw_only=True)
class OpenStep:
    """A step that runs."""

    name: str
    started_ms: int
    produced: list[Outgoing] = field(default_factory=list)
    produced_bytes: int = 0


STEP: Final[ContextVar[OpenStep | None]] = ContextVar("dueline_step", default=None)
"""The step that runs in this thread or task."""


class Attempt:
    """See the module's text."""

    def __init__(self, facts: Facts, recorded: Mapping[str, Recorded], port: StepPort) -> None:
        self.facts = facts
        self.port = port
        self._recorded = recorded
        self._lock = threading.Lock()
        self._used: set[str] = set()
        self._closed = ""
        self._cancelled = ""
        self._doubted = False
        self.doubts = 0
        self._changed = threading.Event()
        self._on_stop: Callable[[], None] | None = None
        self.steps_done = 0
        self.steps_skipped = 0

    # -- the loop's side ---------------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """From now on it can record nothing: every call on the context raises AttemptClosed."""
        with self._lock:
            self._closed = self._closed or reason
            stop = self._on_stop
        self._changed.set()
        if stop is not None:
            stop()

    def cancel(self, reason: str) -> None:
        """Ask the handler to stop: its next call on the context raises RunCancelled."""
        with self._lock:
            self._cancelled = self._cancelled or reason
            stop = self._on_stop
        self._changed.set()
        if stop is not None:
            stop()

    def doubt(self) -> None:
        """W8: the lease had lapsed, so this may be another worker's by now. No step begins before a transaction with one of it
        was begun and committed after that, which a fenced incarnation cannot do."""
        with self._lock:
            self.doubts += 1
            self._doubted = True

    def proved(self, doubts: int) -> None:
        """A transaction with a step of it was committed; `doubts`: how many there had been when that transaction began. What
        was begun before a doubt, or only found in the log, may have been committed before a fence, and proves nothing."""
        with self._lock:
            if doubts == self.doubts:
                self._doubted = False

    def on_stop(self, stop: Callable[[], None] | None) -> None:
        """What interrupts the handler where it waits (async only); called at once if it is to stop already."""
        with self._lock:
            self._on_stop = stop
            now = bool(self._closed or self._cancelled)
        if now and stop is not None:
            stop()

    # -- the handler's side --------------------------------------------------------------------------------------------

    @property
    def closed(self) -> str:
        """Why the attempt is over; "" while it is not."""
        return self._closed

    @property
    def cancelled(self) -> str:
        """Why the handler is to stop; "" while it is not."""
        return self._cancelled

    def check(self) -> None:
        """Raise AttemptClosed or RunCancelled if it is to stop."""
        if self._closed:
            raise AttemptClosed(f"run {self.facts.run}, attempt {self.facts.attempt}: over ({self._closed}); "
                                "nothing more can be recorded under it")  # fmt: skip
        if self._cancelled:
            raise RunCancelled(f"run {self.facts.run}: cancelled ({self._cancelled})")

    def skip(self, name: str) -> Recorded | None:
        """Begin a step: what it returned if it is done already, else None. Raises StepError, AttemptClosed, RunCancelled."""
        self.check()
        outer = STEP.get()
        if outer is not None:
            raise StepError(f"step {name!r}: begun inside step {outer.name!r}. A step is recorded as a whole, so steps do "
                            "not nest: call it after that step, or call the function directly")  # fmt: skip
        with self._lock:
            check_step_name(name, self._used)
            self._used.add(name)
            recorded = self._recorded.get(name)
            if recorded is not None:
                self.steps_skipped += 1
        return recorded

    def may_begin(self) -> bool:
        """Whether the step's function may be called now; raises when the attempt is to stop."""
        holds = self.port.may_begin()
        self.check()  # after the lease: before one begins again, it is decided here what becomes of the attempt
        if holds and self._doubted:
            raise Interruption("the worker was cut off for longer than its lease: the run goes on in another attempt")
        return holds

    def await_lease(self) -> None:
        """Wait, in a thread, until the step's function may be called (W8)."""
        while not self.may_begin():
            self._changed.wait(LEASE_LOOK_S)

    def open_step(self, name: str) -> OpenStep:
        """The step begins now."""
        return OpenStep(name=name, started_ms=self.port.now_ms())

    def complete(self, step: OpenStep, result: object) -> tuple[Recorded, Future[None]]:
        """Hand the completion in. The future is resolved when it is committed. Raises StepError, AttemptClosed."""
        recorded = record_result(step.name, result, self.facts.attempt)
        done = StepDone(
            name=step.name,
            recorded=recorded,
            started_ms=step.started_ms,
            finished_ms=self.port.now_ms(),
            produced=tuple(step.produced),
            answer=Future(),
        )
        with self._lock:
            if self._closed:
                raise AttemptClosed(f"run {self.facts.run}, attempt {self.facts.attempt}: over ({self._closed}); "
                                    f"step {step.name!r} was not recorded")  # fmt: skip
            self.port.submit(done)
        return recorded, done.answer

    def committed(self) -> None:
        """A step of this attempt was committed."""
        with self._lock:
            self.steps_done += 1

    def produce(self, record: Outgoing) -> None:
        """Add a record to the step that runs in this thread or task. Raises StepError."""
        step = STEP.get()
        if step is None:
            raise StepError(
                f"produce to {record.topic!r} outside of a step: a record goes out with its step's completion or not at "
                "all, so call ctx.produce in the function that a step runs"
            )
        why = self.port.unwritable(record.topic)
        if why:
            raise StepError(f"step {step.name!r}: cannot produce to {record.topic!r}: {why}")
        step.produced_bytes += len(record.key or b"") + len(record.value or b"")
        step.produced_bytes += sum(len(name) + len(content or b"") for name, content in record.headers)
        if step.produced_bytes > MAX_STEP_RECORDS_BYTES:
            raise StepError(f"step {step.name!r}: its records come to {step.produced_bytes:,} bytes, at most "
                            f"{MAX_STEP_RECORDS_BYTES:,} are allowed: split it into several steps")  # fmt: skip
        step.produced.append(record)
