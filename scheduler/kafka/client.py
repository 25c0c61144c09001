"""Opens librdkafka clients: one place for the logger, the error callback and the errors of wrong settings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from dueline.schemas.topics import MAX_RECORD_BYTES

from .config import KafkaConfig
from .errors import ConfigError

LOGGER: Final = logging.getLogger("dueline.scheduler.kafka.librdkafka")
LOGGER.addHandler(logging.NullHandler())  # without a handler of the application, nothing goes to stderr

ErrorCallback = Callable[[KafkaError], None]
LogCallback = Callable[[str, str], None]
"""Facility and text of a client's log line."""

StatisticsCallback = Callable[[str], None]
"""Told of the client's statistics, JSON, every `statistics.interval.ms`."""

CONNECTION: Final = frozenset({"FAIL", "REQTMOUT"})
"""Facilities of lines about a connection that failed. They come by the dozen while a broker is away; `Outage` says it
once, so they are for debugging."""
HANDLED: Final = CONNECTION | {"TXNERR", "GETPID"}
"""Lines about what the client tries again by itself, or what the call that met it raises and its caller tells of."""
REQUEST_MS: Final = 10_000
"""When a consumer or an admin client gives up a request that was lost on a connection that stands, and connects anew. The
default of 60 s would leave a leader or a worker deaf for that long. JoinGroup, which waits for other members, has its own."""
Settings = dict[str, Any]
C = TypeVar("C")


class ClientLog:
    """What the client calls as its logger: passes lines on to ours, and to who must know of them."""

    def __init__(self, on_line: LogCallback | None = None) -> None:
        self._on_line = on_line

    def log(self, level: int, form: str, facility: str, name: str, text: str) -> None:
        """Called by the client, from inside poll, flush and the transaction calls."""
        LOGGER.log(logging.DEBUG if facility in HANDLED else level, form, facility, name, text)
        if self._on_line is not None:
            self._on_line(facility, text)


def producer(
    config: KafkaConfig,
    on_error: ErrorCallback,
    on_line: LogCallback | None = None,
    on_statistics: StatisticsCallback | None = None,
    **own: str | int | float | bool,
) -> Producer:
    """Raises ConfigError."""
    settings: Settings = {
        **config.client(
            log_connection_close=True,
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            queue_buffering_max_messages=1_000_000,  # a transaction of a burst is produced before it is flushed
            message_max_bytes=MAX_RECORD_BYTES,
            topic_metadata_propagation_max_ms=5000,  # a missing topic is told after this, not after 30 s
            retry_backoff_ms=2,  # AddOffsetsToTxn meets the last transaction's markers; the default waits 100 ms (L11)
            retry_backoff_max_ms=50,
            **own,
        ),
        "log_level": 6,  # a broken connection is told at this level, and decides what is in doubt
        "error_cb": on_error,
    }
    if on_statistics is not None:
        settings["stats_cb"] = on_statistics
    return _open(lambda: Producer(settings, logger=ClientLog(on_line)))


def consumer(config: KafkaConfig, on_error: ErrorCallback, **own: str | int | float | bool) -> Consumer:
    """Raises ConfigError."""
    settings: Settings = {
        **config.client(
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,  # the only event that tells a position past control markers and aborted records
            allow_auto_create_topics=False,
            fetch_queue_backoff_ms=10,  # the default pauses a full queue's fetching for a second
            fetch_error_backoff_ms=50,
            **own,
        ),
        "error_cb": on_error,
    }
    # How late an end is noticed; records come at once either way. Five idle readers at 10 ms took 2 % of a core, at 50 ms 1 %.
    settings.setdefault("fetch.wait.max.ms", 20)
    settings.setdefault("isolation.level", "read_committed")
    settings.setdefault("socket.timeout.ms", REQUEST_MS)
    return _open(lambda: Consumer(settings, logger=ClientLog()))


def admin(config: KafkaConfig, on_error: ErrorCallback, **own: str | int | float | bool) -> AdminClient:
    """Raises ConfigError."""
    settings: Settings = {**config.client(socket_timeout_ms=REQUEST_MS, **own), "error_cb": on_error}
    return _open(lambda: AdminClient(settings, logger=ClientLog()))


def _open(build: Callable[[], C]) -> C:
    try:
        return build()
    except KafkaException as error:
        raise ConfigError(f"the Kafka settings cannot be used: {kafka_error(error).str()}") from None


@contextmanager
def callbacks_served() -> Iterator[None]:
    """Around a call that serves callbacks. A fatal error is raised by whatever serves it; when a delivery report stands
    behind it in the queue, the client calls our callback with that exception set, and Python makes a SystemError of it."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KafkaException):
            raise cause from None
        # The callback cleared the exception that was pending: only that the client failed for good is still known.
        raise KafkaException(KafkaError(KafkaError._FATAL, f"the client failed for good ({error})", True)) from error
    except:  # what the client raises here at times is a bare KafkaError, which derives from nothing that could be named
        bare: object = sys.exc_info()[1]
        if isinstance(bare, KafkaError):
            raise KafkaException(bare) from None
        raise


def kafka_error(error: BaseException) -> KafkaError:
    """The client's error inside its exception."""
    first = error.args[0] if error.args else None
    if isinstance(first, KafkaError):
        return first
    return KafkaError(KafkaError._FAIL, str(error))
