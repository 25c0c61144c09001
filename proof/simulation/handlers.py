"""What the jobs of a simulated workload do: plain functions that wait in virtual time and note each effect in memory.

How long a step takes follows from run, step and attempt alone, so that a fault elsewhere does not change it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

from dueline.workers.context import Context
from proof.history.acts import Conduct, Effect
from proof.simulation.kernel import Kernel

ORDERS: Final = "shop.orders"
"""A user's topic, that steps of `orders` produce to."""

RESULT: Final = '"$key"'
"""A step returns its idempotency key."""

CONDUCTS: Final[Mapping[str, Conduct]] = {
    "ping": Conduct(),
    "steps": Conduct(steps=("build", "send", "report"), result=RESULT),
    "orders": Conduct(
        steps=("reserve", "ship"), produces=ORDERS, result=RESULT, produced='{"run": "$run", "step": "$step"}'
    ),
    "slow": Conduct(steps=("first", "second"), result=RESULT),
    "fails": Conduct(fails=True, failure="exception"),
}

LENGTHS_S: Final[Mapping[str, tuple[float, float]]] = {
    "ping": (0.0, 0.2), "steps": (0.1, 3.0), "orders": (0.05, 1.0), "slow": (8.0, 20.0), "fails": (0.0, 0.5),
}  # fmt: skip
"""Of a step, or of a body without steps: the shortest and the longest, in seconds."""


class Handlers:
    """The handlers of a world. `effects`: all that they did, in the order done."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.effects: list[Effect] = []

    def functions(self) -> dict[str, Callable[[Context], object]]:
        """By the names jobs use."""
        return {name: self._function(name, conduct) for name, conduct in CONDUCTS.items()}

    def _function(self, name: str, conduct: Conduct) -> Callable[[Context], object]:
        def handle(ctx: Context) -> object:
            for step in conduct.steps:
                ctx.step(step, self._work, ctx, name, step)
            if not conduct.steps:
                self._work(ctx, name, "")
            if conduct.fails:
                raise RuntimeError("this handler always fails")
            return len(conduct.steps)

        return handle

    def _work(self, ctx: Context, name: str, step: str) -> str:
        """Half of the time, the effect, the other half: a process may end before and after it."""
        shortest, longest = LENGTHS_S[name]
        part = zlib.crc32(f"{ctx.run_id}/{step}/{ctx.attempt}".encode()) / 2**32
        half_s = (shortest + part * (longest - shortest)) / 2
        key = ctx.idempotency_key(None if step else "body")
        began_ms = int(self._kernel.true_ms())
        self._kernel.wait(half_s)
        self.effects.append(
            Effect(
                job=ctx.job,
                due_ms=round(ctx.due.timestamp() * 1000),
                step=step,
                key=key,
                run=ctx.run_id,
                attempt=ctx.attempt,
                at_ms=int(self._kernel.true_ms()),
                process=self._kernel.current.host.name,
                began_ms=began_ms,
            )
        )
        topic = CONDUCTS[name].produces
        if topic:
            ctx.produce(topic, {"run": ctx.run_id, "step": step}, key=key)
        self._kernel.wait(half_s)
        return key
