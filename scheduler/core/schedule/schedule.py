"""A compiled schedule: the answers that the planner, the auditor and the command line ask for.

All times are int milliseconds UTC; due times are whole seconds. Immutable, and pure: no clock, no host data.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from dueline.scheduler.core.schedule.advice import cron_advice
from dueline.scheduler.core.schedule.clock_change import ClockChange, clock_changes, remark_on
from dueline.scheduler.core.schedule.dialect import dialect_of
from dueline.scheduler.core.schedule.entry import Entry
from dueline.scheduler.core.schedule.filtered import Exclusion
from dueline.scheduler.core.schedule.sentence import entry_sentence
from dueline.scheduler.core.schedule.spread import jitter_ms
from dueline.scheduler.core.schedule.timeline import Timeline
from dueline.scheduler.core.schedule.union import Union, holds

_MS = 1_000
_YEAR_MS = 366 * 86_400_000


class Schedule:
    """The due times of a job."""

    __slots__ = ("_timeline", "entries", "job_id")

    def __init__(self, entries: tuple[Entry, ...], *, job_id: str) -> None:
        self.entries = entries
        self.job_id = job_id
        self._timeline: Timeline = (
            entries[0].timeline if len(entries) == 1 else Union(tuple(entry.timeline for entry in entries))
        )

    def next_after(self, t: int) -> int | None:
        """The first due time strictly after `t`; None: never again."""
        found = self._timeline.next_after(t // _MS)
        return None if found is None else found * _MS

    def previous_before(self, t: int) -> int | None:
        """The last due time strictly before `t`; None: there was none."""
        found = self._timeline.previous_before(-(-t // _MS))
        return None if found is None else found * _MS

    def between(self, a: int, b: int) -> Iterator[int]:
        """The due times with `a` <= due < `b`, in order, found one by one as they are asked for."""
        found = self.next_after(a - 1)
        while found is not None and found < b:
            yield found
            found = self.next_after(found)

    def count_between(self, a: int, b: int) -> int:
        """How many due times lie in `a` <= due < `b`. A single schedule counts by arithmetic; of several, all but the
        fullest are walked."""
        return self._timeline.count_between(-(-a // _MS), -(-b // _MS)) if a < b else 0

    def start_offset(self, due: int) -> int:
        """The jitter of a due time: ms to wait after it, always the same ones, and less than the way to the next."""
        limits = [entry.jitter_ms for entry in self.entries if entry.jitter_ms]
        if not limits:
            return 0
        if len(self.entries) > 1:
            limits = [entry.jitter_ms for entry in self.entries if holds(entry.timeline, due // _MS)] or limits
        following = self.next_after(due)
        limit = min(limits) if following is None else min(*limits, following - due)
        return jitter_ms(self.job_id, due, limit)

    @property
    def zoned(self) -> bool:
        """Whether due times depend on the rules of a zone, so that other zone data may move them."""
        return any(entry.core.zone.name != "UTC" for entry in self.entries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a writer should know although the schedule is accepted. Warnings about changes of the clocks depend on
        when one asks: see `clock_changes`."""
        found = [each for entry in self.entries if entry.core.cron is not None for each in _cron_warnings(entry)]
        return tuple(dict.fromkeys(found))

    def warnings_at(self, now: int) -> tuple[str, ...]:
        """The warnings, and what changes of the clocks do to it within the year after `now` (ms)."""
        changes = (change.remark for change in self.clock_changes(now, now + _YEAR_MS))
        return tuple(dict.fromkeys((*self.warnings, *changes)))

    def clock_changes(self, a: int, b: int) -> tuple[ClockChange, ...]:
        """What changes of the clocks in `a` <= t < `b` (ms) skip, move, double or silence, in order."""
        found = {change for entry in self.entries for change in clock_changes(entry, a // _MS, -(-b // _MS))}
        return tuple(change._replace(instant=change.instant * _MS) for change in sorted(found))

    def remark(self, due: int) -> str | None:
        """A remark on a due time that a change of the clocks concerns, None for all others."""
        for entry in self.entries:
            if len(self.entries) == 1 or holds(entry.timeline, due // _MS):
                remark = remark_on(entry, due // _MS)
                if remark is not None:
                    return remark
        return None

    def describe(self) -> str:
        """The schedule as an English sentence."""
        return "; and ".join(entry_sentence(entry) for entry in self.entries)

    def excluded_between(self, a: int, b: int) -> Iterator[tuple[int, str]]:
        """(due time, calendar entry) of what would be due in `a` <= due < `b` but for a calendar, in order, one by
        one. What another schedule of the job makes due all the same is not excluded."""
        for exclusion, entry in self._exclusions(a, b):
            assert entry.filtered is not None, "exclusions come from a calendar"
            for due in entry.filtered.excluded_in(exclusion):
                if len(self.entries) == 1 or not holds(self._timeline, due):
                    yield due * _MS, exclusion.entry

    def exclusions_between(self, a: int, b: int) -> Iterator[Exclusion]:
        """The same as one record for each stretch that one calendar entry took out: first, last (ms) and number of the
        due times in it, counted by arithmetic. With several schedules each has its own stretches."""
        for exclusion, _ in self._exclusions(a, b):
            yield exclusion._replace(first=exclusion.first * _MS, last=exclusion.last * _MS)

    def _exclusions(self, a: int, b: int) -> Iterator[tuple[Exclusion, Entry]]:
        low, high = -(-a // _MS), -(-b // _MS)
        found = [
            ((exclusion, entry) for exclusion in entry.filtered.exclusions(low, high))
            for entry in self.entries
            if entry.filtered is not None
        ]
        yield from merge(*found, key=lambda pair: pair[0].first)


def _cron_warnings(entry: Entry) -> Iterator[str]:
    assert entry.core.cron is not None, "only cron entries have cron warnings"
    return cron_advice(entry.core.cron, dialect_of(entry.spec.dialect))
