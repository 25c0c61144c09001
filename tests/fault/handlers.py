"""The code of the fault tests' jobs. Every step has one effect, under the idempotency key of its step."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Final

from dueline.scheduler.kafka import failpoints
from dueline.workers.context import Context
from tests.fault.outbox import ENVIRONMENT, happen

GATE_ENVIRONMENT: Final = "FAULT_GATE"
LOOK_S: Final = 0.02


def tick(ctx: Context) -> None:
    """One step."""
    ctx.step("send", effect, ctx, "send")


def many(ctx: Context) -> int:
    """`payload` steps, one after the other."""
    return len(ctx.each("item", range(ctx.payload), lambda number: effect(ctx, f"item/{number}")))


def doomed(ctx: Context) -> int:
    """`payload["steps"]` steps, and the process is killed at some of them: `payload["kills"]` says where, and how."""

    def step(number: int) -> str:
        how = ctx.payload["kills"].get(str(number))
        armed = how is not None and first_time(f"{ctx.run_id}-{number}")
        if armed and how == "before":
            die()
        done = effect(ctx, f"item/{number}")
        if armed and how == "after":
            die()
        if armed and how == "soon":
            threading.Timer(random.uniform(0.0, 0.005), die).start()
        elif armed:
            failpoints.arm(f"{how}=kill")
        return done

    return len(ctx.each("item", range(ctx.payload["steps"]), step))


def first_time(name: str) -> bool:
    """Whether nobody has asked this before, in any process."""
    marker = Path(f"{os.environ[ENVIRONMENT]}.{name.replace('/', '_')}")
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def die() -> None:
    """As if the power failed."""
    os.kill(os.getpid(), signal.SIGKILL)


def bare(ctx: Context) -> str:
    """No step: waits for the gate to open, and ends."""
    happen(ctx.run_id, ctx.attempt, "", ctx.idempotency_key("bare"))
    gate = Path(os.environ[GATE_ENVIRONMENT])
    while not gate.exists():
        ctx.check()
        time.sleep(LOOK_S)  # awaited: the gate's file
    return "done"


def effect(ctx: Context, step: str) -> str:
    """What can't be taken back."""
    happen(ctx.run_id, ctx.attempt, step, ctx.idempotency_key())
    return step
