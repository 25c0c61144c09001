"""Which queues have a dispatch topic: asked once for each queue that a job names, and again when a term begins."""

from __future__ import annotations

from collections.abc import Iterable

from dueline.scheduler.core.inputs import Read
from dueline.scheduler.core.ports import Clock, LogAdmin
from dueline.scheduler.core.state import State
from dueline.scheduler.leader.unusable import Unusable
from dueline.schemas.job import Job
from dueline.schemas.topics import Namespace
from dueline.schemas.work import Heartbeat

MANY = 1 << 30
"""More partitions than a topic has: of a queue that no job names."""

RETRY_S = 5.0
"""How soon a queue that had no topic is asked for again."""


class Queues:
    """A cache of queue -> partitions, filled on demand."""

    def __init__(self, admin: LogAdmin, namespace: Namespace, clock: Clock, unusable: Unusable) -> None:
        self._admin, self._namespace, self._clock = admin, namespace, clock
        self._unusable = unusable
        self._partitions: dict[str, int] = {}
        self._missing: dict[str, float] = {}
        self._asked_again: dict[str, float] = {}

    def known(self, jobs: list[Read[Job]], heartbeats: Iterable[Heartbeat] = ()) -> dict[str, int]:
        """Queues that have a topic, those of the jobs just read among them. Raises Unavailable.

        A worker that owns a partition beyond those known shows that its queue was given more.
        """
        self._look()
        for beat in heartbeats:
            if max(beat.partitions, default=-1) >= self._partitions.get(beat.queue, MANY) > 0:
                self._ask_again(beat.queue)
        for queue in {read.value.queue for read in jobs if read.value is not None} - self._partitions.keys():
            self._ask(queue)
            self._missing.pop(queue, None)  # no job has it yet; the next definition that names it asks again
        for queue, since in list(self._missing.items()):
            if self._clock.monotonic_s() - since > RETRY_S:
                self._ask(queue)
        return self._partitions

    def begin(self, state: State) -> None:
        """Ask for every queue that a job or an active run names. Raises Unavailable."""
        self._partitions, self._missing = {}, {}
        names = {span.job.queue for _, job in state.jobs.items() for span in job.spans}
        names |= {run.job.queue for _, run in state.runs.items()}
        for queue in sorted(names):
            self._ask(queue)
        self._look()

    def _look(self) -> None:
        """What of the topics that are derived from the ledger has no leader: asked while something cannot be written."""
        names = self._namespace
        self._unusable.ask(self._admin, [names.signals, names.rejected, *map(names.dispatch, self._partitions)])

    def _ask_again(self, queue: str) -> None:
        """Ask for a queue's partitions anew, now and then: what a heartbeat says need not be true."""
        now_s = self._clock.monotonic_s()
        if now_s - self._asked_again.get(queue, -RETRY_S) >= RETRY_S:
            self._asked_again[queue] = now_s
            self._ask(queue)

    def _ask(self, queue: str) -> None:
        topic = self._namespace.dispatch(queue)
        partitions = self._admin.partitions(topic)
        unusable = topic in self._unusable
        self._missing.pop(queue, None)
        if partitions:
            self._partitions[queue] = 0 if unusable else partitions  # 0: it exists, and nothing is offered on it now
        if unusable or not partitions:
            self._missing[queue] = self._clock.monotonic_s()
