"""`dueline init`: the topics of a namespace, created where missing, checked always, and queues given more partitions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.options import Json
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.session import Session, session_of
from dueline.scheduler.kafka.topics import InitReport, init_topics
from dueline.schemas.errors import NameInvalid
from dueline.schemas.topics import Namespace, TopicSpec, catalogue

PARTITIONS = 8
"""Of the topics of workers and queues, unless --partitions says otherwise."""


def init(
    context: typer.Context,
    queues: Annotated[
        list[str], typer.Option("--queue", "-q", metavar="NAME", help="A queue of workers. Repeat it for more.")
    ] = ["default"],  # noqa: B006 - typer reads it, nobody changes it
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="Partitions of the topics of workers and queues: a queue feeds so many workers. Default 8; named for a queue "
            "that exists with fewer, it gets more.",
            show_default=False,
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", min=1, help="Copies of each record. Default 3; 1 with --development.", show_default=False
        ),
    ] = None,
    min_insync_replicas: Annotated[
        int | None,
        typer.Option(
            "--min-insync-replicas",
            min=1,
            help="Copies that must be written. Default: one less than the copies, at least 1.",
            show_default=False,
        ),
    ] = None,
    development: Annotated[
        bool, typer.Option("--development", help="A namespace to try things: one copy of each record is enough.")
    ] = False,
    print_only: Annotated[
        bool,
        typer.Option("--print", help="Print the commands that create the topics, for somebody else to run; connect to nothing."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Create the topics of a namespace and check those that exist.

    Run it before the first start, and again for each new queue. A second run finds everything there. Of what exists it
    changes nothing, but that --partitions raises the partitions of the queues named; else it says what is wrong and what
    to do.

    \b
    Examples:
      dueline init --queue menu
      dueline init --queue menu --partitions 16    # more workers for a queue that exists
      dueline init --development
      dueline init --queue menu --print | ssh kafka-admin sh
      dueline --namespace billing init --print --json
    """
    session, output = session_of(context), Output(as_json=as_json)
    wanted = PARTITIONS if partitions is None else partitions
    specs = _specs(session, queues, wanted, replication_factor, min_insync_replicas, development=development)
    if print_only:
        _print(output, session.bootstrap_servers, specs)
        return
    with session.cluster() as kafka:
        homes = kafka.kafka_admin().partitions(session.namespace.signals)
        specs = _as_it_is(specs, session.namespace, homes)
        grow = [session.namespace.dispatch(queue) for queue in queues] if partitions is not None else []
        report = init_topics(kafka.kafka_admin(), session.namespace, specs, grow=grow)
    _show(output, specs, report)
    _say_partitions(output, specs, report, grow)
    if not report.fit:
        raise CommandError(
            f"namespace {session.namespace_name} is not fit for use", todo="do what is said above, and run `dueline init` again"
        )


# --- steps ------------------------------------------------------------------------------------------------------------


def _specs(
    session: Session,
    queues: Sequence[str],
    partitions: int,
    replication_factor: int | None,
    min_insync_replicas: int | None,
    *,
    development: bool,
) -> list[TopicSpec]:
    replicas = replication_factor if replication_factor is not None else 1 if development else 3
    insync = min_insync_replicas if min_insync_replicas is not None else max(1, replicas - 1)
    try:
        return catalogue(
            session.namespace,
            queues,
            partitions=partitions,
            replication_factor=replicas,
            min_insync_replicas=insync,
            development=development,
        )
    except (NameInvalid, ValueError) as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error


def _as_it_is(specs: Sequence[TopicSpec], namespace: Namespace, homes: int) -> list[TopicSpec]:
    """In a namespace that exists, `--partitions` is about the queues: its workers' homes stay as many as they are."""
    shared = {namespace.signals, namespace.attempts, namespace.steps}
    return [replace(spec, partitions=homes) if homes and spec.name in shared else spec for spec in specs]


def _print(output: Output, bootstrap_servers: str, specs: Sequence[TopicSpec]) -> None:
    if output.as_json:
        output.json(
            [
                {
                    "topic": spec.name,
                    "partitions": spec.partitions,
                    "replication_factor": spec.replication_factor,
                    "config": dict(spec.config),
                    "why": spec.why,
                }
                for spec in specs
            ]
        )
        return
    servers = shlex.quote(bootstrap_servers) if bootstrap_servers else '"$DUELINE_BOOTSTRAP_SERVERS"'
    for spec in specs:
        output.block(f"# {spec.why}\n{create_command(spec, servers)}")


def create_command(spec: TopicSpec, servers: str) -> str:
    """The kafka-topics.sh call that creates the topic; `servers` as the shell shall see them."""
    settings = [f"--config {shlex.quote(f'{name}={value}')}" for name, value in sorted(spec.config.items())]
    return " \\\n  ".join(
        [
            f"kafka-topics.sh --bootstrap-server {servers} --create --if-not-exists --topic {shlex.quote(spec.name)}",
            f"--partitions {spec.partitions} --replication-factor {spec.replication_factor}",
            *settings,
        ]
    )


def _show(output: Output, specs: Sequence[TopicSpec], report: InitReport) -> None:
    if output.as_json:
        output.json(
            {
                "fit": report.fit,
                "created": list(report.created),
                "existing": list(report.existing),
                "grown": list(report.grown),
                "partitions": dict(report.partitions),
                "problems": [
                    {"topic": problem.topic, "severity": problem.severity, "message": problem.message}
                    for problem in report.problems
                ],
            }
        )
        return
    rows = [[spec.name, _done(spec.name, report), str(report.partitions[spec.name]), spec.cleanup, spec.why] for spec in specs]
    output.table(["topic", "", "#partitions", "cleanup", "for"], rows, empty="")
    for problem in report.problems:
        output.note(str(problem))


def _done(topic: str, report: InitReport) -> str:
    return "created" if topic in report.created else "grown" if topic in report.grown else "there"


def _say_partitions(output: Output, specs: Sequence[TopicSpec], report: InitReport, asked: Sequence[str]) -> None:
    """What became of the partitions that were asked for."""
    for name in report.grown:
        output.note(f"{name} has {report.partitions[name]} partitions now; running workers take them up within five minutes")
    for spec in specs:
        has = report.partitions[spec.name]
        if spec.name in asked and has > spec.partitions:
            output.note(f"{spec.name} keeps its {has} partitions: Kafka cannot take any away; {spec.partitions} were asked for")
