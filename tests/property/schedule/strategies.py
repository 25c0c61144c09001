"""Cron expressions with what they mean, zones and instants, for the property tests.

Each field comes as its text together with the set of values it names, so that no test needs the parser under test, or
another one, to know what an expression means.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from dueline.scheduler.core.schedule.zone_file import zone_names

HARD_ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Chatham",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "America/Havana",
    "Asia/Beirut",
    "Africa/Cairo",
    "America/St_Johns",
    "America/Scoresbysund",
    "Asia/Tehran",
    "America/Santiago",
    "Atlantic/Azores",
    "Pacific/Apia",
    "Asia/Gaza",
)
ZONES = st.sampled_from(HARD_ZONES) | st.sampled_from(sorted(zone_names()))
FIRST = int(datetime(1995, 1, 1, tzinfo=UTC).timestamp()) * 1_000
LAST = int(datetime(2045, 1, 1, tzinfo=UTC).timestamp()) * 1_000
INSTANTS = st.integers(FIRST, LAST)


@cache
def zone_info(name: str) -> ZoneInfo:
    """The standard library's reading of the same pinned zone file."""
    with importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@dataclass(frozen=True, kw_only=True)
class FieldCase:
    """A field's text and the values it names."""

    text: str
    values: frozenset[int] = field(repr=False)

    @property
    def star(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True, kw_only=True)
class CronCase:
    """An expression of five fields and what they name; days of the week from Sunday = 0."""

    minute: FieldCase
    hour: FieldCase
    day: FieldCase
    month: FieldCase
    weekday: FieldCase

    @property
    def fields(self) -> tuple[FieldCase, ...]:
        return (self.minute, self.hour, self.day, self.month, self.weekday)

    @property
    def text(self) -> str:
        return " ".join(each.text for each in self.fields)

    @property
    def elapsed(self) -> bool:
        """A wildcard job."""
        return self.minute.star or self.hour.star

    def matches(self, local: datetime) -> bool:
        """Whether a local reading is one that the fields name."""
        by_day, by_weekday = local.day in self.day.values, local.isoweekday() % 7 in self.weekday.values
        either = not (self.day.star or self.weekday.star)
        return (
            local.minute in self.minute.values
            and local.hour in self.hour.values
            and local.month in self.month.values
            and (by_day or by_weekday if either else by_day and by_weekday)
        )


def field_case(number: int, low: int, high: int, highest_given: int) -> FieldCase:
    """A field of one to three items, spelled out of one number: cheap to draw, and 0 is the bare star. No number above
    `highest_given` is written, but stars and steps reach `high`."""
    star, number = number % 2, number // 2
    if not star:
        return FieldCase(text="*", values=frozenset(range(low, high + 1)))
    count, number = number % 3 + 1, number // 3
    texts, values = list[str](), set[int]()
    for _ in range(count):
        form, number = number % 5, number // 5
        one, number = number % (highest_given - low + 1) + low, number // (highest_given - low + 1)
        other, number = number % (highest_given - low + 1) + low, number // (highest_given - low + 1)
        step, number = number % (high - low + 2) + 1, number // (high - low + 2)
        first, second = min(one, other), max(one, other)
        text, named = (
            (f"{first}", range(first, first + 1)),
            (f"{first}-{second}", range(first, second + 1)),
            (f"*/{step}", range(low, high + 1, step)),
            (f"{first}-{second}/{step}", range(first, second + 1, step)),
            (f"{first}/{step}", range(first, high + 1, step)),
        )[form]
        texts.append(text)
        values.update(named)
    return FieldCase(text=",".join(texts), values=frozenset(values))


def field_cases(low: int, high: int, highest_given: int) -> st.SearchStrategy[FieldCase]:
    """All fields that `field_case` spells."""
    return st.integers(0, 1 << 64).map(lambda number: field_case(number, low, high, highest_given))


def cron_cases() -> st.SearchStrategy[CronCase]:
    """Expressions with dates that exist: no day above the 28th is asked for by number."""
    return st.builds(
        CronCase,
        minute=field_cases(0, 59, 59),
        hour=field_cases(0, 23, 23),
        day=field_cases(1, 31, 28),
        month=field_cases(1, 12, 12),
        weekday=field_cases(0, 6, 6),
    )
