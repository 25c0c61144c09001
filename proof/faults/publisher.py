"""The user's side: definitions, deletions and commands, each noted with what became of it."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from dueline.scheduler.kafka.client import ClientLog
from dueline.scheduler.kafka.vocabulary import KafkaError, KafkaException, Message, Producer
from proof.faults.clock import now_ms
from proof.faults.notes import Notebook
from proof.history.acts import Outcome, Published

log = logging.getLogger(__name__)

DEFINITE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._QUEUE_FULL, KafkaError._UNKNOWN_TOPIC})
"""After these nothing was written. After any other error, a time-out above all, the record may stand in the log."""


class Publisher:
    """One thread."""

    def __init__(self, servers: str, notes: Notebook) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 12_000,
                "reconnect.backoff.max.ms": 500, "client.id": "proof.user",
            },
            logger=ClientLog(),
        )  # fmt: skip
        self._notes = notes

    def send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send one record to partition 0; the outcome is noted when it is known."""
        answered = partial(self._answered, topic, key or b"", value, now_ms())
        self._producer.produce(topic, value, key, 0, on_delivery=answered)

    def poll(self) -> None:
        """Take answers."""
        try:
            self._producer.poll(0)
        except (SystemError, KafkaException):  # the client fails so now and then, when a broker goes away; it goes on
            log.exception("the user's producer failed while it served answers")

    def close(self, timeout_s: float = 15.0) -> None:
        """Wait for every answer; those that do not come are noted as unknown."""
        self._producer.flush(timeout_s)
        self._producer.purge()
        self._producer.flush(1.0)

    def _answered(
        self, topic: str, key: bytes, value: bytes | None, sent_ms: int, error: KafkaError | None, message: Message
    ) -> None:
        outcome = Outcome.ACKNOWLEDGED
        if error is not None:
            outcome = Outcome.FAILED if error.code() in DEFINITE else Outcome.UNKNOWN
        offset = message.offset() if error is None else None
        self._notes.published(
            Published(
                topic=topic, key=key, value=value, sent_ms=sent_ms, answered_ms=now_ms(), outcome=outcome,
                offset=-1 if offset is None else offset,
            )
        )  # fmt: skip
