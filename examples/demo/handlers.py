"""The code of the demo's jobs: what a user would write.

`send_menu` is one function, as if nothing could go wrong: build the menu, send it to everybody, mark the day done. Each
part is a step, so an attempt that follows a crash begins where the log ends. The key that `idempotency_key` gives is the
same in every attempt; a mail server uses it to drop a mail that it has already.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dueline.workers.context import AsyncContext, Context
from examples.demo.outbox import deliver

LANES: Final = 4
"""Mails on their way at the same time; their steps share transactions. At a crash so many may have to be sent again."""

DISHES = ("lentil soup", "mushroom risotto", "baked trout", "spinach lasagne", "potato curry", "stuffed peppers", "dumplings")


async def send_menu(ctx: AsyncContext) -> dict[str, object]:
    """The daily menu, one mail for each of `payload["subscribers"]` subscribers."""
    menu = await ctx.step("build", build_menu, ctx.due.toordinal())
    addresses = [f"subscriber-{number:04}@example.org" for number in range(1, ctx.payload["subscribers"] + 1)]

    def send(to: str) -> None:
        deliver(ctx.due, ctx.job, ctx.attempt, key=ctx.idempotency_key(to), to=to, subject=f"Today: {menu}")

    async def lane(number: int) -> None:
        for address in addresses[number::LANES]:
            await ctx.step(f"send/{address}", send, address)

    await asyncio.gather(*(lane(number) for number in range(LANES)))
    await ctx.step("mark the day done", mark_done, ctx.run_id)
    return {"sent": len(addresses)}


def build_menu(day: int) -> str:
    """The dish of the day."""
    return DISHES[day % len(DISHES)]


def mark_done(run: str) -> str:
    """What the calendar in the kitchen gets."""
    return f"{run}: menu is out"


def order_bread(ctx: Context) -> None:
    """One mail to the baker."""
    ctx.step("order", _order, ctx)


def _order(ctx: Context) -> None:
    deliver(ctx.due, ctx.job, ctx.attempt, key=ctx.idempotency_key("baker"), to="baker@example.org", subject="40 loaves, please")
