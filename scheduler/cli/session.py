"""What every command knows from the options in front of it, and its connection to the cluster: made when first used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import typer

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.times import Display
from dueline.scheduler.core.ports import Clock, LogAdmin
from dueline.scheduler.kafka.admin import KafkaAdmin
from dueline.scheduler.kafka.clock import SystemClock
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.errors import ConfigError
from dueline.schemas.errors import NameInvalid
from dueline.schemas.topics import Namespace

DEFAULT_NAMESPACE: Final = "dueline"


@dataclass(slots=True)
class Session:
    """One call of the command. `timeout_s`: how long a broker may take to answer."""

    bootstrap_servers: str = ""
    kafka_config: Path | None = None
    namespace_name: str = DEFAULT_NAMESPACE
    timeout_s: float = 10.0
    clock: Clock = field(default_factory=SystemClock)

    @property
    def namespace(self) -> Namespace:
        """Where the topics are."""
        try:
            return Namespace(self.namespace_name)
        except NameInvalid as error:
            raise CommandError(str(error), code=ExitCode.USAGE) from error

    def check(self) -> None:
        """Refuse what can't be before anything else is looked at. Raises CommandError."""
        _ = self.namespace

    def config(self) -> KafkaConfig:
        """The settings of the cluster: option, environment, file."""
        try:
            return KafkaConfig.load(file=self.kafka_config, bootstrap_servers=self.bootstrap_servers, environ=os.environ)
        except ConfigError as error:
            raise CommandError(str(error), code=ExitCode.USAGE) from error

    @contextmanager
    def cluster(self) -> Iterator[KafkaCluster]:
        """The cluster, for as long as the block lasts. Raises Unavailable when no broker answers within `timeout_s`."""
        config, name = self.config(), f"{self.namespace.name}.command"
        KafkaAdmin(config, name, answer_s=self.timeout_s).partitions(self.namespace.runs)
        cluster = KafkaCluster(config, client_name=name)
        try:
            yield cluster
        finally:
            cluster.close()

    @contextmanager
    def log(self) -> Iterator[LogAdmin]:
        """Questions about the log."""
        with self.cluster() as cluster:
            yield cluster.admin()


def session_of(context: typer.Context) -> Session:
    """The session that the root command made."""
    session = context.find_object(Session)
    assert session is not None, "the root command makes it before any other runs"
    return session


def display_of(zone: str) -> Display:
    """The zone of --tz."""
    try:
        return Display.of(zone)
    except ValueError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error


def instant_of(display: Display, option: str, text: str, now_ms: int) -> int:
    """The instant an option names."""
    try:
        return display.parse(text, now_ms)
    except ValueError as error:
        raise CommandError(f"{option}: {error}", code=ExitCode.USAGE) from error
