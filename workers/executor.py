"""Runs handlers: functions in slot threads, coroutine functions in one event loop in a thread of its own.

A handler's end goes to the worker's loop as an event. A thread cannot be stopped from outside: a handler that never calls
its context keeps its thread, and its slot, until it ends. A coroutine is cancelled where it waits.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

from dueline.workers.attempt import Attempt
from dueline.workers.claim import ClaimId
from dueline.workers.context import AsyncContext, Context
from dueline.workers.errors import AttemptClosed, HandlerError, Interruption, RunCancelled, Snooze
from dueline.workers.events import Event, HandlerEnded
from dueline.workers.logging import CURRENT
from dueline.workers.outcome import Ended, ended_by_error, ended_by_value
from dueline.workers.registry import Handler
from dueline.workers.threads import Shell

log = logging.getLogger(__name__)


class Executor:
    """At most `slots` handlers at a time: the worker's loop counts, the threads follow."""

    def __init__(self, shell: Shell, *, slots: int, post: Callable[[Event], None]) -> None:
        self._tasks = shell.tasks("dueline-slot", slots, awaited=False)
        self._post = post
        self._coroutines = CoroutineThread()

    def start(self, id: ClaimId, handler: Handler, attempt: Attempt) -> None:
        """Run the handler; its end comes as HandlerEnded."""
        if handler.asynchronous:
            self._coroutines.submit(self._await(id, handler, attempt))
        else:
            self._tasks.submit(lambda: self._call(id, handler, attempt))

    def close(self) -> None:
        """Start nothing more. Threads that are stuck are daemons."""
        self._tasks.close()
        self._coroutines.close()

    def _call(self, id: ClaimId, handler: Handler, attempt: Attempt) -> None:
        token = CURRENT.set((attempt.facts.run, attempt.facts.attempt))
        try:
            ended = call_handler(handler, attempt)
        finally:
            CURRENT.reset(token)
        self._post(HandlerEnded(id=id, ended=ended))

    async def _await(self, id: ClaimId, handler: Handler, attempt: Attempt) -> None:
        CURRENT.set((attempt.facts.run, attempt.facts.attempt))  # a task has a context of its own: nothing to reset
        self._post(HandlerEnded(id=id, ended=await await_handler(handler, attempt)))


def call_handler(handler: Handler, attempt: Attempt) -> Ended:
    """Call a plain function to its end, whatever that is."""
    try:
        attempt.check()
        value = handler.function(Context(attempt))
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise HandlerError(f"handler {handler.name!r} returned something to await: define it with `async def`")
        return ended_by_value(value, attempt.port.now_ms())
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its attempt's outcome
        return _raised(error, attempt)


async def await_handler(handler: Handler, attempt: Attempt) -> Ended:
    """Await a coroutine function to its end, whatever that is."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    try:
        attempt.on_stop(lambda: _stop(loop, task))
        attempt.check()
        value = await cast(Coroutine[Any, Any, object], handler.function(AsyncContext(attempt)))
        return ended_by_value(value, attempt.port.now_ms())
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its attempt's outcome
        return _raised(error, attempt)
    finally:
        attempt.on_stop(None)


def _stop(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any] | None) -> None:
    if task is not None:
        loop.call_soon_threadsafe(task.cancel)


def _raised(error: BaseException, attempt: Attempt) -> Ended:
    if isinstance(error, asyncio.CancelledError):
        if attempt.closed:
            error = AttemptClosed(attempt.closed)
        elif attempt.cancelled:
            error = RunCancelled(attempt.cancelled)
    facts = attempt.facts
    if not isinstance(error, Snooze | Interruption):
        log.warning("run %s, attempt %d failed: %s: %s", facts.run, facts.attempt, type(error).__name__, error,
                    extra={"action": "attempt.failed"})  # fmt: skip
    return ended_by_error(error, attempt.port.now_ms())


class CoroutineThread:
    """An event loop in a daemon thread; starts with the first coroutine."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it. Called by one thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="dueline-async", daemon=True)
            self._thread.start()
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Cancel what runs and end the thread, unless a coroutine blocks it."""
        loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop)
        thread.join(timeout=1.0)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=0.5)
    asyncio.get_running_loop().stop()
