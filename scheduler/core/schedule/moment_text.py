"""Instants and readings as text: `2026-03-08 02:30`, `2026-03-08T07:00:00Z`, `-05:00`."""

from __future__ import annotations

from dueline.scheduler.core.schedule.months import DAY_S, date_of


def reading_text(wall: int) -> str:
    """A local reading in seconds; seconds of the minute are shown where there are any."""
    day, time = divmod(wall, DAY_S)
    date = date_of(day)
    return f"{date.year:04}-{date.month:02}-{date.day:02} {time_text(time)}"


def time_text(time: int) -> str:
    """A time of day in seconds."""
    seconds = f":{time % 60:02}" if time % 60 else ""
    return f"{time // 3_600:02}:{time // 60 % 60:02}{seconds}"


def instant_text(instant: int) -> str:
    """An instant in seconds, in UTC."""
    day, time = divmod(instant, DAY_S)
    date = date_of(day)
    return f"{date.year:04}-{date.month:02}-{date.day:02}T{time // 3_600:02}:{time // 60 % 60:02}:{time % 60:02}Z"


def offset_text(offset: int) -> str:
    """An offset from UTC in seconds."""
    sign, size = "-" if offset < 0 else "+", abs(offset)
    seconds = f":{size % 60:02}" if size % 60 else ""
    return f"{sign}{size // 3_600:02}:{size // 60 % 60:02}{seconds}"


def length_text(seconds: int) -> str:
    """A length of time in its largest whole units."""
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {name}" + ("" if count == 1 else "s")
    return f"{seconds} seconds"
