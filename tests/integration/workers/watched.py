"""The real cluster behind a port wrapper that keeps a journal, holds writes and answers back, and raises doubt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dueline.scheduler.core.ports import (
    Aborted,
    BeforeCommit,
    Contact,
    Delivered,
    Doubtful,
    Fencer,
    GroupOffsets,
    GroupReader,
    Kafka,
    LogAdmin,
    LogReader,
    Outgoing,
    Partition,
    PlainWriter,
    TransactionWriter,
    UnfencedOffset,
    WriterFactory,
)
from dueline.schemas.codec import decode
from dueline.schemas.work import Heartbeat

Answer = Callable[[Delivered | None, str], None]


@dataclass
class Trouble:
    """What a kind of writer ("claim" or "pair") shall meet at its next write: "after" | "before" the commit, "aborted".
    `on_over`: called in the task that learns that no producer is left."""

    next: str = ""
    on_over: Callable[[], object] = lambda: None
    gate: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)
    writes: list[list[list[Outgoing]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()


class Watched:
    """Port `Kafka` over a real one."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self.journal: list[tuple[str, str]] = []
        self.claim, self.pair = Trouble(), Trouble()
        self.hold_answers = False
        self.held: list[Callable[[], None]] = []

    def release(self) -> None:
        """Deliver the heartbeat answers held back."""
        held, self.held = self.held, []
        for answer in held:
            answer()

    def writers(self) -> WriterFactory:
        return WatchedWriters(self, self._kafka.writers())

    def plain_writer(self, name: str) -> PlainWriter:
        return WatchedPlain(self, self._kafka.plain_writer(name))

    def group_reader(
        self, group: str, topic: str, *, session_timeout_s: float | None = None, max_poll_interval_s: float = 30.0
    ) -> GroupReader:
        return self._kafka.group_reader(
            group, topic, session_timeout_s=session_timeout_s, max_poll_interval_s=max_poll_interval_s
        )

    def log_reader(self, name: str, *, uncommitted: bool = False) -> LogReader:
        return self._kafka.log_reader(name, uncommitted=uncommitted)

    def admin(self) -> LogAdmin:
        return self._kafka.admin()

    def fencer(self, attempts: str, steps: str) -> Fencer:
        return self._kafka.fencer(attempts, steps)

    def contact(self, partition: Partition) -> Contact:
        return self._kafka.contact(partition)


class WatchedWriters:
    def __init__(self, watched: Watched, inner: WriterFactory) -> None:
        self._watched = watched
        self._inner = inner

    def open(
        self,
        transactional_ids: Sequence[str],
        *,
        doubt_bound_s: float | None = None,
        survives_refusal: bool = False,
        transaction_timeout_s: float | None = None,
    ) -> TransactionWriter:
        writer = self._inner.open(
            transactional_ids,
            doubt_bound_s=doubt_bound_s,
            survives_refusal=survives_refusal,
            transaction_timeout_s=transaction_timeout_s,
        )
        self._watched.journal += [("init", one) for one in transactional_ids]
        trouble = self._watched.claim if len(transactional_ids) == 1 else self._watched.pair
        return WatchedWriter(trouble, writer)


class WatchedWriter:
    def __init__(self, trouble: Trouble, inner: TransactionWriter, left: int = 1) -> None:
        self._trouble = trouble
        self._inner = inner
        self._left = left  # survivors there are
        self._over = False
        self._handed_on = False

    def write(
        self,
        groups: Sequence[Sequence[Outgoing]],
        *,
        offsets: GroupOffsets | UnfencedOffset | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> list[Delivered]:
        assert not self._over, "written to after it was over"
        if not self._trouble.gate.is_set():
            self._trouble.waiting.set()
            assert self._trouble.gate.wait(30)
        trouble, self._trouble.next = self._trouble.next, ""
        if trouble in ("before", "aborted"):
            self._over = True
            nothing = "by the test, nothing was written"
            raise Doubtful(nothing) if trouble == "before" else self._denied(groups, nothing)
        delivered = self._inner.write(groups, offsets=offsets, before_commit=before_commit)
        self._trouble.writes.append([list(group) for group in groups])
        if trouble == "after":
            self._over = True
            raise Doubtful("by the test, after the commit")
        return delivered

    @staticmethod
    def _denied(groups: Sequence[Sequence[Outgoing]], why: str) -> Aborted:
        """As when the right to the first record's topic was taken away."""
        error = Aborted(f"aborted {why}")
        error.topic, error.definite = groups[0][0].topic, True
        return error

    @property
    def producers(self) -> int:
        return self._inner.producers

    def serve(self) -> None:
        """See the port."""
        self._inner.serve()

    def survivor(self) -> TransactionWriter | None:
        """The inner pair goes on: to the worker it is the producer that had no part in the doubt."""
        assert self._over
        if not self._left:
            self._trouble.on_over()
            return None
        self._handed_on = True
        return WatchedWriter(self._trouble, self._inner, self._left - 1)

    def close(self) -> None:
        if not self._handed_on:
            self._inner.close()


class WatchedPlain:
    def __init__(self, watched: Watched, inner: PlainWriter) -> None:
        self._watched = watched
        self._inner = inner

    def send(self, record: Outgoing, on_delivery: Answer | None = None) -> None:
        heartbeat = decode(record.value or b"")
        assert isinstance(heartbeat, Heartbeat)
        self._watched.journal.append(("heartbeat", heartbeat.incarnation))
        assert on_delivery is not None
        hold = self._watched.hold_answers

        def answer(delivered: Delivered | None, error: str) -> None:
            if hold:
                self._watched.held.append(lambda: on_delivery(delivered, error))
            else:
                on_delivery(delivered, error)

        self._inner.send(record, answer)

    def flush(self, timeout_s: float) -> int:
        return self._inner.flush(timeout_s)

    def close(self) -> None:
        self._inner.close()
