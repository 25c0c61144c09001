"""What the measured jobs run: nothing, and a thousand steps of nothing."""

from __future__ import annotations

import time

from dueline.workers.context import AsyncContext, Context


async def nothing(ctx: AsyncContext) -> None:
    """A job of a burst."""


def steps(ctx: Context) -> list[int]:
    """`payload["steps"]` steps, one after the other; returns how long each took, in microseconds."""
    took = []
    for number in range(ctx.payload["steps"]):
        began = time.perf_counter_ns()
        ctx.step(f"step/{number}", _one, number)
        took.append((time.perf_counter_ns() - began) // 1_000)
    return took


def _one(number: int) -> dict[str, object]:
    return {"number": number, "sent": True}
