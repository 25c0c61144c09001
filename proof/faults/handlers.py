"""The code of the workload's jobs. Every step has one effect under the idempotency key of its step; `CONDUCTS` says what a run
of each handler leaves behind."""

from __future__ import annotations

import os
import threading
import zlib
from typing import Any, Final

from dueline.workers.context import Context
from dueline.workers.errors import Fail, Retry, Snooze
from proof.faults.clock import now_ms
from proof.faults.effects import happen
from proof.history.acts import Conduct, Conducts

TOPIC_ENVIRONMENT: Final = "PROOF_POSTS"
SHORT, LONG = 5, 9
"""Steps of the two walks."""
NAP_MS: Final = 2_000
PACE_S: Final = 0.06
MOODY: Final = 2
"""Attempts that fail before one succeeds."""
SNOOZE_S: Final = 1.0
A_STEP_MS: Final = 1_000
"""More than a step and its commit take on an idle machine."""
MODULE: Final = "proof.faults.handlers"


def conducts(posts: str) -> Conducts:
    """What each handler does. `posts`: the topic to which `post` produces."""
    def conduct(*steps: str, still_ms: int = 0, **fields: Any) -> Conduct:
        return Conduct(steps=steps, result='"$step"', takes_ms=still_ms + A_STEP_MS * (1 + len(steps)), **fields)

    return {
        "tick": conduct("send"),
        "nap": conduct("begin", "end", still_ms=NAP_MS),
        "walk": conduct(*(f"item/{number}" for number in range(SHORT))),
        "trek": conduct(*(f"item/{number}" for number in range(LONG))),
        "post": conduct("post", produces=posts, produced="$run"),
        "flop": conduct("try", fails=True, failure="failed"),
        "moody": conduct("begin", "end", flaky=MOODY, failure="retry"),
        "sleepy": conduct("begin", "end", snoozes=1, snooze_ms=round(SNOOZE_S * 1000)),
        "stuck": Conduct(steps=("begin",), result='"$step"', hangs=True),
    }


def tick(ctx: Context) -> None:
    """One step."""
    ctx.step("send", effect, ctx, "send")


def nap(ctx: Context) -> None:
    """Two steps, and up to two seconds between them, different for each due time."""
    ctx.step("begin", effect, ctx, "begin")
    still(ctx, zlib.crc32(ctx.run_id.encode()) % NAP_MS / 1000)
    ctx.step("end", effect, ctx, "end")


def walk(ctx: Context) -> int:
    """A few steps, one after the other."""
    return stroll(ctx, SHORT)


def trek(ctx: Context) -> int:
    """More steps."""
    return stroll(ctx, LONG)


def post(ctx: Context) -> None:
    """A step with an effect, and a record that goes out with the step's completion."""
    ctx.step("post", write, ctx)


def flop(ctx: Context) -> None:
    """A step, and then the end of it."""
    ctx.step("try", effect, ctx, "try")
    raise Fail("as this handler always does")


def moody(ctx: Context) -> None:
    """Two steps, and between them the first attempts fail."""
    ctx.step("begin", effect, ctx, "begin")
    if ctx.attempt <= MOODY:
        raise Retry("not in the mood")
    ctx.step("end", effect, ctx, "end")


def sleepy(ctx: Context) -> None:
    """Two steps, and between them the first attempt asks to be called again later."""
    ctx.step("begin", effect, ctx, "begin")
    if ctx.attempt == 1:
        raise Snooze(SNOOZE_S)
    ctx.step("end", effect, ctx, "end")


def stuck(ctx: Context) -> None:
    """A step, and then nothing until somebody ends it: its time-out, or a cancel."""
    ctx.step("begin", effect, ctx, "begin")
    while True:
        still(ctx, PACE_S)


# --- steps ------------------------------------------------------------------------------------------------------------


def stroll(ctx: Context, steps: int) -> int:
    """So many steps with a little time in each, so that a kill finds one in flight."""

    def item(number: int) -> str:
        began_ms = now_ms()
        still(ctx, PACE_S)
        return effect(ctx, f"item/{number}", began_ms)

    return len(ctx.each("item", range(steps), item))


def write(ctx: Context) -> str:
    """The effect and the record."""
    done = effect(ctx, "post")
    ctx.produce(os.environ[TOPIC_ENVIRONMENT], ctx.run_id.encode(), key=ctx.idempotency_key().encode())
    return done


def still(ctx: Context, seconds: float) -> None:
    """Take some time."""
    threading.Event().wait(seconds)
    ctx.check()


def effect(ctx: Context, step: str, began_ms: int = -1) -> str:
    """What can't be taken back. `began_ms`: when the step was called, if it has done anything before; else that is now."""
    happen(
        job=ctx.job, due_ms=round(ctx.due.timestamp() * 1000), step=step, key=ctx.idempotency_key(), run=ctx.run_id,
        attempt=ctx.attempt, began_ms=now_ms() if began_ms < 0 else began_ms,
    )  # fmt: skip
    return step
