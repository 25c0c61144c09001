"""What a handler is called with: `Context` for a function, `AsyncContext` for a coroutine function."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import Token
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from dueline.scheduler.core.ports import Outgoing
from dueline.workers.attempt import LEASE_LOOK_S, STEP, Attempt, OpenStep
from dueline.workers.errors import StepError
from dueline.workers.steps import json_result

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Key = Callable[[T], object]
"""What tells an item from the others."""

Value = object
"""Of a produced record: bytes, text (utf-8), None, or JSON data."""


class BaseContext:
    """What both kinds share. Instants are aware datetimes in UTC."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._payload: object = json.loads(attempt.facts.payload)
        self.log = logging.getLogger(f"dueline.handler.{attempt.facts.handler}")

    @property
    def run_id(self) -> str:
        """`job@2026-11-30T06:00:00Z`; of a manual run `job@!command`. The same in every attempt."""
        return self._attempt.facts.run

    @property
    def job(self) -> str:
        """The job's id."""
        return self._attempt.facts.job

    @property
    def due(self) -> datetime:
        """The due time, in UTC. The same in every attempt, however late it runs."""
        return datetime.fromtimestamp(self._attempt.facts.due_ms / 1000, UTC)

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1. Grows also after an interruption or a snooze."""
        return self._attempt.facts.attempt

    @property
    def payload(self) -> Any:
        """The job's payload (or that of the trigger command), as JSON data."""
        return self._payload

    @property
    def cancelled(self) -> bool:
        """Whether the handler is to stop: somebody cancelled the run, or this attempt is over."""
        return bool(self._attempt.cancelled or self._attempt.closed)

    def check(self) -> None:
        """Raise RunCancelled or AttemptClosed if the handler is to stop. For long work between two steps."""
        self._attempt.check()

    def idempotency_key(self, subscriber: object = None) -> str:
        """A key that is the same in every attempt of this run, for the receiver of an effect to drop a repetition.

        `subscriber` says which effect of the run it is; without it, in a step, the step's name does.
        """
        if subscriber is None:
            step = STEP.get()
            if step is None:
                raise StepError("idempotency_key() outside of a step: say which effect is meant, idempotency_key(subscriber)")
            subscriber = step.name
        return f"{self.run_id}/{subscriber}"

    def produce(
        self,
        topic: str,
        value: Value,
        *,
        key: str | bytes | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> None:
        """Write a record to a topic of yours, committed with the completion of the step that runs, or not at all.

        To read exactly once, its consumers read committed (librdkafka's default). Only inside a step.
        """
        for what, part in (("key", key), *((f"header {name!r}", content) for name, content in (headers or {}).items())):
            if not isinstance(part, str | bytes | None):  # the client would refuse it in the middle of a shared transaction
                raise StepError(f"the record for {topic!r}: its {what} is a {type(part).__name__}, not text or bytes")
        self._attempt.produce(
            Outgoing(
                topic=topic,
                key=key.encode() if isinstance(key, str) else key,
                value=_value_bytes(topic, value),
                headers=tuple((_header_name(topic, name), as_bytes(content)) for name, content in (headers or {}).items()),
            )
        )


class Context(BaseContext):
    """For handlers that are plain functions. Methods may be called from any thread of the handler."""

    def step(self, name: str, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call `fn(*args, **kwargs)` once per run: its recorded result if an earlier attempt completed the step.

        Returns when the completion is committed. The result must be JSON data or bytes, up to 256 KiB, and is returned
        as it will be read back (a tuple as a list). Raises what `fn` raises; StepError for a step that cannot be.
        """
        recorded = self._attempt.skip(name)
        if recorded is not None:
            return cast(R, recorded.value())
        self._attempt.await_lease()
        with _Running(self._attempt.open_step(name)) as step:
            result = fn(*args, **kwargs)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise StepError(f"step {name!r}: its function is asynchronous: make the handler `async def` and await ctx.step")
        recorded, answer = self._attempt.complete(step, result)
        answer.result()
        return cast(R, recorded.value())

    def each(self, name: str, items: Iterable[T], fn: Callable[[T], R], *, key: Key[T] | None = None) -> list[R]:
        """A step `name/<key>` for each item, in order, one after the other; returns their results.

        `key` gives what tells an item from the others in every attempt; without it, items are text or numbers themselves.
        After a crash at most the one item in flight is done twice, with the same idempotency key.
        """
        return [self.step(f"{name}/{item_key(name, item, key)}", fn, item) for item in items]


class AsyncContext(BaseContext):
    """For handlers that are coroutine functions. Steps may run concurrently (asyncio.gather), each under its own name."""

    @overload
    async def step(self, name: str, fn: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    async def step(self, name: str, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    async def step(self, name: str, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> object:
        """As `Context.step`; `fn` may be a coroutine function or a plain one, which blocks the other async handlers."""
        recorded = self._attempt.skip(name)
        if recorded is not None:
            return recorded.value()
        while not self._attempt.may_begin():
            await asyncio.sleep(LEASE_LOOK_S)
        with _Running(self._attempt.open_step(name)) as step:
            result = fn(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await result
        recorded, answer = self._attempt.complete(step, result)
        await asyncio.wrap_future(answer)
        return recorded.value()

    @overload
    async def each(
        self, name: str, items: Iterable[T], fn: Callable[[T], Coroutine[Any, Any, R]], *, key: Key[T] | None = None
    ) -> list[R]: ...

    @overload
    async def each(self, name: str, items: Iterable[T], fn: Callable[[T], R], *, key: Key[T] | None = None) -> list[R]: ...

    async def each(
        self, name: str, items: Iterable[T], fn: Callable[[T], object], *, key: Key[T] | None = None
    ) -> list[Any]:
        """As `Context.each`."""
        return [await self.step(f"{name}/{item_key(name, item, key)}", fn, item) for item in items]


class _Running:
    """The step that runs in this thread or task, while the block lasts."""

    def __init__(self, step: OpenStep) -> None:
        self._step = step
        self._token: Token[OpenStep | None] | None = None

    def __enter__(self) -> OpenStep:
        self._token = STEP.set(self._step)
        return self._step

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._token is not None:
            STEP.reset(self._token)


def item_key(name: str, item: T, key: Key[T] | None) -> object:
    """What stands behind the slash in an item's step name."""
    if key is not None:
        return key(item)
    if isinstance(item, str | int):
        return item
    raise StepError(
        f"each {name!r}: an item is a {type(item).__name__}; say what tells it from the others in every attempt, "
        "e.g. key=lambda item: item['id']. A position would mix items up when the list changes between attempts"
    )


def as_bytes(text: str | bytes) -> bytes:
    """Text as utf-8."""
    return text.encode() if isinstance(text, str) else text


def _header_name(topic: str, name: object) -> str:
    if not isinstance(name, str) or not name.isprintable():
        raise StepError(f"the record for {topic!r}: {name!r} cannot be a header's name, which is text that can be printed")
    return name


def _value_bytes(topic: str, value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json_result(f"the record for {topic!r}", value).encode()
