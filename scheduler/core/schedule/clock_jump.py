"""Where a schedule goes on after the clock was set: a pure function of the last due time that ran and of now."""

from __future__ import annotations

from typing import NamedTuple

from dueline.scheduler.core.schedule.schedule import Schedule

TOLERATED_MS = 5 * 60_000
"""A clock this far behind the last due time that ran is skew or a leap second: wait, and repeat nothing."""


class Resumption(NamedTuple):
    """`due` (ms) is the first due time to run, at or before now if it is late, None if there is none; `alarm` says that
    the clock went back by more than is tolerated, so that due times may come a second time."""

    due: int | None
    alarm: bool


def resume(schedule: Schedule, *, last_ran: int, now: int) -> Resumption:
    """Forward, as after any downtime: the latest missed due time, else the next. Back a little: the next after the last
    that ran. Back by more: the next after now, with an alarm. All in ms."""
    if now >= last_ran:
        missed = schedule.previous_before(now + 1)
        return Resumption(missed if missed is not None and missed > last_ran else schedule.next_after(now), False)
    if last_ran - now <= TOLERATED_MS:
        return Resumption(schedule.next_after(last_ran), False)
    return Resumption(schedule.next_after(now), True)
