"""`dueline dev`: a real broker, a scheduler and a worker in one terminal, for trying things.

One process: the broker is its child and ends with it, whatever ends it; scheduler and worker are threads. They are told
to stop in the order that leaves nothing half done: the worker drains while the scheduler still leads, then the scheduler
hands over, then the broker stops.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from dueline.scheduler.cli.errors import CommandError
from dueline.scheduler.cli.options import Handlers
from dueline.scheduler.cli.output import Output
from dueline.scheduler.cli.processes import (
    LogLevel,
    cluster_of,
    registry_of,
    run_scheduler,
    run_worker,
    start_logging,
)
from dueline.scheduler.cli.session import Session, session_of
from dueline.scheduler.cli.startup import stopped_by_signals
from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.topics import init_topics
from dueline.scheduler.leader import SchedulerSettings
from dueline.schemas.topics import catalogue
from dueline.workers.registry import Registry
from dueline.workers.settings import WorkerSettings

DRAIN_S: Final = 10.0
"""Somebody who pressed Ctrl-C waits for it."""

WORKER_TIMEOUT_S: Final = 5.0

log = logging.getLogger(__name__)


def dev(
    context: typer.Context,
    handlers: Handlers = [],  # noqa: B006 - typer reads it, nobody changes it
    queues: Annotated[
        list[str], typer.Option("--queue", "-q", metavar="NAME", help="Queues to make; the worker works for the first.")
    ] = ["default"],  # noqa: B006
    data: Annotated[
        Path, typer.Option("--data", metavar="FOLDER", help="Where the broker keeps its data; it is there next time.")
    ] = Path(".dueline/dev"),
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65_535, help="The broker's port. Default: a free one.", show_default=False)
    ] = None,
    log_level: LogLevel = "info",
) -> None:
    """Run a broker, a scheduler and a worker here, until Ctrl-C.

    The broker is a real Apache Kafka, one node, on this machine's loopback only: for trying things, not for production.
    The first start on a machine takes about 20 s, later ones about 2 s.

    \b
    Examples:
      dueline dev
      dueline dev --handler menu=examples.menu:send_menu --queue menu
      export DUELINE_BOOTSTRAP_SERVERS=...        # as it prints, in another terminal
      dueline jobs apply jobs.yaml
    """
    session = session_of(context)
    start_logging(log_level)
    registry = registry_of(handlers)
    output = Output()
    with stopped_by_signals("development cluster") as stop:
        output.note("starting Kafka (the first time on a machine it is fetched first)")
        with EmbeddedBroker(data, port=port) as broker, ExitStack() as stack:
            here = replace_servers(session, broker.bootstrap_servers)
            cluster = stack.enter_context(cluster_of(here, "dev"))
            make_topics(cluster, here, queues)
            output.line(f"Kafka is at {broker.bootstrap_servers}, data in {data}. In another terminal:")
            output.line(f"  export DUELINE_BOOTSTRAP_SERVERS={broker.bootstrap_servers}")
            output.line("  dueline jobs apply jobs.yaml; dueline jobs list")
            output.line("Ctrl-C ends it.")
            failure = run_both(cluster, here, registry, queues[0], stop)
    if failure is not None:
        raise CommandError(f"it ended by itself: {failure}") from failure


# --- steps ------------------------------------------------------------------------------------------------------------


def replace_servers(session: Session, servers: str) -> Session:
    """The session with the embedded broker in place of any cluster that the environment names."""
    return replace(session, bootstrap_servers=servers, kafka_config=None)


def make_topics(cluster: KafkaCluster, session: Session, queues: list[str]) -> None:
    """The namespace's topics, with one copy of each record."""
    specs = catalogue(session.namespace, queues, replication_factor=1, min_insync_replicas=1, development=True)
    report = init_topics(cluster.kafka_admin(), session.namespace, specs)
    if not report.fit:
        raise CommandError(
            "\n".join(map(str, report.problems)), todo="the data folder holds topics of another kind: choose another --data"
        )


def run_both(
    cluster: KafkaCluster, session: Session, registry: Registry, queue: str, stop: threading.Event
) -> BaseException | None:
    """Scheduler and worker until told to stop, or until one of them fails: then why."""
    name = f"{socket.gethostname()}:{os.getpid()}"
    scheduler_settings = SchedulerSettings(process=name, worker_timeout_s=WORKER_TIMEOUT_S)
    worker_settings = WorkerSettings(
        queue=queue,
        namespace=session.namespace,
        worker="dev",
        worker_timeout_s=WORKER_TIMEOUT_S,
        drain_timeout_s=DRAIN_S,
    )
    stop_scheduler = threading.Event()
    parts = [Part("scheduler", lambda: run_scheduler(cluster, session, scheduler_settings, stop_scheduler), stop)]
    if registry.names:
        parts.append(Part("worker", lambda: run_worker(cluster, session, registry, worker_settings, stop), stop))
    else:
        log.info("no --handler given: no worker here; start one with `dueline worker`", extra={"action": "dev.no-worker"})
    stop.wait()
    for part in reversed(parts[1:]):
        part.join()
    stop_scheduler.set()
    parts[0].join()
    return next((part.failure for part in parts if part.failure is not None), None)


class Part:
    """A part in a thread of its own. When it ends, for whatever reason, all of it ends."""

    def __init__(self, name: str, run: Callable[[], object], stop: threading.Event) -> None:
        self.failure: BaseException | None = None
        self._run = run
        self._stop = stop
        self._thread = threading.Thread(target=self._guarded, name=f"dueline-{name}", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:
            log.exception("it failed", extra={"action": "dev.part-failed"})
            self.failure = error
        finally:
            self._stop.set()
