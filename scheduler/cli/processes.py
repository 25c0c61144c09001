"""`dueline scheduler` and `dueline worker`: the two processes, wired."""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.options import Handlers, WorkerTimeoutS
from dueline.scheduler.cli.session import Session, session_of
from dueline.scheduler.cli.startup import check_namespace, stopped_by_signals, when_reachable
from dueline.scheduler.core.ports import Kafka
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.leader import Scheduler, SchedulerSettings
from dueline.scheduler.leader.fold import LedgerDamaged
from dueline.schemas.errors import NameInvalid
from dueline.workers.errors import HandlerError, SetupError
from dueline.workers.logging import configure
from dueline.workers.process import WorkerProcess
from dueline.workers.registry import Registry, parse_handler
from dueline.workers.settings import WorkerSettings, default_worker_id

HealthFile = Annotated[
    Path | None,
    typer.Option(
        "--health-file", envvar="DUELINE_HEALTH_FILE", metavar="FILE",
        help="Written every second; `dueline health` reads it.", show_default=False,
    ),
]  # fmt: skip

LogLevel = Annotated[
    str, typer.Option("--log-level", envvar="DUELINE_LOG_LEVEL", metavar="LEVEL", help="debug, info, warning or error.")
]

Development = Annotated[
    bool,
    typer.Option("--development", envvar="DUELINE_DEVELOPMENT", help="Accept topics with one copy of each record."),
]

ReplicationFloor = Annotated[
    int,
    typer.Option(
        "--replication-factor", envvar="DUELINE_REPLICATION_FACTOR", min=1,
        help="Refuse topics with fewer copies of each record.",
    ),
]  # fmt: skip

InsyncFloor = Annotated[
    int,
    typer.Option(
        "--min-insync-replicas", envvar="DUELINE_MIN_INSYNC_REPLICAS", min=1,
        help="Refuse topics whose min.insync.replicas is lower.",
    ),
]  # fmt: skip


def scheduler(
    context: typer.Context,
    worker_timeout: WorkerTimeoutS = 10.0,
    session_timeout: Annotated[
        float | None,
        typer.Option(
            "--session-timeout", metavar="SECONDS", min=0.5, show_default=False,
            help="A leader silent for so long is replaced. Default: the broker's minimum.",
        ),
    ] = None,
    max_clock_skew: Annotated[
        float, typer.Option("--max-clock-skew", metavar="SECONDS", min=0.1, help="Beyond it nothing new fires, and it says so.")
    ] = 30.0,
    development: Development = False,
    replication_factor: ReplicationFloor = 3,
    min_insync_replicas: InsyncFloor = 2,
    health_file: HealthFile = None,
    log_level: LogLevel = "info",
) -> None:  # fmt: skip
    """Run a scheduler: it leads, or stands by to take over.

    Start two or more, on different hosts; which one leads is decided by Kafka. SIGTERM hands over at once; a second
    signal ends the process.

    \b
    Examples:
      dueline scheduler
      dueline scheduler --development --worker-timeout 5
    """
    session = session_of(context)
    start_logging(log_level)
    settings = SchedulerSettings(
        process=f"{socket.gethostname()}:{os.getpid()}",
        session_timeout_s=session_timeout,
        worker_timeout_s=worker_timeout,
        max_clock_skew_s=max_clock_skew,
        health_file=str(health_file) if health_file else "",
    )
    namespace = session.namespace
    with stopped_by_signals("scheduler") as stop, cluster_of(session, "scheduler") as cluster:

        def ready() -> bool:
            check_namespace(
                cluster, namespace, replication_factor=replication_factor,
                min_insync_replicas=min_insync_replicas, development=development,
            )  # fmt: skip
            cluster.check_group(namespace.scheduler_group, namespace.control)
            cluster.check_fence(prefix=namespace.name, partition=(namespace.control, 0))
            return True

        if when_reachable(stop, ready) is None:
            return
        code = run_scheduler(cluster, session, settings, stop)
    raise typer.Exit(code)


