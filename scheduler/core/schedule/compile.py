"""From what a user wrote to a compiled schedule. The only way in, and ScheduleError the only error out."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pydantic import ValidationError

from dueline.scheduler.core.schedule.assemble import compile_entry
from dueline.scheduler.core.schedule.entry import Entry
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.schedule import Schedule
from dueline.scheduler.core.schedule.spec import CalendarSpec, EntrySpec, ScheduleSpec, canonical_json

LONGEST_TEXT = 65_536
"""Characters of a whole schedule; it is refused unread beyond that."""

_KEPT = 4_096  # compiled schedules kept for those who ask again by text; a few kB each


def compile_schedule(
    schedule: str | Mapping[str, object] | Sequence[object] | ScheduleSpec, *, job_id: str
) -> Schedule:
    """Compiles a cron text, a mapping or list as in a job file, or the JSON text of one. `job_id` decides H and jitter.

    Raises ScheduleError, and nothing else, whatever it is given. The most recent results are kept, so asking again with
    equal arguments costs a look-up.
    """
    try:
        return _compiled(_text_of(schedule), job_id)
    except RecursionError:
        raise ScheduleError("schedule: nested too deeply; it is a mapping, or a list of mappings") from None


def _text_of(schedule: object) -> str:
    if isinstance(schedule, ScheduleSpec):
        schedule = canonical_json(schedule)
    if not isinstance(schedule, str):
        if not isinstance(schedule, Mapping | Sequence) or isinstance(schedule, bytes | bytearray):
            raise ScheduleError(f"schedule: a mapping, a list or a cron text is needed, not {type(schedule).__name__}")
        try:
            schedule = _ENCODER.encode(schedule)
        except (TypeError, ValueError) as error:
            raise ScheduleError(f"schedule: it holds something that is not plain data: {error}") from None
    if len(schedule) > LONGEST_TEXT:
        raise ScheduleError(
            f"schedule: the text has {len(schedule)} characters; {LONGEST_TEXT} is the limit",
            text=schedule[:80],
            position=0,
        )
    return schedule


def _plain(value: object) -> object:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


_ENCODER = json.JSONEncoder(sort_keys=True, default=_plain)


@lru_cache(maxsize=_KEPT)
def _compiled(text: str, job_id: str) -> Schedule:
    return Schedule(tuple(_entries(text, job_id)), job_id=job_id)


def forget_compiled() -> None:
    """Empties the cache of compiled schedules, for measurements."""
    _compiled.cache_clear()


def _entries(text: str, job_id: str) -> list[Entry]:
    if text.lstrip(" \t\r\n")[:1] not in ("{", "[", '"'):
        return [compile_entry(EntrySpec(cron=text), job_id)]
    spec = parse_spec(text)
    if len(spec.root) == 1:
        return [compile_entry(spec.root[0], job_id)]
    entries = []
    for number, entry in enumerate(spec.root, start=1):
        try:
            entries.append(compile_entry(entry, job_id))
        except ScheduleError as error:
            error.message = f"schedule {number} of {len(spec.root)}: {error.message}"
            raise
    return entries


def parse_spec(text: str) -> ScheduleSpec:
    """The model of a JSON text."""
    try:
        return ScheduleSpec.model_validate_json(text)
    except ValidationError as error:
        raise _explained(error, text[:200]) from None


def _explained(error: ValidationError, text: str) -> ScheduleError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))[:60] or "schedule"
    if first["type"] == "extra_forbidden":
        known = CalendarSpec.model_fields if where.startswith("calendar.") else EntrySpec.model_fields
        return ScheduleError(f"{where}: there is no such key; there are {', '.join(known)}", text=text)
    return ScheduleError(f"{where}: {first['msg']}", text=text)
