"""How an attempt ends, from what its handler returned or raised. Decided here once; the rest passes it on."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Final

from dueline.schemas.base import NONE
from dueline.schemas.work import Outcome
from dueline.workers.errors import Fail, Interruption, Retry, RunCancelled, Snooze, StepError
from dueline.workers.steps import json_result

MAX_TRACEBACK: Final = 16 * 1024
"""Characters of a recorded traceback: its head and, more, its tail, where the cause stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt's end as its `finished` event tells it. `result` is JSON text."""

    outcome: Outcome
    reason: str = ""
    error: str = ""
    retryable: bool = True
    result: str = ""
    until_ms: int = NONE


TIMED_OUT: Final = "timeout"
STEPS_EXPIRED: Final = "steps_expired"
DRAINED: Final = "drain"


def ended_by_value(value: object, now_ms: int) -> Ended:
    """The handler returned this."""
    if isinstance(value, Snooze):
        return _snoozed(value, now_ms)
    try:
        return Ended(outcome=Outcome.SUCCESS, result=json_result("the handler's return value", value))
    except StepError as error:
        return Ended(outcome=Outcome.FAILURE, reason="result", error=str(error), retryable=False)


def ended_by_error(error: BaseException, now_ms: int) -> Ended:
    """The handler raised this."""
    match error:
        case Snooze():
            return _snoozed(error, now_ms)
        case Fail():
            return Ended(outcome=Outcome.FAILURE, reason="failed", error=_message(error), retryable=False)
        case Retry():
            return Ended(outcome=Outcome.FAILURE, reason="retry", error=_message(error))
        case RunCancelled():
            return Ended(outcome=Outcome.CANCELLED, reason=_message(error) or "cancelled")
        case Interruption():
            return Ended(outcome=Outcome.INTERRUPTED, reason=_message(error))
        case _:
            reason = "step" if isinstance(error, StepError) else "exception"
            return Ended(outcome=Outcome.FAILURE, reason=reason, error=bounded_traceback(error))


def bounded_traceback(error: BaseException) -> str:
    """The traceback, at most MAX_TRACEBACK characters of it."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception as broken:  # noqa: BLE001 - a handler's exception may fail to describe itself
        text = f"{type(error).__name__} (its text fails: {type(broken).__name__})"
    return _bounded(text)


def _message(error: BaseException) -> str:
    """What the handler said, as a record can carry it: a message may be as large as a response, or hold half a surrogate pair."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - a handler's exception may fail to describe itself
        text = f"{type(error).__name__} (its text fails: {type(broken).__name__})"
    return _bounded(text)


def _bounded(text: str) -> str:
    text = text.encode(errors="replace").decode()
    if len(text) <= MAX_TRACEBACK:
        return text
    head, tail = text[: MAX_TRACEBACK // 4], text[-(MAX_TRACEBACK * 3 // 4 - 60) :]
    return f"{head}\n... {len(text) - len(head) - len(tail):,} characters left out ...\n{tail}"


def _snoozed(snooze: Snooze, now_ms: int) -> Ended:
    return Ended(outcome=Outcome.SNOOZE, reason=_message(snooze), until_ms=snooze.until_ms(now_ms))
