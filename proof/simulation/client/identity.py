"""A producer's id and epoch: acquired, lost, and asked for anew."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.errors import NO_ERROR, fencing_as_one, told
from proof.simulation.client.map import Map
from proof.simulation.client.wire import Wire
from proof.simulation.kernel import Timer
from proof.simulation.protocol import InitProducerId, ProducerIdAnswer

AGAIN_S: Final = 0.5  # librdkafka's fixed pause after a refusal
OnFatal = Callable[[int, str], None]

FATAL: Final = frozenset({
    KafkaError.INVALID_TRANSACTION_TIMEOUT,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
})


class Identity:
    """`pid` and `epoch` are -1 before the first answer. `failed`: the code of the last refusal, 0: none."""

    def __init__(self, wire: Wire, world: Map, transactional_id: str, on_known: Callable[[], None], on_fatal: OnFatal) -> None:
        self.pid = self.epoch = -1
        self.known = False
        self.failed = NO_ERROR
        self._wire, self._map = wire, world
        self._id = transactional_id
        self._on_known, self._on_fatal = on_known, on_fatal
        self._asking = False
        self._timer: Timer | None = None

    def acquire(self) -> None:
        """Ask until there is an answer. One that has an id keeps it and gets a higher epoch."""
        self.known = False
        if self._asking:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._asking = True
        if self._id:
            self._map.seek_coordinator(self._id, self._ask, transactional=True)
        else:
            self._ask(self._wire.any_node())

    def bump(self) -> None:
        """A plain producer raises its epoch by itself."""
        self.epoch += 1

    def _ask(self, node: int) -> None:
        timeout_s = self._wire.settings.seconds("transaction.timeout.ms", 60_000)
        request = InitProducerId(transactional_id=self._id, timeout_s=timeout_s, pid=self.pid, epoch=self.epoch)
        self._wire.ask(node, request, self._answered, coordinator=bool(self._id))

    def _answered(self, code: int, answer: ProducerIdAnswer | None) -> None:
        self._asking = False
        if code == NO_ERROR and answer is not None:
            self.pid, self.epoch = answer.pid, answer.epoch
            self.known, self.failed = True, NO_ERROR
            self._on_known()
            return
        kind = "transactional" if self._id else "idempotence"
        text = f"Failed to acquire {kind} PID from broker: {told(code)}"
        if code in FATAL:
            same = fencing_as_one(code)
            front = "Producer fenced by newer instance: " if same == KafkaError._FENCED else ""
            self._on_fatal(same, front + text)
            return
        if self._id and code != KafkaError.CONCURRENT_TRANSACTIONS:
            self._map.forget_coordinator(self._id, transactional=True, wait_s=0.05)
        self.failed = code
        self._wire.log(logging.WARNING, "GETPID", f"{text}: retrying")
        self._timer = self._wire.after(AGAIN_S, self.acquire)
