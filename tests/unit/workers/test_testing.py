"""The context by the means that users test their handlers with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

import dueline
from dueline import AsyncContext, Context, Crash, Fail, RunCancelled, Snooze, StepError, TestContext
from dueline.schemas.work import Outcome
from dueline.workers.attempt import STEP
from dueline.workers.logging import CURRENT, AttemptFilter
from dueline.workers.outcome import MAX_TRACEBACK, ended_by_error, ended_by_value
from dueline.workers.registry import HandlerFunction


def send_all(ctx: Context) -> int:
    people = ctx.step("people", lambda: ["ann", "bob", "cid"])
    return len(ctx.each("send", people, lambda person: ctx.produce("mails", person, key=ctx.idempotency_key(person))))


def test_a_run_goes_on_after_the_step_it_crashed_after() -> None:
    ctx = TestContext()
    ctx.crash_after("send/ann")
    with pytest.raises(Crash):
        ctx.run(send_all)
    assert list(ctx.steps) == ["people", "send/ann"]
    assert ctx.resume(send_all) == 3
    assert ctx.skipped == ["people", "send/ann"]
    assert [record.value for record in ctx.produced] == [b"ann", b"bob", b"cid"]
    assert [record.key for record in ctx.produced] == [f"{ctx.run_id}/{name}".encode() for name in ("ann", "bob", "cid")]
    assert ctx.attempts == 2


def test_a_step_in_flight_at_a_crash_is_done_twice_with_the_same_key() -> None:
    keys: list[str] = []

    def handler(ctx: Context) -> None:
        ctx.step("send", lambda: keys.append(ctx.idempotency_key()))

    ctx = TestContext()
    ctx.crash_during("send")
    with pytest.raises(Crash):
        ctx.run(handler)
    assert ctx.steps == {}
    ctx.resume(handler)
    assert keys == [f"{ctx.run_id}/send"] * 2


def test_the_facts_of_a_run_are_the_same_in_every_attempt() -> None:
    seen: list[object] = []

    def handler(ctx: Context) -> None:
        seen.append((ctx.run_id, ctx.job, ctx.due, ctx.payload))
        seen.append(ctx.attempt)

    due = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    ctx = TestContext(due=due, payload={"kitchen": "north"}, job="menu")
    ctx.run(handler)
    ctx.resume(handler)
    assert seen[0] == seen[2] == ("menu@2026-03-29T01:30:00Z", "menu", due, {"kitchen": "north"})
    assert (seen[1], seen[3]) == (1, 2)


def test_a_result_is_the_same_when_recorded_and_when_read_back() -> None:
    def handler(ctx: Context) -> object:
        return [ctx.step("pair", lambda: (1, 2)), ctx.step("bytes", lambda: b"x").decode()]

    ctx = TestContext()
    assert ctx.run(handler) == ctx.resume(handler) == [[1, 2], "x"]


def twice(ctx: Context) -> None:
    ctx.step("one", lambda: 1)
    ctx.step("one", lambda: 1)


def nested(ctx: Context) -> None:
    ctx.step("outer", lambda: ctx.step("inner", lambda: 1))


def same_key(ctx: Context) -> None:
    ctx.each("send", ["ann", "ann"], lambda person: None)


def no_key(ctx: Context) -> None:
    ctx.each("send", [{"id": 1}], lambda person: None)


def not_json(ctx: Context) -> None:
    ctx.step("one", lambda: {1, 2})


async def a_coroutine() -> int:
    return 1


def asynchronous(ctx: Context) -> None:
    function: Callable[[], object] = a_coroutine
    ctx.step("one", function)


def outside(ctx: Context) -> None:
    ctx.produce("mails", "x")


def large(ctx: Context) -> None:
    def produce() -> None:
        for _ in range(10):
            ctx.produce("mails", b"x" * 100_000)

    ctx.step("one", produce)


def odd_value(ctx: Context) -> None:
    ctx.step("one", lambda: ctx.produce("mails", object()))


def keyless(ctx: Context) -> None:
    ctx.idempotency_key()


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (twice, r"step 'one'.*used before"),
        (nested, r"step 'inner'.*inside step 'outer'"),
        (same_key, r"step 'send/ann'.*used before"),
        (no_key, r"each 'send'.*key="),
        (not_json, r"step 'one'.*holds a set"),
        (asynchronous, r"step 'one'.*async def"),
        (outside, r"outside of a step"),
        (large, r"step 'one'.*1,000,000 bytes"),
        (odd_value, r"record for 'mails'"),
        (keyless, r"say which effect"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_nothing_goes_out(handler: HandlerFunction, says: str) -> None:
    ctx = TestContext()
    with pytest.raises(StepError, match=says):
        ctx.run(handler)
    assert ctx.produced == []
    assert STEP.get() is None


def test_a_cancelled_run_stops_at_its_next_call_and_not_before() -> None:
    done: list[str] = []

    def handler(ctx: Context) -> None:
        try:
            ctx.step("one", lambda: done.append("one"))
            assert ctx.cancelled
            ctx.step("two", lambda: done.append("two"))
        except Exception:  # noqa: BLE001 - a handler that swallows what it can
            done.append("swallowed")

    ctx = TestContext()
    ctx.cancel_after("one")
    with pytest.raises(RunCancelled):
        ctx.run(handler)
    assert done == ["one"]
    assert list(ctx.steps) == ["one"]


def test_a_context_kept_after_the_end_records_nothing() -> None:
    kept: list[Context] = []
    ctx = TestContext()
    ctx.run(kept.append)
    with pytest.raises(dueline.AttemptClosed):
        kept[0].step("late", lambda: 1)
    assert ctx.steps == {}


def test_asynchronous_handlers_may_run_steps_side_by_side() -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)  # awaited: another task's turn
        return 2 * number

    async def handler(ctx: AsyncContext) -> object:
        first = await asyncio.gather(*(ctx.step(f"part/{n}", double, n) for n in range(3)))
        return [first, await ctx.each("plain", [5], lambda n: n)]

    ctx = TestContext()
    ctx.crash_after("plain/5")
    with pytest.raises(Crash):
        ctx.run(handler)
    assert ctx.resume(handler) == [[0, 2, 4], [5]]
    assert ctx.skipped == ["part/0", "part/1", "part/2", "plain/5"]


def test_how_an_attempt_ends_is_told_by_what_its_handler_does() -> None:
    assert ended_by_value({"a": 1}, 0).result == '{"a":1}'
    bad = ended_by_value(object(), 0)
    assert (bad.outcome, bad.reason, bad.retryable) == (Outcome.FAILURE, "result", False)
    for snoozed in (ended_by_value(Snooze(60), 5), ended_by_error(Snooze(60), 5)):
        assert (snoozed.outcome, snoozed.until_ms) == (Outcome.SNOOZE, 60_005)
    until = Snooze(until=datetime(2026, 1, 1, tzinfo=UTC))
    assert ended_by_error(until, 5).until_ms == 1_767_225_600_000
    assert not ended_by_error(Fail("no such menu"), 0).retryable
    assert ended_by_error(Fail("no such menu"), 0).error == "no such menu"
    assert ended_by_error(RunCancelled("x"), 0).outcome == Outcome.CANCELLED
    with pytest.raises(TypeError):
        Snooze()
    with pytest.raises(ValueError, match="time zone"):
        Snooze(until=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused


def test_a_traceback_is_bounded_and_keeps_both_ends() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    try:
        raise RuntimeError("the cause " + "x" * 100_000 + " the end")
    except RuntimeError as error:
        text = ended_by_error(error, 0).error
    assert len(text) <= MAX_TRACEBACK
    assert text.startswith("Traceback")
    assert text.rstrip().endswith("the end")
    assert "Odd" in ended_by_error(Odd(), 0).error


def test_log_lines_carry_run_and_attempt() -> None:
    record = logging.LogRecord("any", logging.INFO, "f", 1, "hello", None, None)
    token = CURRENT.set(("menu@x", 2))
    try:
        assert AttemptFilter().filter(record)
    finally:
        CURRENT.reset(token)
    assert (vars(record)["run"], vars(record)["attempt"]) == ("menu@x", 2)
    assert vars(record)["where"] == "[menu@x attempt 2] "
