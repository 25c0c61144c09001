"""The options that several commands share, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table; times in UTC.")]

Tz = Annotated[str, typer.Option("--tz", metavar="ZONE", help="Show and read times in this zone, e.g. Europe/Berlin.")]

NoWait = Annotated[bool, typer.Option("--no-wait", help="Send it and return; don't wait until a scheduler took it up.")]

WaitS = Annotated[
    float,
    typer.Option("--wait-timeout", metavar="SECONDS", min=0.1, help="How long to wait for a scheduler's answer."),
]

Reason = Annotated[str, typer.Option("--reason", help="Why, for those who read the history later.")]

Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)]

Handlers = Annotated[
    list[str],
    typer.Option(
        "--handler",
        metavar="NAME=MODULE:FUNCTION",
        help="A handler of this worker, e.g. menu=examples.menu:send_menu. Repeat it for more.",
        show_default=False,
    ),
]

WorkerTimeoutS = Annotated[
    float,
    typer.Option(
        "--worker-timeout",
        envvar="DUELINE_WORKER_TIMEOUT",
        metavar="SECONDS",
        min=1.0,
        help="A worker silent for so long is fenced. The same on schedulers and workers.",
    ),
]
