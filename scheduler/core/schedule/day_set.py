"""Days as people list them in a calendar: `2026-12-31`, `2026-12-24..2027-01-02`, every year `12-31` or `12-24..01-02`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.moment import parse_moment
from dueline.scheduler.core.schedule.months import DAY_S, date_of

_YEARLY = re.compile(r"(\d{2})-(\d{2})(?:\.\.(\d{2})-(\d{2}))?")
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class DaySet:
    """Named days; each is found again with the text that put it in."""

    __slots__ = ("_ends", "_singles", "_spans", "_starts", "_yearly", "texts")

    def __init__(self, texts: Iterable[str], *, key: str) -> None:
        self.texts = tuple(texts)
        self._singles: dict[int, str] = {}
        self._yearly: dict[tuple[int, int], str] = {}
        spans: list[tuple[int, int, str]] = []
        for text in self.texts:
            self._add(text.strip(" \t"), text, spans, key)
        self._spans = sorted(spans)
        self._starts = [span[0] for span in self._spans]
        self._ends = [0] * len(self._spans)  # the latest end so far, so that nested ranges are found too
        for index, (_, end, _text) in enumerate(self._spans):
            self._ends[index] = max(end, self._ends[index - 1] if index else end)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def find(self, day: int) -> str | None:
        """The text that names a day counted from 1970, or None."""
        single = self._singles.get(day)
        if single is not None:
            return single
        if self._yearly:
            date = date_of(day)
            yearly = self._yearly.get((date.month, date.day))
            if yearly is not None:
                return yearly
        index = bisect_right(self._starts, day) - 1
        while index >= 0 and self._ends[index] >= day:
            if self._spans[index][1] >= day:
                return self._spans[index][2]
            index -= 1
        return None

    def end_of(self, day: int) -> int:
        """The last day of the stretch around a named day that one text names."""
        index = bisect_right(self._starts, day) - 1
        return max([day, *(end for _, end, _ in self._spans[: index + 1][-8:] if end >= day)])

    def start_of(self, day: int) -> int:
        """The first day of such a stretch."""
        index = bisect_right(self._starts, day) - 1
        return min([day, *(start for start, end, _ in self._spans[: index + 1][-8:] if end >= day)])

    def next_from(self, day: int) -> int | None:
        """The first named day that is `day` or later; None if there is none (yearly days always come)."""
        if self._yearly or self.find(day) is not None:
            return day
        later = [each for each in (*self._singles, *self._starts) if each >= day]
        return min(later, default=None)

    def last_to(self, day: int) -> int | None:
        """The last named day that is `day` or earlier."""
        if self._yearly or self.find(day) is not None:
            return day
        earlier = [each for each in (*self._singles, *(end for _, end, _ in self._spans)) if each <= day]
        return max(earlier, default=None)

    def _add(self, bare: str, text: str, spans: list[tuple[int, int, str]], key: str) -> None:
        yearly = _YEARLY.fullmatch(bare)
        if yearly is not None:
            first = _month_day(yearly[1], yearly[2], text, key)
            last = _month_day(yearly[3], yearly[4], text, key) if yearly[3] else first
            self._yearly.update((each, text) for each in _through_the_year(first, last))
            return
        first_text, dots, last_text = bare.partition("..")
        first_day = _day(first_text, text, key)
        if not dots:
            self._singles[first_day] = text
            return
        last_day = _day(last_text, text, key)
        if last_day < first_day:
            raise ScheduleError(
                f"{key}: the range runs backwards", text=text, position=0, suggestion=f"{last_text}..{first_text}"
            )
        spans.append((first_day, last_day, text))


def _day(text: str, whole: str, key: str) -> int:
    try:
        moment = parse_moment(text, key=key)
    except ScheduleError:
        moment = None
    if moment is None or not moment.whole_day:
        raise ScheduleError(
            f"{key}: {text[:40]!r} is not a day; write 2026-12-31, 2026-12-24..2027-01-02, or 12-31 for every year",
            text=whole[:80],
            position=max(0, whole.find(text)),
        )
    return moment.wall // DAY_S


def _month_day(month: str, day: str, text: str, key: str) -> tuple[int, int]:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= _LONGEST_MONTHS[int(month) - 1]):
        raise ScheduleError(f"{key}: no year has the date {month}-{day}", text=text, position=max(0, text.find(month)))
    return int(month), int(day)


def _through_the_year(first: tuple[int, int], last: tuple[int, int]) -> list[tuple[int, int]]:
    """The dates from one to another, over New Year if need be."""
    dates = [(month, day) for month in range(1, 13) for day in range(1, _LONGEST_MONTHS[month - 1] + 1)]
    if first <= last:
        return [date for date in dates if first <= date <= last]
    return [date for date in dates if date >= first or date <= last]
