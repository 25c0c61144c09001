"""The kinds of schedule, one builder each: from what is written to readings (a zone comes later) or instants."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dueline.scheduler.core.schedule.cron_days import CronDays
from dueline.scheduler.core.schedule.cron_parser import CronFields, parse_cron
from dueline.scheduler.core.schedule.day_times import DayTimes, TimesOfDay
from dueline.scheduler.core.schedule.dialect import dialect_of
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.interval import Interval
from dueline.scheduler.core.schedule.moment import Moment, parse_moment
from dueline.scheduler.core.schedule.moments import Moments
from dueline.scheduler.core.schedule.monthly import Monthly
from dueline.scheduler.core.schedule.months import DAY_S
from dueline.scheduler.core.schedule.period import parse_period
from dueline.scheduler.core.schedule.recurrence import parse_recurrence
from dueline.scheduler.core.schedule.rule import Frequency
from dueline.scheduler.core.schedule.rule_walls import walls_of
from dueline.scheduler.core.schedule.spec import EntrySpec
from dueline.scheduler.core.schedule.spread import draw_for
from dueline.scheduler.core.schedule.timeline import FIRST_INSTANT, LAST_INSTANT, Timeline, WallSet
from dueline.scheduler.core.schedule.zone import Zone, load_zone

_EPOCH = 0


class Core(NamedTuple):
    """What a kind gives: either `walls`, readings in `zone`, or `timeline`, instants. `elapsed`: a wildcard job.
    `origin` is the instant from which runs are counted (None: there is none), `last` the kind's own end. `taken` and
    `added` are dates in the kind's own text."""

    zone: Zone
    walls: WallSet | None
    timeline: Timeline | None
    elapsed: bool
    origin: int | None
    last: int = LAST_INSTANT
    cron: CronFields | None = None
    taken: tuple[Moment, ...] = ()
    added: tuple[Moment, ...] = ()


def _cron(spec: EntrySpec, zone: Zone, job_id: str) -> Core:
    assert spec.cron is not None
    fields = parse_cron(spec.cron, draw=draw_for(job_id), dialect=dialect_of(spec.dialect))
    times = TimesOfDay(hours=fields.hours, minutes=fields.minutes, seconds=fields.seconds)
    walls = DayTimes(CronDays(fields.months, fields.days), times)
    return Core(zone, walls, None, fields.elapsed, None, cron=fields)


def _every(spec: EntrySpec, zone: Zone, _: str) -> Core:
    assert spec.every is not None
    period = parse_period(spec.every, key="every")
    if period.months:
        return _by_month(spec, zone, period.months)
    given = spec.anchor if spec.anchor is not None else spec.start
    if given is None:
        return Core(zone, None, Interval(anchor=_EPOCH, period=period.seconds), True, None)
    anchor = instant_of(parse_moment(given, key="anchor" if spec.anchor is not None else "start"), zone)
    return Core(zone, None, Interval(anchor=anchor, period=period.seconds), True, anchor)


def _monthly(spec: EntrySpec, zone: Zone, _: str) -> Core:
    assert spec.monthly is not None
    return _by_month(spec, zone, spec.monthly)


def _by_month(spec: EntrySpec, zone: Zone, months: int) -> Core:
    given = spec.anchor if spec.anchor is not None else spec.start
    if given is None:
        raise ScheduleError(
            "anchor: months are counted from an anchor, whose day and time each run keeps; there is none",
            suggestion="anchor: 2026-01-31T09:00",
        )
    moment = parse_moment(given, key="anchor" if spec.anchor is not None else "start")
    return Core(zone, Monthly(anchor=wall_of(moment, zone), months=months), None, False, instant_of(moment, zone))


def _at(spec: EntrySpec, zone: Zone, _: str) -> Core:
    assert spec.at is not None
    moment = parse_moment(spec.at, key="at")
    if moment.whole_day:
        raise ScheduleError(
            "at: the time of day is missing", text=spec.at, position=len(spec.at), suggestion=f"{spec.at.strip()}T09:00"
        )
    if moment.offset is not None:
        return Core(zone, None, Moments([moment.wall - moment.offset]), True, FIRST_INSTANT)
    return Core(zone, Moments([moment.wall]), None, False, FIRST_INSTANT)


def _rrule(spec: EntrySpec, zone: Zone, _: str) -> Core:
    assert spec.rrule is not None
    recurrence = parse_recurrence(spec.rrule)
    if recurrence.zone is not None:
        if spec.tz is not None and spec.tz != recurrence.zone:
            raise ScheduleError(f"rrule: TZID={recurrence.zone[:40]} and tz: {spec.tz} differ; give one of them")
        zone = load_zone(recurrence.zone)
    if (recurrence.begin is None) == (spec.start is None):
        raise ScheduleError(
            "rrule: a rule counts from its first moment; give the key start"
            if spec.start is None
            else "rrule: the first moment is given twice, as DTSTART and as start",
            text=spec.rrule[:80],
            position=0,
            suggestion="start: 2026-01-05T09:00" if spec.start is None else None,
        )
    begin = recurrence.begin or parse_moment(spec.start or "", key="start")
    rule = recurrence.rule
    return Core(
        zone,
        walls_of(rule, wall_of(begin, zone)),
        None,
        elapsed=rule.frequency >= Frequency.HOURLY,
        origin=instant_of(begin, zone),
        last=end_of(rule.until, zone) if rule.until is not None else LAST_INSTANT,
        taken=recurrence.taken,
        added=recurrence.added,
    )


BUILDERS: dict[str, Callable[[EntrySpec, Zone, str], Core]] = {
    "cron": _cron,
    "every": _every,
    "monthly": _monthly,
    "at": _at,
    "rrule": _rrule,
}


def wall_of(moment: Moment, zone: Zone) -> int:
    """The local reading of a moment."""
    if moment.offset is None:
        return moment.wall
    instant = moment.wall - moment.offset
    return instant + zone.offset_at(instant)


def instant_of(moment: Moment, zone: Zone) -> int:
    """The instant of a moment; in a gap its end, in a fold the first showing."""
    return moment.wall - moment.offset if moment.offset is not None else zone.first_instant(moment.wall)


def end_of(moment: Moment, zone: Zone) -> int:
    """The last instant that `end` still allows: a bare date means the whole day."""
    if not moment.whole_day:
        return instant_of(moment, zone)
    return zone.first_instant(moment.wall + DAY_S) - 1
