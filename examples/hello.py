"""The smallest handler: it says which run it is."""

from __future__ import annotations

from typing import Any


def hello(ctx: Any) -> dict[str, Any]:
    """Print one line; what a handler returns is kept with its run."""
    print(f"hello from run {ctx.run_id}, attempt {ctx.attempt}, due {ctx.due}")
    return {"attempt": ctx.attempt}
