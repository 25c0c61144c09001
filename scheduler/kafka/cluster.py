"""Port `Kafka`: one cluster as one process sees it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from dueline.scheduler.core.ports import (
    Contact,
    Fencer,
    GroupReader,
    LogAdmin,
    LogReader,
    Partition,
    PlainWriter,
    Unavailable,
    WriterFactory,
)

from .admin import KafkaAdmin
from .config import KafkaConfig
from .contact import KafkaContact
from .errors import ConfigError, NotAuthorized
from .fencer import KafkaFencer
from .group import KafkaGroupReader
from .group_check import topics_of_group
from .plain import KafkaPlainWriter
from .reader import KafkaLogReader
from .selftest import Forge, check_fence, generation_before
from .watchdog import Watchdog, die_now
from .writers import Writers

log = logging.getLogger(__name__)

DEFAULT_SESSION_S: Final = 6.0  # Kafka's own default of the broker's minimum


class KafkaCluster:
    """Opens everything else. `client_name` is the front of every client's id in the broker's logs."""

    def __init__(self, config: KafkaConfig, *, client_name: str, die: Callable[[], None] = die_now) -> None:
        self.config = config
        self._client_name = client_name
        self._watchdog = Watchdog(die, answers=lambda: self.kafka_admin().answers())
        self._lock = threading.Lock()
        self._shared_admin: KafkaAdmin | None = None
        self._writers = Writers(config, watchdog=self._watchdog, admin=self.admin)
        self._minimum_session_s: float | None = None

    def group_reader(
        self, group: str, topic: str, *, session_timeout_s: float | None = None, max_poll_interval_s: float = 30.0
    ) -> GroupReader:
        """Joins at the first poll. Without `session_timeout_s` the broker is asked for its minimum; one that is away or
        does not tell gets Kafka's default, 6 s. Raises ConfigError."""
        return KafkaGroupReader(
            self.config,
            self._name("group"),
            group=group,
            topic=topic,
            session_timeout_s=session_timeout_s or self.minimum_session_s(),
            max_poll_interval_s=max_poll_interval_s,
            watchdog=self._watchdog,
        )

    def check_group(self, group: str, topic: str) -> None:
        """T24: a group whose members read something else belongs to somebody whose names meet ours. Raises ConfigError."""
        held = topics_of_group(self.config, group)
        if held is None:
            log.info("whose group %s is could not be asked", group, extra={"action": "group.not-asked"})
        others = sorted((held or set()) - {topic})
        if others:
            raise ConfigError(
                f"the consumer group {group!r} is used for {', '.join(others[:3])}, by another deployment whose names meet this "
                f"one's; here it is for {topic} alone. Give each deployment a namespace of its own (--namespace), or delete "
                "the group if nobody uses it any more"
            )

    def log_reader(self, name: str, *, uncommitted: bool = False) -> LogReader:
        """Raises ConfigError."""
        return KafkaLogReader(self.config, self._name(name), uncommitted=uncommitted)

    def writers(self) -> WriterFactory:
        """One factory a process: it remembers which topics exist."""
        return self._writers

    def plain_writer(self, name: str) -> PlainWriter:
        """Raises ConfigError."""
        return KafkaPlainWriter(self.config, self._name(name))

    def admin(self) -> LogAdmin:
        """One client for everybody in the process. Raises ConfigError."""
        return self.kafka_admin()

    def kafka_admin(self) -> KafkaAdmin:
        """The same, with what only `dueline init` and the self-test ask."""
        with self._lock:
            if self._shared_admin is None:
                self._shared_admin = KafkaAdmin(self.config, self._name("admin"))
            return self._shared_admin

    def fencer(self, attempts: str, steps: str) -> Fencer:
        """Its threads start with the first incarnation to fence."""
        return KafkaFencer(
            self.config, attempts=attempts, steps=steps, admin=self.admin, watchdog=self._watchdog
        )

    def contact(self, partition: Partition) -> Contact:
        """Probes with a client of its own, so that no other question delays an answer."""
        admin = KafkaAdmin(self.config, self._name("contact"), answer_s=2.0)
        return KafkaContact(lambda: admin, partition)

    def check_fence(self, *, prefix: str, partition: Partition, forge: Forge = generation_before) -> None:
        """L9, see `selftest.check_fence`. Raises NoFence, Unavailable, NotAuthorized, ConfigError."""
        check_fence(
            self.config, prefix=prefix, partition=partition, session_s=self.minimum_session_s(), forge=forge
        )

    def minimum_session_s(self) -> float:
        """The broker's minimum session time-out, seconds; asked once, 6.0 while it cannot be asked."""
        if self._minimum_session_s is None:
            try:
                self._minimum_session_s = self.kafka_admin().minimum_session_s()
            except (Unavailable, NotAuthorized) as error:
                log.info(
                    "the broker's minimum session time-out is not known (%s); %.0f s is used",
                    error,
                    DEFAULT_SESSION_S,
                    extra={"action": "group.session-default"},
                )
                return DEFAULT_SESSION_S
        return self._minimum_session_s

    def close(self) -> None:
        """Stop the watchdog. Close what was opened before."""
        self._watchdog.close()

    def _name(self, use: str) -> str:
        return f"{self._client_name}.{use}"
