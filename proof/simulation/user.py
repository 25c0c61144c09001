"""The users of a simulated cluster, on a host of their own: they send the workload's records and note what they learn of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from dueline.scheduler.core.ports import Delivered, Outgoing
from dueline.scheduler.kafka import client
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.plain import KafkaPlainWriter
from dueline.scheduler.kafka.vocabulary import KafkaError, KafkaException
from proof.history.acts import Outcome, Published
from proof.simulation.kernel import Host, Kernel
from proof.simulation.workload import Act

TRY_S: Final = 10.0


class User:
    """`published`: every record sent, in the order answered; what was never answered is added by `unanswered`."""

    def __init__(self, kernel: Kernel, config: KafkaConfig) -> None:
        self.host = Host("user")
        self.published: list[Published] = []
        self._kernel, self._config = kernel, config
        self._open: dict[int, Published] = {}
        self._transactions = 0

    def begin(self, acts: Sequence[Act]) -> None:
        """Send them, each at its time."""
        self._kernel.spawn(self.host, lambda: self._send_all(acts), "workload")

    def hold_open(self, topic: str, for_s: float) -> None:
        """A transaction that stands open in the topic for so long, and is aborted."""
        self._transactions += 1
        name = f"user-{self._transactions}"
        self._kernel.spawn(self.host, lambda: self._hold_open(name, topic, for_s), name)

    def unanswered(self) -> list[Published]:
        """What nobody knows the outcome of at the end."""
        return list(self._open.values())

    def _send_all(self, acts: Sequence[Act]) -> None:
        writer = KafkaPlainWriter(self._config, "user")
        for number, act in enumerate(acts):
            self._kernel.wait(max(0.0, act.at_s - self._kernel.now_s))
            sent_ms = int(self._kernel.true_ms())
            self._open[number] = Published(
                topic=act.topic, key=act.key, value=act.value, sent_ms=sent_ms, answered_ms=-1, outcome=Outcome.UNKNOWN
            )
            record = Outgoing(topic=act.topic, key=act.key, value=act.value, partition=0)
            writer.send(record, partial(self._answered, number))

    def _answered(self, number: int, delivered: Delivered | None, _error: str) -> None:
        """An error after the record was queued says nothing about the log: it may stand there all the same."""
        sent = self._open.pop(number)
        self.published.append(
            Published(
                topic=sent.topic,
                key=sent.key,
                value=sent.value,
                sent_ms=sent.sent_ms,
                answered_ms=int(self._kernel.true_ms()),
                outcome=Outcome.UNKNOWN if delivered is None else Outcome.ACKNOWLEDGED,
                offset=-1 if delivered is None else delivered.offset,
            )
        )

    def _hold_open(self, name: str, topic: str, for_s: float) -> None:
        producer = client.producer(
            self._config, _ignore, client_id=name, transactional_id=name, transaction_timeout_ms=round(for_s * 1000) + 60_000
        )
        try:
            producer.init_transactions(TRY_S)
            producer.begin_transaction()
            producer.produce(topic, b"never to be read", b"user", 0)
            producer.flush(TRY_S)
            self._kernel.wait(for_s)
            producer.abort_transaction(TRY_S)
        except KafkaException:
            return  # then the broker ends it


def _ignore(_: KafkaError) -> None:
    """Errors of connections: the calls tell."""
