"""When a job is due, worked out here and nowhere else: `every`, cron and `at`, with `start`, `end`, `anchor`, `tz`, `gap`,
`fold`.

A schedule with anything else in it (rules, calendars, months, `max_runs`) raises: a due time that nobody recomputed is not
judged. `jitter` puts starts off, not due times: `jitter.py` has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from dueline.schemas.duration import parse_duration
from proof.checker.cron import Cron, parse
from proof.checker.zone import EPOCH, after_gap, instants, zone

FOREVER: Final = 1 << 62
KEYS: Final = frozenset({"cron", "dialect", "every", "at", "anchor", "start", "end", "tz", "gap", "fold", "jitter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One of a job's schedules: exactly one of `every_ms`, `cron`, `at_ms`. Bounds are included, milliseconds. `jitter_ms`: how
    far starts are put off, less than that; 0: not at all."""

    start_ms: int = 0
    end_ms: int = FOREVER
    every_ms: int = 0
    anchor_ms: int = 0
    cron: Cron | None = None
    at_ms: tuple[int, ...] = ()
    where: ZoneInfo | None = None
    gap: str = "run_after"
    fold: str = "first"
    jitter_ms: int = 0

    def between(self, low: int, high: int) -> Iterator[int]:
        """Due times in [low, high), milliseconds."""
        low, high = max(low, self.start_ms), min(high, self.end_ms + 1)
        if self.every_ms:
            low = max(low, self.anchor_ms)
            first = self.anchor_ms - (self.anchor_ms - low) // self.every_ms * self.every_ms
            yield from range(first, high, self.every_ms)
        elif self.cron is not None:
            found = self.cron.between(-(-low // 1000), -(-high // 1000), self.where, gap=self.gap, fold=self.fold)
            yield from (seconds * 1000 for seconds in found)
        else:
            yield from (at for at in self.at_ms if low <= at < high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """All of a job's schedules together: the same instant from two of them is one due time."""

    entries: tuple[Entry, ...]

    def between(self, low: int, high: int) -> list[int]:
        """Due times in [low, high), in order, milliseconds."""
        if high <= low:
            return []
        if len(self.entries) == 1:
            return list(self.entries[0].between(low, high))
        return sorted({due for entry in self.entries for due in entry.between(low, high)})


@lru_cache(maxsize=4096)
def schedule(text: str) -> Schedule:
    """The schedule of a definition's JSON text. Raises ValueError that says what is not understood."""
    value = json.loads(text)
    entries = value if isinstance(value, list) else [value]
    return Schedule(entries=tuple(_entry(each) for each in entries))


def _entry(value: object) -> Entry:
    if isinstance(value, str):
        return Entry(cron=parse(value, seconds=False))
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no schedule")  # noqa: TRY004 - one kind of error for one cause
    unknown = set(value) - KEYS
    kinds = [kind for kind in ("cron", "every", "at") if kind in value]
    if unknown or len(kinds) != 1:
        raise ValueError(f"{value!r}: this checker knows one of cron, every, at, and of the rest {', '.join(sorted(KEYS))}")
    where = zone(str(value["tz"])) if value.get("tz") not in (None, "UTC", "Etc/UTC") else None
    gap, fold = str(value.get("gap", "run_after")), str(value.get("fold", "first"))
    if gap not in ("run_after", "skip") or fold not in ("first", "second", "both"):
        raise ValueError(f"gap {gap!r} or fold {fold!r} is not understood")
    start = _moment(value["start"], where) if "start" in value else 0
    end = _moment(value["end"], where, last=True) if "end" in value else FOREVER
    jitter = parse_duration(value["jitter"]) if "jitter" in value else 0
    if "cron" in value:
        dialect = value.get("dialect", "unix")
        if dialect not in ("unix", "seconds"):
            raise ValueError(f"dialect {dialect!r} is not understood")
        cron = parse(str(value["cron"]), seconds=dialect == "seconds")
        return Entry(start_ms=start, end_ms=end, cron=cron, where=where, gap=gap, fold=fold, jitter_ms=jitter)
    if "every" in value:
        anchor = _moment(value["anchor"], where) if "anchor" in value else start
        return Entry(start_ms=start, end_ms=end, every_ms=parse_duration(value["every"]), anchor_ms=anchor, jitter_ms=jitter)
    return Entry(start_ms=start, end_ms=end, at_ms=_at(str(value["at"]), where, gap, fold), jitter_ms=jitter)


def _at(text: str, where: ZoneInfo | None, gap: str, fold: str) -> tuple[int, ...]:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None or where is None:
        return (_ms(moment),)
    reading = _reading(moment)
    found = instants(reading, where)
    if not found:
        late = after_gap(reading, where) if gap == "run_after" else None
        found = () if late is None else (late,)
    elif fold != "both":
        found = found[:1] if fold == "first" else found[-1:]
    return tuple(at * 1000 for at in found)


def _moment(value: object, where: ZoneInfo | None, *, last: bool = False) -> int:
    """A bound, milliseconds; a bare date is its whole day."""
    text = str(value)
    if len(text) == 10:
        day = date.fromisoformat(text) + timedelta(days=1 if last else 0)
        found = _at(f"{day.isoformat()}T00:00:00", where, "run_after", "first")
        return found[0] - (1 if last else 0)
    return _at(text, where, "run_after", "second" if last else "first")[0]


def _reading(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds())


def _ms(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
