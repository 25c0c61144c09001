"""Local time: which instants a wall clock's reading stands for. Rules from the pinned `tzdata`, by way of `zoneinfo`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - readings of a wall clock have no zone
LONGEST_GAP_S: Final = 3 * 3600
"""A longer gap is a day struck from the calendar: nothing is due in it."""


@lru_cache(maxsize=64)
def zone(name: str) -> ZoneInfo:
    """The zone of this name, as the pinned package has it. Raises ValueError."""
    folder = files("tzdata.zoneinfo")
    try:
        with folder.joinpath(*name.split("/")).open("rb") as stream:
            return ZoneInfo.from_file(stream, key=name)
    except (OSError, ValueError) as error:
        raise ValueError(f"unknown zone {name!r}") from error


def wall(seconds: int, where: ZoneInfo) -> int:
    """What a wall clock shows at this instant, as seconds since its own 1970."""
    local = datetime.fromtimestamp(seconds, UTC).astimezone(where).replace(tzinfo=None)
    return round((local - EPOCH).total_seconds())


@lru_cache(maxsize=1 << 16)  # each version of a job asks for the same days again
def instants(reading: int, where: ZoneInfo) -> tuple[int, ...]:
    """The instants at which a wall clock shows this: one, two where it was set back, none where it was set forward."""
    found = {candidate for candidate in _candidates(reading, where) if wall(candidate, where) == reading}
    return tuple(sorted(found))


def after_gap(reading: int, where: ZoneInfo) -> int | None:
    """The first instant after the gap that swallowed this reading; None for a gap that strikes out a day."""
    low, high = min(_candidates(reading, where)), max(_candidates(reading, where))
    if high - low > LONGEST_GAP_S:
        return None
    while high - low > 1:  # the clock is set between the two: find where
        middle = (low + high) // 2
        if wall(middle, where) > reading:
            high = middle
        else:
            low = middle
    return high


def _candidates(reading: int, where: ZoneInfo) -> tuple[int, int]:
    local = EPOCH + timedelta(seconds=reading)
    both = (local.replace(tzinfo=where, fold=fold) for fold in (0, 1))
    first, second = (round(each.timestamp()) for each in both)
    return first, second
