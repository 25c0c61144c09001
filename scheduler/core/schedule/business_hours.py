"""Business hours: `MON-FRI 09:00-17:30`, one text for each set of weekdays; several windows a day are several texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dueline.scheduler.core.schedule.cron_field import DAY_OF_WEEK, parse_field
from dueline.scheduler.core.schedule.cron_trouble import FieldTrouble
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.months import DAY_S

_FORM = re.compile(r"(?:([A-Za-z0-9,-]+) +)?(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
EVERY_DAY = 0x7F


class Window(NamedTuple):
    """Times of day `start` <= t < `end` in seconds, on the weekdays of a mask (bit 0 is Sunday)."""

    weekdays: int
    start: int
    end: int


def parse_weekdays(text: str, *, key: str) -> int:
    """`MON-FRI` or `1-5` as a mask. Raises ScheduleError."""
    try:
        values = parse_field(DAY_OF_WEEK, text.strip(" \t"), None)
    except FieldTrouble as trouble:
        raise ScheduleError(
            f"{key}: {trouble.message}", text=text[:80], position=trouble.at, suggestion=trouble.instead
        ) from None
    if values.marks:
        raise ScheduleError(f"{key}: L and # have no place here", text=text[:80], position=0)
    return values.mask


def parse_windows(texts: Iterable[str], *, key: str) -> tuple[Window, ...]:
    """Reads the texts. A window that ends at or before its start runs over midnight into the next day."""
    windows: list[Window] = []
    for text in texts:
        found = _FORM.fullmatch(text.strip(" \t"))
        if found is None:
            raise ScheduleError(
                f"{key}: {text[:40]!r} is not a window", text=text[:80], position=0, suggestion="MON-FRI 09:00-17:30"
            )
        weekdays = parse_weekdays(found[1], key=key) if found[1] else EVERY_DAY
        start = _time(found[2], found[3], text, key)
        end = _time(found[4], found[5], text, key)
        if start >= DAY_S or end == start:
            raise ScheduleError(f"{key}: the window is empty", text=text[:80], position=0)
        if end > start:
            windows.append(Window(weekdays, start, end))
        else:
            windows.append(Window(weekdays, start, DAY_S))
            if end:
                windows.append(Window((weekdays << 1 | weekdays >> 6) & EVERY_DAY, 0, end))
    return tuple(windows)


def _time(hour: str, minute: str, text: str, key: str) -> int:
    time = int(hour) * 3_600 + int(minute) * 60
    if int(minute) > 59 or time > DAY_S:
        raise ScheduleError(f"{key}: {hour}:{minute} is not a time of day (00:00 to 24:00)", text=text[:80], position=0)
    return time
