"""The tree of commands: the root with its global options, and everything below it."""

from __future__ import annotations

import logging
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import typer

from dueline.scheduler.cli import jobs, runs
from dueline.scheduler.cli.audit import audit_command
from dueline.scheduler.cli.commands import accept_positions, cancel, trigger
from dueline.scheduler.cli.dev import dev
from dueline.scheduler.cli.health import health
from dueline.scheduler.cli.init import init
from dueline.scheduler.cli.lists import rejected, workers
from dueline.scheduler.cli.next import next_command
from dueline.scheduler.cli.processes import scheduler, worker
from dueline.scheduler.cli.session import DEFAULT_NAMESPACE, Session

EPILOG: Final = """\b
Exit codes:
  0    all is well
  1    the answer is bad (audit, trigger --wait, health), or the request was refused
  2    the command line, a file or a setting can't be used
  3    no broker answered in time
  4    sent, but no scheduler took it up in time, or what became of it was not seen
  5    the namespace's topics are missing: run `dueline init`
  130  interrupted by Ctrl-C
"""

app = typer.Typer(
    name="dueline",
    help=(
        "dueline: a job scheduler whose only database is the Kafka log.\n\n\b\n"
        "Begin here:\n"
        "  dueline dev                      a broker, a scheduler and a worker in this terminal\n"
        "  dueline jobs apply jobs.yaml     define jobs\n"
        "  dueline jobs list                what is due next, what ran last\n"
        "  dueline audit                    what ran, what did not, and why\n"
    ),
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dueline {metadata.version('dueline')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    bootstrap_servers: Annotated[
        str,
        typer.Option(
            "--bootstrap-servers", "-b", envvar="DUELINE_BOOTSTRAP_SERVERS", metavar="HOST:PORT,...",
            help="The Kafka cluster.", show_default=False,
        ),
    ] = "",
    kafka_config: Annotated[
        Path | None,
        typer.Option(
            "--kafka-config", envvar="DUELINE_KAFKA_CONFIG", metavar="FILE",
            help="name=value lines of librdkafka settings: security.protocol, sasl.username, ...", show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", envvar="DUELINE_NAMESPACE", metavar="NAME", help="The prefix of its topics."),
    ] = DEFAULT_NAMESPACE,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long a broker may take to answer.")
    ] = 10.0,
    version: Annotated[  # noqa: ARG001 - its callback acts on it
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:  # fmt: skip
    """The global options; they may stand before or after the command."""
    logging.getLogger().addHandler(logging.NullHandler())  # a command's answer is its own; processes add a handler
    session = Session(bootstrap_servers=bootstrap_servers, kafka_config=kafka_config, namespace_name=namespace, timeout_s=timeout)
    session.check()
    context.obj = session


app.command("init")(init)
app.command("dev")(dev)
app.command("scheduler")(scheduler)
app.command("worker")(worker)
app.command("health")(health)
app.add_typer(jobs.app)
app.command("next")(next_command)
app.command("trigger")(trigger)
app.command("cancel")(cancel)
app.command("runs")(runs.runs)
app.add_typer(runs.run_app)
app.command("audit")(audit_command)
app.command("rejected")(rejected)
app.command("workers")(workers)
app.command("accept-positions")(accept_positions)
