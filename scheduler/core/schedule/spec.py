"""What a user writes under `schedule:`, as a model: which keys there are and what type each has.

Whether the values make sense is decided by `compile`, whose errors teach; this model only keeps unknown keys and wrong
types out, and gives a schedule one canonical text.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from dueline.scheduler.core.schedule.choices import Fold, Gap, Shift

MOST_ENTRIES = 32
MOST_ITEMS = 1_000


def _moment_text(value: object) -> object:
    """YAML readers turn dates into date objects; the model keeps text."""
    return value.isoformat() if isinstance(value, dt.date) else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str | dt.date) else value


MomentText = Annotated[str, BeforeValidator(_moment_text)]
Texts = Annotated[tuple[MomentText, ...], BeforeValidator(_as_list), Field(max_length=MOST_ITEMS)]


class CalendarSpec(BaseModel):
    """Which local days and hours count. Dates are `2026-12-31`, ranges `2026-12-24..2027-01-02`, yearly `12-31`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include: Texts = ()
    exclude: Texts = ()
    business_hours: Texts = ()
    business_days: str | None = None
    holidays: Texts = ()
    shift: Shift | None = None


class EntrySpec(BaseModel):
    """One schedule: exactly one of cron, every, monthly, at, rrule, and what bounds or bends it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cron: str | None = None
    dialect: str | None = None
    every: str | None = None
    monthly: Annotated[int, Field(strict=True, ge=1, le=4_800)] | None = None
    at: MomentText | None = None
    rrule: str | None = None
    anchor: MomentText | None = None
    exdate: Texts = ()
    rdate: Texts = ()
    tz: str | None = None
    start: MomentText | None = None
    end: MomentText | None = None
    max_runs: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = None
    calendar: CalendarSpec | None = None
    gap: Gap | None = None
    fold: Fold | None = None
    jitter: str | None = None


class ScheduleSpec(RootModel[tuple[EntrySpec, ...]]):
    """A whole schedule: one entry or several. Accepts a mapping, a list of mappings, or a bare cron text."""

    model_config = ConfigDict(frozen=True)

    root: Annotated[tuple[EntrySpec, ...], Field(min_length=1, max_length=MOST_ENTRIES)]

    @model_validator(mode="before")
    @classmethod
    def _one_is_a_list_too(cls, value: object) -> object:
        if isinstance(value, str):
            return [{"cron": value}]
        if isinstance(value, list | tuple):
            return [{"cron": each} if isinstance(each, str) else each for each in value]
        return [value]


def canonical_json(spec: ScheduleSpec) -> str:
    """The one JSON text of a schedule: sorted keys, nothing that is unset. `ScheduleSpec.model_validate_json` reads it."""
    entries = [entry.model_dump(mode="json", exclude_defaults=True) for entry in spec.root]
    return json.dumps(entries[0] if len(entries) == 1 else entries, sort_keys=True, separators=(",", ":"))
