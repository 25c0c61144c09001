"""What stands between the command line and a running process: a broker that answers, fit topics, a fence that holds.

A broker that is away is waited for, since a scheduler or worker started by an init system must survive a cluster that
starts later. Topics that are unfit stop the start: a process that began anyway would break the promise quietly.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.core.ports import Unavailable
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.topics import check_topics, queues
from dueline.schemas.topic_check import Severity
from dueline.schemas.topics import Namespace, catalogue

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""Between two questions to a broker that is away."""

TOLD_EVERY_S: Final = 10.0
"""How often the log says that a broker is waited for."""

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

A = TypeVar("A")


@contextmanager
def stopped_by_signals(what: str) -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set. The second signal ends the process at once, with 128 + its number."""
    stop = threading.Event()

    def handle(number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        if stop.is_set():
            log.warning("%s again: ending at once", name, extra={"action": "process.abandon"})
            os._exit(128 + number)
        log.info("%s: the %s stops in order; a second one ends it at once", name, what, extra={"action": "process.stop"})
        stop.set()

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def when_reachable(stop: threading.Event, ask: Callable[[], A]) -> A | None:
    """The answer, once a broker gives one; None when told to stop before."""
    silent_s = 0.0
    while not stop.is_set():
        try:
            return ask()
        except Unavailable as error:
            if silent_s % TOLD_EVERY_S == 0:
                log.warning("waiting for Kafka: %s", error, extra={"action": "start.waiting"})
            silent_s += RETRY_S
            stop.wait(RETRY_S)
    return None


def check_namespace(
    cluster: KafkaCluster,
    namespace: Namespace,
    *,
    needed: Sequence[str] = (),
    replication_factor: int,
    min_insync_replicas: int,
    development: bool,
) -> None:
    """Raises CommandError when a topic is missing or unfit; warnings are logged. `needed`: queues that must exist."""
    admin = cluster.kafka_admin()
    found = sorted({*queues(admin, namespace), *needed})
    specs = catalogue(
        namespace,
        found,
        partitions=admin.partitions(namespace.signals) or 8,
        replication_factor=replication_factor,
        min_insync_replicas=min_insync_replicas,
        development=development,
    )
    problems = check_topics(admin, namespace, specs)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    for problem in problems:
        if problem.severity is not Severity.ERROR:
            log.warning("topic %s: %s", problem.topic, problem.message, extra={"action": "start.topic-warning"})
    if errors:
        missing = any(not admin.partitions(problem.topic) for problem in errors)
        raise CommandError(
            "\n".join(str(problem) for problem in errors),
            todo="`dueline init --help` shows how topics are made; --development lowers the floor of copies to 1",
            code=ExitCode.NOT_SET_UP if missing else ExitCode.PROBLEM,
        )
