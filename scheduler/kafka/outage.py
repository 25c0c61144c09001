"""Says once that the broker is away, and once that it is back."""

from __future__ import annotations

import logging
import threading

from confluent_kafka import KafkaError

log = logging.getLogger(__name__)

AWAY = frozenset({
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
})


class Outage:
    """The state "away" of one client. Any thread."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._away = False
        self._lock = threading.Lock()

    def note(self, error: KafkaError) -> None:
        """An error event of the client. All others than connection troubles are only logged for debugging."""
        if error.code() not in AWAY:
            log.debug("%s: %s", self._client, error, extra={"action": "kafka.client-error"})
            return
        # One broken connection of several is librdkafka's to mend; only when none is left the broker is away.
        if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL):
            self.away(error.str())

    def away(self, why: str) -> None:
        """No answer came."""
        with self._lock:
            if self._away:
                return
            self._away = True
        log.warning(
            "%s: no Kafka broker answers (%s); trying again until one does, nothing is lost meanwhile",
            self._client,
            why,
            extra={"action": "kafka.away", "client": self._client},
        )

    def back(self) -> None:
        """An answer came."""
        if not self._away:
            return
        with self._lock:
            self._away = False
        log.info("%s: Kafka answers again", self._client, extra={"action": "kafka.back", "client": self._client})
