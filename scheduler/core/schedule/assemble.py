"""One entry of a schedule, from what is written to what can be asked.

The order is the meaning: the kind's readings, moved to business days, mapped to instants, dates added and taken away,
the calendar, and last the bounds, so that `max_runs` counts what really runs.
"""

from __future__ import annotations

from dueline.scheduler.core.schedule.bounds import Bounded, last_of
from dueline.scheduler.core.schedule.calendar import Calendar
from dueline.scheduler.core.schedule.choices import Fold, Gap
from dueline.scheduler.core.schedule.entry import Entry
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.filtered import Filtered
from dueline.scheduler.core.schedule.kinds import BUILDERS, Core, end_of, instant_of, wall_of
from dueline.scheduler.core.schedule.moment import Moment, parse_moment
from dueline.scheduler.core.schedule.moments import Moments
from dueline.scheduler.core.schedule.months import DAY_S, Date, date_of, day_number
from dueline.scheduler.core.schedule.period import parse_seconds
from dueline.scheduler.core.schedule.shifted import Shifted
from dueline.scheduler.core.schedule.spec import CalendarSpec, EntrySpec
from dueline.scheduler.core.schedule.timeline import FIRST_INSTANT, LAST_INSTANT, Timeline
from dueline.scheduler.core.schedule.union import Union, Without
from dueline.scheduler.core.schedule.zone import load_zone
from dueline.scheduler.core.schedule.zoned import Zoned

MOST_RUNS_WITH_CALENDAR = 1_000
"""Runs that max_runs may count where a calendar makes counting a walk; 1,000,000 without one."""

_CALENDAR_ERA = day_number(2000, 1, 1) * DAY_S
_SILENCE_S = 28 * 366 * DAY_S  # after 28 years the weekdays of all dates have come round


def compile_entry(spec: EntrySpec, job_id: str) -> Entry:
    """Builds one entry. Raises ScheduleError."""
    kind = _kind_of(spec)
    _check_keys(spec, kind)
    core = BUILDERS[kind](spec, load_zone("UTC" if spec.tz is None else spec.tz), job_id)
    if core.elapsed and (spec.gap is not None or spec.fold is not None):
        raise _no_choice(spec, kind)
    calendar = _calendar_of(core, spec)
    timeline = _with_dates(_instants(core, spec, calendar), core, spec)
    filtered = None if calendar is None else Filtered(timeline, core.zone, calendar)
    if filtered is not None:
        timeline = filtered
        _check_calendar(filtered, core, spec)
    timeline = _bounded(timeline, core, spec, kind)
    jitter = parse_seconds(spec.jitter, key="jitter") * 1_000 if spec.jitter is not None else 0
    return Entry(spec, core, timeline, filtered, jitter)


def _kind_of(spec: EntrySpec) -> str:
    given = [kind for kind in BUILDERS if getattr(spec, kind) is not None]
    if len(given) == 1:
        return given[0]
    if given:
        raise ScheduleError(f"schedule: {' and '.join(given)} exclude each other; write a list of schedules instead")
    raise ScheduleError(f"schedule: one of {', '.join(BUILDERS)} is needed")


def _check_keys(spec: EntrySpec, kind: str) -> None:
    if spec.dialect is not None and kind != "cron":
        raise ScheduleError(f"dialect: it belongs to cron, not to {kind}")
    if spec.anchor is not None and kind not in ("every", "monthly"):
        raise ScheduleError(f"anchor: it belongs to every and monthly, not to {kind}; for a first moment use start")


def _no_choice(spec: EntrySpec, kind: str) -> ScheduleError:
    reason = {
        "cron": "a wildcard job (minute or hour starts with *) follows elapsed time",
        "every": "an interval is elapsed time",
        "at": "a moment with an offset is one instant",
        "rrule": "a rule that steps by hours or less follows elapsed time",
    }[kind]
    return ScheduleError(
        f"gap, fold: {reason}, so a change of the clocks leaves nothing to choose; leave both out",
        text=spec.cron or "",
        position=0 if spec.cron else None,
    )


