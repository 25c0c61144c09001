"""Refusals (dead letters) while `rejected` cannot be written in the leader's transactions: they follow by a writer of their own,
so that no letter ever holds up a job.

Each is in the log before anything is written, since its input is not read again: it is lost to its topic if this process ends,
or never hears whether its transaction stands, before the letter arrives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from dueline.scheduler.core.ports import Delivered, Outgoing, PlainWriter
from dueline.scheduler.leader.encode import letter_outgoing
from dueline.schemas.command import Rejected
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

WAITING_LIMIT = 1_000
"""How many may be on their way: each has some tens of kilobytes at most. The others are in the log alone."""

TRIES = 20
"""How often one is sent, for half a minute each time (the writer's delivery time-out)."""


class Letters:
    """Those on their way. Outlives the term, as what keeps them from being written may have ended it."""

    def __init__(self, open_writer: Callable[[], PlainWriter], namespace: Namespace) -> None:
        self._open, self._namespace = open_writer, namespace
        self._writer: PlainWriter | None = None
        self._waiting: set[tuple[str, int, int]] = set()
        self._closed = False

    def say(self, letters: Iterable[Rejected]) -> None:
        """Before the transaction that leaves them out: each is in the log."""
        for letter in letters:
            log.error(
                "refused, and `rejected` cannot be written now: %s[%d] offset %d: %.1000s",
                letter.topic,
                letter.partition,
                letter.offset,
                letter.detail,
                extra={"action": "rejected_waits"},
            )

    def follow(self, letters: Iterable[Rejected]) -> None:
        """Their transaction stands without them: send them."""
        for letter in letters:
            if len(self._waiting) >= WAITING_LIMIT:
                return
            self._waiting.add((letter.topic, letter.partition, letter.offset))
            self._send(letter_outgoing(self._namespace, letter), letter, TRIES)

    def close(self) -> None:
        """Give up what is on its way."""
        self._closed = True
        if self._writer is not None:
            self._writer.close()

    def _send(self, record: Outgoing, letter: Rejected, tries: int) -> None:
        def delivered(place: Delivered | None, error: str) -> None:
            if place is None and tries > 1 and not self._closed:
                self._send(record, letter, tries - 1)
                return
            self._waiting.discard((letter.topic, letter.partition, letter.offset))
            if place is None:
                log.error(
                    "the letter for %s[%d] offset %d is not written: %s",
                    letter.topic,
                    letter.partition,
                    letter.offset,
                    error,
                    extra={"action": "rejected_lost"},
                )

        if self._writer is None:
            self._writer = self._open()
        self._writer.send(record, delivered)
