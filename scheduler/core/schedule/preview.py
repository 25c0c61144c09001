"""The next due times as rows to show: in UTC, in local time with its offset, and with a remark where the clocks change."""

from __future__ import annotations

from typing import NamedTuple

from dueline.scheduler.core.schedule.moment_text import instant_text, offset_text, reading_text
from dueline.scheduler.core.schedule.months import DAY_S, weekday_of
from dueline.scheduler.core.schedule.schedule import Schedule
from dueline.scheduler.core.schedule.zone import Zone

_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_NOTHING = "\N{EN DASH}"


class PreviewRow(NamedTuple):
    """A due time (`due` in ms), or None for a time that is left out; then the remark says which and why."""

    due: int | None
    utc: str
    local: str
    remark: str


def preview(schedule: Schedule, *, start: int, count: int, zone: Zone) -> list[PreviewRow]:
    """The first `count` due times from `start` (ms) on, shown in `zone`, and what a change of the clocks leaves out
    between them."""
    rows: list[PreviewRow] = []
    since, due = start, schedule.next_after(start - 1)
    while due is not None and len(rows) < 2 * count and sum(row.due is not None for row in rows) < count:
        for change in schedule.clock_changes(since, due):
            if change.skips and schedule.next_after(change.instant - 1) != change.instant:
                rows.append(PreviewRow(None, _NOTHING, _NOTHING, change.remark))
        rows.append(PreviewRow(due, instant_text(due // 1_000), _local(due // 1_000, zone), schedule.remark(due) or ""))
        since, due = due + 1, schedule.next_after(due)
    return rows


def _local(instant: int, zone: Zone) -> str:
    offset = zone.offset_at(instant)
    wall = instant + offset
    return f"{_WEEKDAYS[weekday_of(wall // DAY_S)]} {reading_text(wall)} {offset_text(offset)}"
