"""Instants as people write and read them: in UTC, or in the zone they ask for by `--tz`.

Zone rules are those of the schedule engine, never the host's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from dueline.scheduler.core.schedule import ScheduleError
from dueline.scheduler.core.schedule.zone import Zone, load_zone
from dueline.schemas.base import NONE
from dueline.schemas.duration import format_duration, parse_duration
from dueline.schemas.run import iso

NOTHING: Final = "–"
"""What stands in a table where there is no instant."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local readings are told apart from instants by having no zone
_AGO: Final = re.compile(r"-\s*(?P<duration>\S+)|(?P<before>\S+)\s+ago")


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """Shows and reads instants in one zone."""

    zone: Zone

    @classmethod
    def of(cls, name: str) -> Display:
        """Raises ValueError for a zone that does not exist, with the nearest that does."""
        try:
            return cls(zone=load_zone(name))
        except ScheduleError as error:
            raise ValueError(str(error)) from error

    @property
    def name(self) -> str:
        """The zone's name, for table headings."""
        return self.zone.name

    def show(self, instant_ms: int | None) -> str:
        """`2026-11-30 06:00:00` with milliseconds where there are any, and the offset unless the zone is UTC."""
        if instant_ms is None or instant_ms == NONE:
            return NOTHING
        offset_s = self.zone.offset_at(instant_ms // 1000)
        moment = datetime.fromtimestamp(instant_ms / 1000, timezone(timedelta(seconds=offset_s)))
        millis = f".{instant_ms % 1000:03d}" if instant_ms % 1000 else ""
        offset = "" if self.zone.name == "UTC" else moment.strftime("%z")
        return moment.strftime("%Y-%m-%d %H:%M:%S") + millis + offset

    def parse(self, text: str, now_ms: int) -> int:
        """Milliseconds of `now`, `-2h`, `30m ago`, `1h` (ago, too), a date, or a date and time; without an offset in this zone.

        Raises ValueError with the forms that are understood.
        """
        text = text.strip()
        if text == "now":
            return now_ms
        if match := _AGO.fullmatch(text):
            return now_ms - parse_duration(match["duration"] or match["before"])
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            ago = _duration(text)
            if ago is not None:
                return now_ms - ago
            raise ValueError(
                f"{text!r} is no time: write 2026-11-30, 2026-11-30T06:00, 2026-11-30T06:00:00Z, -2h, '30m ago', 1h or now"
            ) from None
        if moment.tzinfo is not None:
            return round((moment - datetime.fromtimestamp(0, UTC)) / timedelta(milliseconds=1))
        wall_ms = round((moment - _EPOCH) / timedelta(milliseconds=1))
        return self.zone.first_instant(wall_ms // 1000) * 1000 + wall_ms % 1000


def _duration(text: str) -> int | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None


def instant(instant_ms: int | None) -> str | None:
    """The form of JSON output: always UTC, null where there is none."""
    return None if instant_ms is None or instant_ms == NONE else iso(instant_ms)


def took(start_ms: int, end_ms: int) -> str:
    """How long something took, or nothing when either end is unknown."""
    if NONE in (start_ms, end_ms):
        return NOTHING
    return format_duration(max(0, end_ms - start_ms))
