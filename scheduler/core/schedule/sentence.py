"""An entry as a sentence: its kind, its zone, its calendar and its bounds."""

from __future__ import annotations

from dueline.scheduler.core.schedule.english import cron_sentence
from dueline.scheduler.core.schedule.entry import Entry
from dueline.scheduler.core.schedule.moment_text import length_text
from dueline.scheduler.core.schedule.period import parse_period
from dueline.scheduler.core.schedule.spec import CalendarSpec, EntrySpec


def entry_sentence(entry: Entry) -> str:
    """The whole sentence, without a full stop."""
    spec = entry.spec
    parts = [_kind(entry)]
    if entry.core.walls is not None:
        parts.append(entry.core.zone.name)
    if spec.calendar is not None:
        parts.append(_calendar(spec.calendar))
    parts += _dates(spec)
    if spec.start is not None and spec.rrule is None:
        parts.append(f"from {spec.start}")
    if spec.end is not None:
        parts.append(f"until {spec.end}")
    if spec.max_runs is not None:
        parts.append(f"at most {spec.max_runs} runs")
    if spec.jitter is not None:
        parts.append(f"starts spread over {spec.jitter}")
    return ", ".join(parts)


def _kind(entry: Entry) -> str:
    spec = entry.spec
    if entry.core.cron is not None:
        return cron_sentence(entry.core.cron)
    if spec.every is not None:
        return _interval(spec, spec.every)
    if spec.monthly is not None:
        return _months(spec, spec.monthly)
    if spec.at is not None:
        return f"Once, at {spec.at}"
    return f"By the rule {(spec.rrule or '').strip()} from {spec.start or 'its DTSTART'}"


def _interval(spec: EntrySpec, text: str) -> str:
    period = parse_period(text, key="every")
    if period.months:
        return _months(spec, period.months)
    return (
        f"Every {length_text(period.seconds)} of elapsed time, counted from {spec.anchor or spec.start or '1970-01-01'}"
    )


def _months(spec: EntrySpec, months: int) -> str:
    every = "Every month" if months == 1 else f"Every {months} months"
    return f"{every} from {spec.anchor or spec.start}, on the last day where the month is too short"


def _calendar(spec: CalendarSpec) -> str:
    parts = []
    if spec.include:
        parts.append(f"only on {', '.join(spec.include)}")
    if spec.exclude:
        parts.append(f"not on {', '.join(spec.exclude)}")
    if spec.holidays:
        parts.append(f"not on holidays of {', '.join(spec.holidays)}")
    if spec.business_days:
        parts.append(f"on business days {spec.business_days}")
    if spec.business_hours:
        parts.append(f"within {', '.join(spec.business_hours)}")
    if spec.shift is not None:
        parts.append(f"moved to a business day ({spec.shift})")
    return ", ".join(parts) or "every day counts"


def _dates(spec: EntrySpec) -> list[str]:
    parts = []
    if spec.rdate:
        parts.append(f"also at {', '.join(spec.rdate)}")
    if spec.exdate:
        parts.append(f"not at {', '.join(spec.exdate)}")
    return parts
