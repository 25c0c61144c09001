"""Public holidays by country, from the `holidays` package, a year at a time. Its data is pinned like the zone data."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from dueline.scheduler.core.schedule.errors import ScheduleError

_EPOCH = dt.date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 1950, 2100
_KEPT_YEARS = 1_024
_SOME_YEAR = 2026
_FORM = re.compile(r"[A-Z]{2,3}(-[A-Z0-9]{1,4})?")


def check_place(code: str) -> None:
    """Refuses what is not a country (`DE`) or a part of one (`DE-BY`) with known holidays."""
    shown = code[:20]
    if _FORM.fullmatch(code) is None:
        upper = code.strip().upper()
        raise ScheduleError(
            f"calendar.holidays: {shown!r} is not a country such as DE or a part of one such as DE-BY",
            text=code[:80],
            position=0,
            suggestion=upper if _FORM.fullmatch(upper) else None,
        )
    try:
        _year(code, _SOME_YEAR)
    except NotImplementedError as error:
        raise ScheduleError(f"calendar.holidays: {error}", text=code, position=0) from None


def holiday_on(code: str, day: int) -> str | None:
    """The name of the holiday on a day counted from 1970, or None. Years outside 1950-2100 have none."""
    date = dt.date.fromordinal(day + _EPOCH)
    if not _FIRST_YEAR <= date.year <= _LAST_YEAR:
        return None
    return _year(code, date.year).get(day)


@lru_cache(maxsize=_KEPT_YEARS)
def _year(code: str, year: int) -> dict[int, str]:
    # The package takes 0.3 s to load, which only those pay who use it.
    import holidays  # noqa: PLC0415

    country, _, part = code.partition("-")
    # The language is named, or the package would take it from the environment.
    found = holidays.country_holidays(country, subdiv=part or None, years=year, expand=False, language="en_US")
    return {date.toordinal() - _EPOCH: name for date, name in found.items()}
