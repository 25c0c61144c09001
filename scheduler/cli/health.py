"""`dueline health`: whether the process that writes a health file is alive, for container health checks."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dueline.scheduler.cli.errors import CommandError, ExitCode

alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
"""The command by itself, see `main`."""


class Process(StrEnum):
    """Who writes health files."""

    SCHEDULER = "scheduler"
    WORKER = "worker"


@alone.command()
def health(
    process: Annotated[Process, typer.Argument(help="Whose file it is.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Option("--health-file", envvar="DUELINE_HEALTH_FILE", metavar="FILE", help="The file.", show_default=False),
    ] = None,
    max_age: Annotated[
        float, typer.Option("--max-age", metavar="SECONDS", min=0.1, help="An older file means that the process hangs.")
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Exit 0 if a scheduler or worker has written its health file lately, 1 if not. Needs no broker.

    \b
    Example, in a compose file:
      healthcheck: {test: ["CMD", "dueline", "health", "worker"], interval: 5s}
    """
    if file is None:
        raise CommandError(
            "no health file is named", todo=f"set DUELINE_HEALTH_FILE for this command and the {process}", code=ExitCode.USAGE
        )
    facts = _read(file, process)
    written = facts.get("wall_ms", facts.get("time_ms"))
    if not isinstance(written, int):
        raise CommandError(f"{file} has no time in it: it is not the health file of a {process}")
    age_s = (time.time_ns() // 1_000_000 - written) / 1000
    if as_json:
        print(json.dumps({"process": process, "age_s": age_s, "fresh": age_s <= max_age, **facts}, indent=2))
    if age_s > max_age:
        raise CommandError(
            f"the {process} has written nothing for {age_s:.1f} s (allowed: {max_age:g} s)",
            todo="it hangs or has ended: see its log",
        )
    if not as_json:
        print(f"{process}: {facts.get('role', facts.get('state', 'alive'))}, {age_s:.1f} s ago")


def _read(file: Path, process: Process) -> dict[str, object]:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"{file} is not there: the {process} has not started, or has ended in order") from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} can't be read: {error}") from error
    if not isinstance(facts, dict):
        raise CommandError(f"{file} is not the health file of a {process}")
    return facts