def _calendar_of(core: Core, spec: EntrySpec) -> Calendar | None:
    """The calendar, whole days under exdate included; None where every day counts."""
    moments = (*(parse_moment(text, key="exdate") for text in spec.exdate), *core.taken)
    days = tuple(f"{date.year:04}-{date.month:02}-{date.day:02}" for date in map(_date, moments) if date is not None)
    if spec.calendar is None and not days:
        return None
    return Calendar(spec.calendar or CalendarSpec(), taken=days)


def _date(moment: Moment) -> Date | None:
    return date_of(moment.wall // DAY_S) if moment.whole_day else None


def _instants(core: Core, spec: EntrySpec, calendar: Calendar | None) -> Timeline:
    """The kind's instants, moved to business days if asked."""
    gap, fold = spec.gap or Gap.RUN_AFTER, spec.fold or Fold.FIRST
    shift = spec.calendar.shift if spec.calendar is not None else None
    if shift is None:
        if core.walls is None:
            assert core.timeline is not None, "a kind gives readings or instants"
            return core.timeline
        return Zoned(core.walls, core.zone, elapsed=core.elapsed, gap=gap, fold=fold)
    if core.walls is None or core.elapsed or calendar is None:
        raise ScheduleError("calendar.shift: only a job at fixed local times can move to another day")
    return Zoned(Shifted(core.walls, calendar, shift), core.zone, elapsed=False, gap=gap, fold=fold)


def _with_dates(timeline: Timeline, core: Core, spec: EntrySpec) -> Timeline:
    """RDATE added, then EXDATE taken away; whole days under exdate are the calendar's."""
    added = (*(parse_moment(text, key="rdate") for text in spec.rdate), *core.added)
    if added:
        if any(moment.whole_day for moment in added):
            raise ScheduleError("rdate: the time of day is missing", suggestion="rdate: 2026-12-24T09:00")
        readings = Moments(wall_of(moment, core.zone) for moment in added)
        timeline = Union((timeline, Zoned(readings, core.zone, elapsed=False, gap=Gap.RUN_AFTER, fold=Fold.FIRST)))
    taken = (*(parse_moment(text, key="exdate") for text in spec.exdate), *core.taken)
    single = frozenset(instant_of(moment, core.zone) for moment in taken if not moment.whole_day)
    return Without(timeline, single) if single else timeline


def _check_calendar(filtered: Filtered, core: Core, spec: EntrySpec) -> None:
    """A calendar that lets nothing through for 28 years is a mistake."""
    first = core.origin if core.origin is not None and core.origin > FIRST_INSTANT else _CALENDAR_ERA
    if spec.start is not None:
        first = instant_of(parse_moment(spec.start, key="start"), core.zone)
    if core.origin != FIRST_INSTANT and filtered.next_within(first - 1, first + _SILENCE_S) is None:
        raise ScheduleError("calendar: this never fires: the calendar takes out every due time of 28 years")


def _bounded(timeline: Timeline, core: Core, spec: EntrySpec, kind: str) -> Timeline:
    first, last, origin = FIRST_INSTANT, core.last, core.origin
    if spec.start is not None:
        first = origin = instant_of(parse_moment(spec.start, key="start"), core.zone)
    if spec.end is not None:
        last = min(last, end_of(parse_moment(spec.end, key="end"), core.zone))
        if last < first:
            raise ScheduleError("end: it lies before start", text=spec.end, position=0)
    if first != FIRST_INSTANT or last != LAST_INSTANT:
        timeline = Bounded(timeline, first=first, last=last)
    if spec.max_runs is not None:
        if origin is None:
            raise ScheduleError("max_runs: runs are counted from a first moment; give start (or an anchor)")
        if spec.calendar is not None and spec.max_runs > MOST_RUNS_WITH_CALENDAR:
            raise ScheduleError(f"max_runs: with a calendar at most {MOST_RUNS_WITH_CALENDAR}; use end instead")
        timeline = Bounded(timeline, first=origin, last=last_of(timeline, first=origin, runs=spec.max_runs))
    checked = kind == "cron" and spec.start is None and spec.end is None  # by the parser, and by the calendar's check
    if not checked and timeline.next_after(first - 1) is None:
        raise ScheduleError(f"{kind}: this never fires; check its dates, start, end and calendar")
    return timeline
