"""L11: a pair of producers that take turns.

A single producer must wait for the markers of its own last transaction before the next AddOffsets succeeds; the other
one of a pair need not. The next transaction begins only after the last commit was acknowledged (a write returns only
then), so order and fence are as with one producer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dueline.scheduler.core.ports import (
    Aborted,
    BeforeCommit,
    Delivered,
    Doubtful,
    Fenced,
    GroupOffsets,
    Outgoing,
    Refused,
    UnfencedOffset,
)
from dueline.scheduler.core.ports import WriteError as _WriteError

from .transaction import TransactionalProducer

TopicCheck = Callable[[Sequence[Sequence[Outgoing]]], None]


class TurnsWriter:
    """Port `TransactionWriter` over initialised producers. Not for two threads at a time."""

    def __init__(
        self, producers: Sequence[TransactionalProducer], *, check: TopicCheck, survives_refusal: bool = False
    ) -> None:
        self._producers = list(producers)
        self._check = check
        self._survives_refusal = survives_refusal
        self._next = 0
        self._over = ""
        self._spent: TransactionalProducer | None = None

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> list[Delivered]:
        """One transaction by the producer whose turn it is."""
        if self._over:
            raise Fenced(f"this writer is over: {self._over}")
        producer = self._producers[self._next]
        try:
            self._check(groups)
            delivered = producer.write(
                groups, offsets=offsets, before_commit=before_commit, survives_refusal=self._survives_refusal
            )
        except Refused as refused:
            if not self._survives_refusal:
                self._over = str(refused)
            raise
        except (Doubtful, Aborted) as error:
            self._over = str(error)
            self._spent = producer
            raise
        except _WriteError as error:
            self._over = str(error)
            raise
        self._next = (self._next + 1) % len(self._producers)
        return delivered

    @property
    def producers(self) -> int:
        """How many take turns."""
        return len(self._producers)

    def serve(self) -> None:
        """Hear what the clients have to say, until they are closed: an open client goes on talking when the writer is over."""
        for producer in self._producers:
            producer.serve()

    def survivor(self) -> TurnsWriter | None:
        """After Doubtful or Aborted, of a pair: the other producer alone. None otherwise, and when asked a second time."""
        spent, self._spent = self._spent, None
        if spent is None or len(self._producers) < 2:
            return None
        others = [producer for producer in self._producers if producer is not spent]
        self._producers = [spent]
        return TurnsWriter(others, check=self._check, survives_refusal=self._survives_refusal)

    def close(self) -> None:
        """Abandon the clients."""
        self._over = self._over or "it was closed"
        for producer in self._producers:
            producer.close()
