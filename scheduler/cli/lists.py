"""`dueline rejected` and `dueline workers`: dead letters, and who is there to work."""

from __future__ import annotations

from typing import Annotated

import typer

from dueline.scheduler.audit.evidence import Place, place_of
from dueline.scheduler.audit.reading import read_topic
from dueline.scheduler.cli.fleet import STALE_AFTER_S, decoded, read_heartbeats, state_of
from dueline.scheduler.cli.options import Json, Tz
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import display_of, instant_of, session_of
from dueline.scheduler.cli.times import instant
from dueline.schemas.command import Rejected
from dueline.schemas.work import WorkerState


def rejected(
    context: typer.Context,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="Only those refused from then on.")] = "-7d",
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """Inputs that were refused: what was wrong, where the record stands, what to do. Newest first.

    \b
    Example:
      dueline rejected --since -1h
    """
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    start = instant_of(display, "--since", since, session.clock.wall_ms())
    letters: list[tuple[Place, Rejected]] = []
    with session.log() as admin:
        for received in read_topic(admin, session.namespace.rejected):
            record = decoded(received.value)
            if isinstance(record, Rejected) and received.append_ms >= start:
                letters.append((place_of(received), record))
    letters.sort(key=lambda letter: letter[0].offset, reverse=True)
    if as_json:
        output.json(
            [
                {
                    "at": instant(place.append_ms),
                    "error": letter.error,
                    "detail": letter.detail,
                    "topic": letter.topic,
                    "partition": letter.partition,
                    "offset": letter.offset,
                    "key": letter.key.decode(errors="replace"),
                    "value": letter.value.decode(errors="replace"),
                }
                for place, letter in letters
            ]
        )
        return
    rows = [
        [
            display.show(place.append_ms),
            letter.error,
            letter.key.decode(errors="backslashreplace"),
            letter.detail,
            f"{letter.topic}[{letter.partition}]@{letter.offset}",
        ]
        for place, letter in letters
    ]
    columns = [f"refused ({display.name})", "error", "key", "detail", "record"]
    output.table(columns, rows, empty=f"nothing was refused since {display.show(start)}")


def workers(
    context: typer.Context,
    stale_after: Annotated[
        float, typer.Option("--stale-after", metavar="SECONDS", min=1.0, help="Silent for longer: shown as silent.")
    ] = STALE_AFTER_S,
    everyone: Annotated[bool, typer.Option("--all", help="Show stopped and silent ones too.")] = False,
    tz: Tz = "UTC",
    as_json: Json = False,
) -> None:
    """The workers by their heartbeats: queue, handlers, slots, partitions and what they hold."""
    session, display, output = session_of(context), display_of(tz), Output(as_json=as_json)
    with session.log() as admin:
        beats = read_heartbeats(admin, session.namespace)
    now = session.clock.wall_ms()
    shown = [
        (place, beat, state_of(place, beat, now, stale_after))
        for place, beat in sorted(beats, key=lambda each: (each[1].queue, each[1].incarnation))
        if everyone or state_of(place, beat, now, stale_after) in (WorkerState.RUNNING, WorkerState.DRAINING)
    ]
    if as_json:
        output.json(
            [
                {
                    "worker": beat.worker,
                    "incarnation": beat.incarnation,
                    "queue": beat.queue,
                    "state": condition,
                    "slots": beat.slots,
                    "handlers": beat.handlers,
                    "partitions": beat.partitions,
                    "holds": [{"run": claim.run, "attempt": claim.attempt, "state": claim.state} for claim in beat.claims],
                    "started": instant(beat.started_ms),
                    "last_heartbeat": instant(place.append_ms),
                    "version": beat.version or None,
                }
                for place, beat, condition in shown
            ]
        )
        return
    rows = [
        [
            beat.incarnation,
            condition,
            beat.queue,
            ", ".join(beat.handlers),
            f"{sum(claim.state == 'running' for claim in beat.claims)}/{beat.slots}",
            ", ".join(map(str, beat.partitions)) or "none",
            display.show(place.append_ms),
        ]
        for place, beat, condition in shown
    ]
    columns = ["incarnation", "state", "queue", "handlers", "#busy", "partitions", f"last heartbeat ({display.name})"]
    output.table(columns, rows, empty="no workers; start one with `dueline worker --help`")
