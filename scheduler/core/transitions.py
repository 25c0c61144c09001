"""The life cycle of a run as one table: who may follow whom, and why. The diagram in docs/states.md is drawn from it."""

from __future__ import annotations

from typing import Final

from dueline.schemas.run import RunState

S = RunState

START: Final = ""
"""Where a run comes from that has no record yet."""

TRANSITIONS: Final[dict[tuple[str, str], str]] = {
    (START, S.SKIPPED): "passed over by policy",
    (START, S.WAITING): "due, cannot be offered yet",
    (START, S.DISPATCHED): "offered",
    (START, S.CANCELLED): "triggered and cancelled before it was offered",
    (S.WAITING, S.WAITING): "waits for something else",
    (S.WAITING, S.DISPATCHED): "offered",
    (S.WAITING, S.SKIPPED): "its due time passed to a version that does not have it, or to a pause",
    (S.WAITING, S.CANCELLED): "cancel command",
    (S.DISPATCHED, S.DISPATCHED): "nobody answered: offered again as the next attempt",
    (S.DISPATCHED, S.WAITING): "declined, or taken back",
    (S.DISPATCHED, S.RUNNING): "claim read, granted",
    (S.DISPATCHED, S.SKIPPED): "taken back, no version has the due time",
    (S.DISPATCHED, S.CANCELLED): "cancel command",
    (S.RUNNING, S.RUNNING): "asked back or cancelled, answer pending",
    (S.RUNNING, S.WAITING): "retry, snooze, interrupted, declined, worker lost",
    (S.RUNNING, S.DISPATCHED): "given back and offered again",
    (S.RUNNING, S.SUCCEEDED): "finished",
    (S.RUNNING, S.FAILED): "finished, no retry left",
    (S.RUNNING, S.CANCELLED): "cancelled",
    (S.RUNNING, S.SKIPPED): "given back, no version has the due time",
}

TERMINAL: Final = frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED, S.SKIPPED})
"""A run in one of these never changes again."""


class ForbiddenTransition(Exception):
    """The planner tried what the table does not have: a bug, never a user's doing."""


def check(run: str, before: str, after: str) -> None:
    """Raise unless the table has before → after. A terminal state follows itself: records may be applied twice."""
    if (before, after) in TRANSITIONS or (before == after and before in TERMINAL):
        return
    raise ForbiddenTransition(f"run {run}: {before or 'no record'} -> {after} is not in the table of transitions")


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for (before, after), why in TRANSITIONS.items():
        if before != after:
            lines.append(f"    {before or '[*]'} --> {after}: {why}")
    lines += [f"    {state} --> [*]" for state in sorted(TERMINAL)]
    return "\n".join(lines)
