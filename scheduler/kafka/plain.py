"""A writer without transactions: heartbeats, users' jobs and commands."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from dueline.scheduler.core.ports import Delivered, Outgoing

from . import client
from .config import KafkaConfig
from .errors import NotAuthorized, TopicMissing
from .failure import AUTHORIZATION
from .outage import Outage

log = logging.getLogger(__name__)

POLL_S: Final = 0.5
CLOSE_S: Final = 2.0
DELIVERY_S: Final = 30.0

OnDelivery = Callable[[Delivered | None, str], None]


class KafkaPlainWriter:
    """Port `PlainWriter`. Any thread; delivery reports come from a thread of its own."""

    def __init__(self, config: KafkaConfig, name: str) -> None:
        self._name = name
        self._outage = Outage(name)
        self._open = partial(
            client.producer, config, self._outage.note, client_id=name, message_timeout_ms=round(DELIVERY_S * 1000)
        )
        self._producer = self._open()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"dueline-plain-{name}", daemon=True)
        self._thread.start()

    def send(self, record: Outgoing, on_delivery: OnDelivery | None = None) -> None:
        """Queue it. What the client refuses at once is reported through `on_delivery` as well."""
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=lambda error, message: self._delivered(error, message, on_delivery),
                headers=list(record.headers),
            )
        except (KafkaException, BufferError) as exception:
            if on_delivery is not None:
                on_delivery(None, self._explain(client.kafka_error(exception), record.topic))

    def flush(self, timeout_s: float) -> int:
        """Wait; how many are still on their way."""
        try:
            with client.callbacks_served():
                return self._producer.flush(timeout_s)
        except KafkaException as exception:
            self._replace(exception)
            return 0

    def close(self) -> None:
        """Flush briefly and release the client."""
        self.flush(CLOSE_S)
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                with client.callbacks_served():
                    self._producer.poll(POLL_S)
            except KafkaException as exception:
                self._replace(exception)

    def _replace(self, exception: KafkaException) -> None:
        """A fatal error ends an idempotent client: what it held was reported as failed, a new one goes on."""
        log.error("%s: %s; going on with a new client", self._name, exception, extra={"action": "plain.replaced"})
        self._producer = self._open()

    def _delivered(self, error: KafkaError | None, message: Message, report: OnDelivery | None) -> None:
        if error is None:
            self._outage.back()
        if report is None:
            return
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if error is not None or topic is None or number is None or offset is None:
            report(None, self._explain(error or KafkaError(KafkaError._FAIL), topic or ""))
            return
        report(Delivered(topic=topic, partition=number, offset=offset, append_ms=message.timestamp()[1]), "")

    def _explain(self, error: KafkaError, topic: str) -> str:
        if error.code() in AUTHORIZATION:
            return str(NotAuthorized(f"topic {topic!r}", "WRITE"))
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
            return str(TopicMissing(topic))
        if error.code() == KafkaError._MSG_TIMED_OUT:
            return f"no broker took the record for topic {topic!r} within {DELIVERY_S:.0f} s ({error.str()})"
        return f"topic {topic!r}: {error.str()}"
