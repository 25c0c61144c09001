"""Topics of users that did not answer a transaction in time, and the steps that wait for them.

That a topic did not answer is nobody's fault, so a step that wrote to it is not failed: it is written again, apart from
everybody else's, once the broker says that all partitions of its topics have leaders. Until then the others go on.

A topic is silent from the transaction that it held up until a step with a record for it is committed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dueline.scheduler.core.ports import Aborted, LogAdmin, Unavailable
from dueline.scheduler.kafka.errors import NotAuthorized
from dueline.schemas.work import EventKind
from dueline.workers.events import Write

log = logging.getLogger(__name__)

ASK_S = 2.0
"""Before silent topics are asked for, and between two times. One whose leader was only slow has so long to recover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the broker says of the topics that writes wait for."""

    missing: frozenset[str]  # they do not exist
    silent: frozenset[str]  # they cannot be written yet


class Silence:
    """See the module's text. Used by the loop alone. `now_s`: monotonic seconds."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._topics: set[str] = set()
        self._next_s = 0.0

    def begin(self, topics: Iterable[str]) -> None:
        """These did not answer."""
        fresh = {*topics} - self._topics
        if fresh:
            self._topics |= fresh
            self._next_s = self._now_s() + ASK_S
            log.warning("%s did not answer in time: steps that write there wait", ", ".join(sorted(fresh)),
                        extra={"action": "worker.topic-silent"})  # fmt: skip

    def end(self, topics: Iterable[str]) -> None:
        """These did."""
        self._topics.difference_update(topics)

    def waits(self, write: Write) -> bool:
        """Whether it writes to a silent topic."""
        return bool(self._topics) and not self._topics.isdisjoint(topics_of(write))

    def due(self, pending: Iterable[Write]) -> list[Write]:
        """The writes that wait, when it is time to ask for their topics."""
        now_s = self._now_s()
        if not self._topics or now_s < self._next_s:
            return []
        self._next_s = now_s + ASK_S
        return [write for write in pending if self.waits(write)]

    def outlived(self, pending: Iterable[Write]) -> list[Write]:
        """The writes that wait though the end of their attempt stands behind them, which nothing may follow."""
        if not self._topics:
            return []
        writes = list(pending)
        ended = {write.id for write in writes if write.kind == EventKind.FINISHED}
        return [write for write in writes if write.id in ended and self.waits(write)]


def topics_of(write: Write) -> set[str]:
    """Topics of users that it writes to."""
    return {record.topic for record in write.produced}


def without(pending: deque[Write], taken: Sequence[Write]) -> deque[Write]:
    """The rest, in order."""
    if not taken:
        return pending
    gone = {id(write) for write in taken}
    return deque(write for write in pending if id(write) not in gone)


def unanswered(error: Aborted, batch: Iterable[Write]) -> set[str]:
    """Topics of users that may be why the transaction was aborted, without a fault of who writes to them."""
    late = {topic for topic, _ in error.partitions}
    named = late if error.definite or error.refused else {error.topic, *late}
    return named & {topic for write in batch for topic in topics_of(write)}


def ask(admin: LogAdmin, topics: Iterable[str]) -> Answers:
    """Blocks; what is not answered is silent, and so is what may not be asked for: a right that one topic lacks must not end the
    runs that have nothing to do with it. A step that waits for it is refused when its attempt is over; until then the log names
    the right each time, since nothing else would."""
    missing: set[str] = set()
    silent: set[str] = set()
    for topic in topics:
        try:
            if admin.partitions(topic) == 0:
                missing.add(topic)
            elif admin.leaderless(topic):
                silent.add(topic)
        except Unavailable:
            silent.add(topic)
        except NotAuthorized as error:
            silent.add(topic)
            log.warning("steps that write to %s wait: %s", topic, error, extra={"action": "worker.topic-denied"})
    return Answers(missing=frozenset(missing), silent=frozenset(silent))
