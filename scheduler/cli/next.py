"""`dueline next`: when a schedule is due, before any job has it. Needs no broker.

`show_preview` prints the same table for whoever has a compiled schedule, such as `jobs apply`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
import yaml

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.options import Json
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import display_of, instant_of, session_of
from dueline.scheduler.core.schedule import Schedule, ScheduleError, compile_schedule, preview, tzdata_version
from dueline.scheduler.core.schedule.zone import Zone

MOST_SHOWN: Final = 1_000
_CALENDAR_BYTES: Final = 65_536


def next_command(
    context: typer.Context,
    schedule: Annotated[
        str, typer.Argument(metavar="EXPR", help="A cron text, a macro, or a mapping such as '{every: 15m}'.", show_default=False)
    ],
    tz: Annotated[str, typer.Option("--tz", metavar="ZONE", help="The schedule's zone, and that of the table.")] = "",
    count: Annotated[int, typer.Option("--count", "-c", metavar="N", min=1, max=MOST_SHOWN, help="Due times to show.")] = 5,
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="The first instant: 2026-03-07, now, -2h, ...")] = "now",
    calendar: Annotated[
        str, typer.Option("--calendar", metavar="FILE|MAPPING", help="A calendar: '{holidays: DE}', or a file that holds it.")
    ] = "",
    dialect: Annotated[
        str, typer.Option("--dialect", metavar="NAME", help="Of six or seven fields: seconds, quartz or eventbridge.")
    ] = "",
    gap: Annotated[str, typer.Option("--gap", metavar="RULE", help="A time that the clocks leave out: run_after or skip.")] = "",
    fold: Annotated[str, typer.Option("--fold", metavar="RULE", help="A time shown twice: first, second or both.")] = "",
    job: Annotated[str, typer.Option("--job", metavar="ID", help="The job id, which decides H and jitter.")] = "",
    as_json: Json = False,
) -> None:
    """Show when a schedule is due, in UTC and local time, with what changes of the clocks do to it.

    \b
    Examples:
      dueline next '30 2 * * *' --tz America/New_York --from 2026-03-07 --count 4
      dueline next '0 9 * * MON-FRI' --tz Europe/Berlin --calendar '{holidays: DE-BY}'
      dueline next '{rrule: FREQ=MONTHLY;BYDAY=-1FR, start: 2026-01-01T09:00}' --tz Europe/Paris
      dueline next 'H H * * *' --job menu
    """
    options = {"tz": tz, "dialect": dialect, "gap": gap, "fold": fold}
    compiled = _compiled(_mapping(schedule, options, calendar), job)
    zone = compiled.entries[0].core.zone
    display = display_of(zone.name)
    first = instant_of(display, "--from", start, session_of(context).clock.wall_ms())
    output = Output(as_json=as_json)
    if as_json:
        output.json(preview_json(compiled, start=first, count=count, zone=zone))
    else:
        show_preview(output, compiled, start=first, count=count, zone=zone)


def show_preview(output: Output, schedule: Schedule, *, start: int, count: int, zone: Zone) -> None:
    """The sentence, the table, and the warnings of a schedule; `start` in ms."""
    output.line(schedule.describe())
    rows = preview(schedule, start=start, count=count, zone=zone)
    columns = ["UTC", f"local ({zone.name})", "remark"]
    output.table(columns, [[row.utc, row.local, row.remark] for row in rows], empty="never due again")
    if 0 < sum(row.due is not None for row in rows) < count:
        output.note("never due again after that")
    for warning in schedule.warnings_at(start):
        output.note(f"warning: {warning}")


def preview_json(schedule: Schedule, *, start: int, count: int, zone: Zone) -> dict[str, object]:
    """The same for programs."""
    rows = preview(schedule, start=start, count=count, zone=zone)
    return {
        "description": schedule.describe(),
        "zone": zone.name,
        "tzdata": tzdata_version(),
        "due": [{"utc": row.utc, "local": row.local, "remark": row.remark or None} for row in rows if row.due is not None],
        "skipped": [row.remark for row in rows if row.due is None],
        "warnings": list(schedule.warnings_at(start)),
    }


# --- steps ------------------------------------------------------------------------------------------------------------


def _compiled(mapping: object, job: str) -> Schedule:
    try:
        if not isinstance(mapping, dict | list):
            raise ScheduleError("schedule: a cron text, a mapping or a list of mappings is needed")
        return compile_schedule(mapping, job_id=job)
    except ScheduleError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error


def _mapping(schedule: str, options: dict[str, str], calendar: str) -> object:
    """The schedule as a mapping, with the options that were given laid over it."""
    given: dict[str, object] = {key: value for key, value in options.items() if value}
    if calendar:
        given["calendar"] = _read_calendar(calendar)
    written = _yaml(schedule, "EXPR") if schedule.lstrip()[:1] in ("{", "[") else {"cron": schedule}
    if isinstance(written, list):
        return [{**entry, **given} if isinstance(entry, dict) else {"cron": entry, **given} for entry in written]
    return {**written, **given} if isinstance(written, dict) else written


def _read_calendar(text: str) -> object:
    if text.lstrip().startswith("{"):
        return _yaml(text, "--calendar")
    try:
        with Path(text).open(encoding="utf-8") as file:
            return _yaml(file.read(_CALENDAR_BYTES), "--calendar")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--calendar: {text!r} can't be read: {error}", code=ExitCode.USAGE) from error


def _yaml(text: str, what: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"{what}: no mapping: {error}", code=ExitCode.USAGE) from error