def worker(
    context: typer.Context,
    handlers: Handlers,
    queue: Annotated[str, typer.Option("--queue", "-q", metavar="NAME", help="The queue to work for.")] = "default",
    slots: Annotated[int, typer.Option("--slots", min=1, help="Handlers that run at the same time.")] = 8,
    prefetch: Annotated[int, typer.Option("--prefetch", min=0, help="Offers held beside those that run.")] = 0,
    worker_id: Annotated[
        str,
        typer.Option(
            "--worker-id", envvar="DUELINE_WORKER_ID", metavar="ID", show_default=False,
            help="Its name in records and logs. Default: host and process id.",
        ),
    ] = "",
    heartbeat: Annotated[
        float, typer.Option("--heartbeat", metavar="SECONDS", min=0.05, help="Between two signs of life.")
    ] = 1.0,
    worker_timeout: WorkerTimeoutS = 10.0,
    drain_timeout: Annotated[
        float,
        typer.Option("--drain-timeout", metavar="SECONDS", min=0.0, help="On SIGTERM, what runs may take so long to end."),
    ] = 30.0,
    health_file: HealthFile = None,
    log_level: LogLevel = "info",
) -> None:  # fmt: skip
    """Run a worker: it runs the handlers it is given, for one queue.

    A job names a handler; only a worker's command line says what code that is. The current folder is on the import
    path. SIGTERM drains: what is held goes back, what runs may finish; a second signal ends the process at once, and
    its runs go on elsewhere after --worker-timeout.

    \b
    Examples:
      dueline worker --queue menu --handler menu=examples.menu:send_menu
      dueline worker --handler a=app.tasks:a --handler b=app.tasks:b --slots 20
    """
    session = session_of(context)
    start_logging(log_level)
    registry = registry_of(handlers)
    try:
        settings = WorkerSettings(
            queue=queue,
            namespace=session.namespace,
            worker=worker_id or default_worker_id(),
            slots=slots,
            prefetch=prefetch,
            heartbeat_s=heartbeat,
            worker_timeout_s=worker_timeout,
            drain_timeout_s=drain_timeout,
            health_file=health_file,
        )
    except (NameInvalid, ValueError) as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error
    with stopped_by_signals("worker") as stop, cluster_of(session, "worker") as cluster:
        run_worker(cluster, session, registry, settings, stop)


# --- steps ------------------------------------------------------------------------------------------------------------


def run_scheduler(cluster: Kafka, session: Session, settings: SchedulerSettings, stop: threading.Event) -> int:
    """Follow and lead until told to stop; the exit code."""
    process = Scheduler(cluster, session.clock, session.namespace, settings, lambda: uuid.uuid4().hex)
    try:
        return process.run(stop)
    except LedgerDamaged as error:
        raise CommandError(
            f"the ledger can't be read: {error}", todo="no scheduler decides on half a ledger; look at the record it names"
        ) from error


def run_worker(cluster: Kafka, session: Session, registry: Registry, settings: WorkerSettings, stop: threading.Event) -> None:
    """Work until told to stop, then drain."""
    try:
        WorkerProcess(cluster, session.clock, registry, settings).run(stop)
    except SetupError as error:
        raise CommandError(str(error), code=ExitCode.NOT_SET_UP) from error


def registry_of(handlers: Sequence[str]) -> Registry:
    """The handlers of the command line."""
    try:
        return Registry(parse_handler(text) for text in handlers)
    except HandlerError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error


@contextmanager
def cluster_of(session: Session, use: str) -> Iterator[KafkaCluster]:
    """The cluster as this process sees it."""
    cluster = KafkaCluster(session.config(), client_name=f"{session.namespace_name}.{use}")
    try:
        yield cluster
    finally:
        cluster.close()


def start_logging(level: str) -> None:
    """Log to standard error from this level on."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise CommandError(f"--log-level {level!r}: there are debug, info, warning, error", code=ExitCode.USAGE)
    configure(number)
