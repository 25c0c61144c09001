"""What a handler raises to say how its attempt ends, and what dueline raises when a handler asks for what cannot be.

The two that stop a handler from outside derive from BaseException, as asyncio's CancelledError does: a handler's own
`except Exception` around its work must not swallow them.
"""

from __future__ import annotations

from datetime import datetime


class Snooze(Exception):
    """Not now: end this attempt and go on later, with the steps done so far, using up no retry.

    Give `seconds` from now, or `until`, an aware datetime. May be raised or returned.
    """

    def __init__(self, seconds: float | None = None, *, until: datetime | None = None) -> None:
        if (seconds is None) == (until is None):
            raise TypeError("Snooze takes either seconds or until=, an aware datetime")
        if seconds is not None and not 0 <= seconds < 10**9:
            raise ValueError(f"Snooze({seconds!r}): seconds from now, 0 or more")
        if until is not None and until.tzinfo is None:
            raise ValueError(f"Snooze(until={until!r}): needs a time zone, e.g. datetime.now(UTC) + timedelta(hours=1)")
        self.seconds = seconds
        self.until = until
        super().__init__(f"for {seconds} s" if until is None else f"until {until.isoformat()}")

    def until_ms(self, now_ms: int) -> int:
        """The instant meant, given the present one."""
        if self.until is not None:
            return int(self.until.timestamp() * 1000)
        return now_ms + int((self.seconds or 0) * 1000)


class Fail(Exception):
    """Fail the run for good: no retry would help. The message is what people will read."""


class Retry(Exception):
    """Fail this attempt with a message instead of a traceback; retries as the job says."""


class StepError(Exception):
    """A step that cannot be: name used twice or not fit for a key, result that cannot be recorded, refused record.

    Nothing was written for the step. The message names it.
    """


class Interruption(BaseException):
    """The attempt is stopped from outside; let it pass."""


class AttemptClosed(Interruption):
    """This attempt is over (timed out, handed back, or given to another worker): it can record nothing any more."""


class RunCancelled(Interruption):
    """Somebody cancelled the run. Raised by the next call on the context after that."""


class HandlerError(Exception):
    """A handler that cannot be registered. The message says what to write instead."""


class SetupError(Exception):
    """The worker cannot start until a person changes something. The message says what."""
