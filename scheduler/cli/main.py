"""The entry point of the `dueline` command: which part of it to load, and how failures end.

Global options may stand anywhere on the line: they are moved to the front before anything is parsed, since nobody
remembers whether it is `dueline --namespace x audit` or `dueline audit --namespace x`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import typer

from dueline.scheduler.cli.errors import CommandError, ExitCode, shown

GLOBAL_OPTIONS: Final = ("--bootstrap-servers", "-b", "--kafka-config", "--namespace", "-n", "--timeout")
"""Those of the root, each with a value."""


def main() -> None:
    """The entry point."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command; the exit code. Expected failures are said on stderr, without a traceback."""
    front, rest = hoisted(arguments)
    try:
        if rest[:1] == ["health"]:
            _start(_health_alone(), rest[1:], "dueline health")
        else:
            _start(_everything(), [*front, *rest], "dueline")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK if end.code is None else ExitCode.USAGE
    except BrokenPipeError:
        # Whoever read our output has gone. Python flushes stdout once more at its end: give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        failure = _failure(error)
        if failure is None:
            raise
        print(f"dueline: {shown(failure.what)}", file=sys.stderr)
        if failure.todo:
            print(f"  → {shown(failure.todo)}", file=sys.stderr)
        return failure.code
    return ExitCode.OK


def hoisted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(global options, the rest), wherever they stood; what follows `--` stays where it is."""
    front: list[str] = []
    rest: list[str] = []
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--":
            rest += arguments[position:]
            break
        if argument in GLOBAL_OPTIONS and position + 1 < len(arguments):
            front += arguments[position : position + 2]
            position += 2
            continue
        if argument.startswith("--") and "=" in argument and argument.split("=", 1)[0] in GLOBAL_OPTIONS:
            front.append(argument)
        else:
            rest.append(argument)
        position += 1
    return front, rest


# --- steps ------------------------------------------------------------------------------------------------------------


def _start(app: typer.Typer, arguments: Sequence[str], name: str) -> None:
    app(args=list(arguments), prog_name=name, standalone_mode=True)


def _everything() -> typer.Typer:
    from dueline.scheduler.cli.tree import app

    return app


def _health_alone() -> typer.Typer:
    """A container runs it every few seconds: it loads neither Kafka's client nor the schedule engine."""
    from dueline.scheduler.cli.health import alone

    return alone


def _failure(error: Exception) -> CommandError | None:
    if isinstance(error, CommandError):
        return error
    from dueline.scheduler.cli.failures import failure_of

    return failure_of(error)


if __name__ == "__main__":
    main()
