"""Unit tests of handlers without Kafka: the real context, with a log that is a dictionary.

    def test_goes_on_after_a_crash():
        ctx = TestContext(payload={"kitchen": "north"})
        ctx.crash_after("send/600")
        with pytest.raises(Crash):
            ctx.run(send_menu)
        ctx.resume(send_menu)
        assert ctx.skipped[:2] == ["build", "send/1"]
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, cast

from dueline.scheduler.core.ports import Outgoing
from dueline.schemas.run import run_key
from dueline.workers.attempt import Attempt, Facts, OpenStep, StepDone
from dueline.workers.context import AsyncContext, Context
from dueline.workers.errors import Interruption
from dueline.workers.registry import HandlerFunction, make_handler
from dueline.workers.steps import Recorded, json_result

DEFAULT_DUE = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)


class Crash(Interruption):
    """The simulated death of the worker; not for handlers to catch."""

    __test__ = False


class TestContext:
    """A run in a test. `run(handler)` makes its first attempt, `resume(handler)` the next one with the steps done so far.

    `due`: an aware datetime. `payload`: JSON data. Works for functions and coroutine functions alike.
    """

    __test__ = False  # pytest: not a class of tests

    def __init__(
        self, *, due: datetime = DEFAULT_DUE, payload: object = None, job: str = "test", handler: str = "test"
    ) -> None:
        if due.tzinfo is None:
            raise ValueError(f"due={due!r} needs a time zone, e.g. datetime(2026, 11, 30, 6, tzinfo=UTC)")
        self._due_ms = int(due.timestamp() * 1000)
        self._payload = json_result("payload", payload)
        self._job = job
        self._handler = handler
        self._recorded: dict[str, Recorded] = {}
        self._attempts = 0
        self._attempt: Attempt | None = None
        self._crash_after: set[str] = set()
        self._crash_during: set[str] = set()
        self._cancel_after: set[str] = set()
        self.produced: list[Outgoing] = []
        """Records that committed steps produced, in order."""
        self.skipped: list[str] = []
        """Names of the steps that the last attempt skipped, in order."""

    @property
    def run_id(self) -> str:
        """As the handler sees it."""
        return run_key(self._job, self._due_ms)

    @property
    def attempts(self) -> int:
        """Attempts made so far."""
        return self._attempts

    @property
    def steps(self) -> Mapping[str, object]:
        """Results of the completed steps of all attempts, by name, in order of completion."""
        return {name: recorded.value() for name, recorded in self._recorded.items()}

    def crash_after(self, step: str) -> None:
        """The next attempt dies right after this step's completion was recorded."""
        self._crash_after.add(step)

    def crash_during(self, step: str) -> None:
        """The next attempt dies after this step's function returned and before that was recorded: its effect happened,
        and the next attempt calls the function again, with the same idempotency key."""
        self._crash_during.add(step)

    def cancel_after(self, step: str) -> None:
        """Somebody cancels the run while this step runs: the next call on the context raises RunCancelled."""
        self._cancel_after.add(step)

    def run(self, handler: HandlerFunction) -> Any:
        """An attempt with the steps done so far; returns what the handler returns, as JSON carries it, or raises what it
        raises (Crash where one was asked for)."""
        made = make_handler(self._handler, handler)
        self._attempts += 1
        self.skipped = []
        facts = Facts(
            run=self.run_id,
            job=self._job,
            handler=self._handler,
            due_ms=self._due_ms,
            attempt=self._attempts,
            payload=self._payload,
        )
        attempt = self._attempt = _Noting(facts, self._recorded, self)
        try:
            if made.asynchronous:
                result = asyncio.run(cast(Coroutine[Any, Any, object], handler(AsyncContext(attempt))))
            else:
                result = handler(Context(attempt))
                if inspect.iscoroutine(result):
                    result.close()
                    raise TypeError("the handler returned a coroutine: define it with `async def`")
        finally:
            attempt.close("it ended")
            self._crash_after.clear()
            self._crash_during.clear()
            self._cancel_after.clear()
        return json.loads(json_result("the handler's return value", result))

    def resume(self, handler: HandlerFunction) -> Any:
        """The next attempt: the same as `run`, under the name that tells the story."""
        if not self._attempts:
            raise ValueError("resume before run: there is no attempt to resume")
        return self.run(handler)

    # -- the port of the attempt ---------------------------------------------------------------------------------------

    def may_begin(self) -> bool:
        """See StepPort."""
        return True

    def now_ms(self) -> int:
        """See StepPort: the due time stands still."""
        return self._due_ms

    def unwritable(self, topic: str) -> str:
        """See StepPort."""
        return "" if topic else "a topic has a name"

    def submit(self, done: StepDone) -> None:
        """See StepPort: commits at once."""
        if done.name in self._crash_during:
            done.answer.set_exception(Crash(f"crashed before step {done.name!r} was recorded"))
            return
        self._recorded[done.name] = done.recorded
        self.produced += done.produced
        _answer(done.answer, Crash(f"crashed after step {done.name!r}") if done.name in self._crash_after else None)

    def note_skipped(self, name: str) -> None:
        """A step was done before."""
        self.skipped.append(name)

    def maybe_cancel(self, attempt: Attempt, name: str) -> None:
        """The step begins in which somebody cancels the run."""
        if name in self._cancel_after:
            attempt.cancel("by the test")


class _Noting(Attempt):
    """An attempt that tells its test what it skips."""

    def __init__(self, facts: Facts, recorded: Mapping[str, Recorded], test: TestContext) -> None:
        super().__init__(facts, dict(recorded), test)
        self._test = test

    def skip(self, name: str) -> Recorded | None:
        recorded = super().skip(name)
        if recorded is not None:
            self._test.note_skipped(name)
        return recorded

    def open_step(self, name: str) -> OpenStep:
        self._test.maybe_cancel(self, name)
        return super().open_step(name)


def _answer(answer: Future[None], error: BaseException | None) -> None:
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
