"""Which queues have a dispatch topic: asked once for each queue that a job names, and again when a term begins."""

from __future__ import annotations

from dueline.scheduler.core.inputs import Read
from dueline.scheduler.core.ports import Clock, LogAdmin
from dueline.scheduler.core.state import State
from dueline.schemas.job import Job
from dueline.schemas.topics import Namespace

RETRY_S = 5.0
"""How soon a queue that had no topic is asked for again."""


UNUSABLE_S = 30.0
"""How long a topic that could not be written is left alone: everybody else's jobs go on meanwhile."""


class Unusable:
    """Topics that a transaction could not write: missing, or a right is missing. Outlives the term that it ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def mark(self, topic: str) -> None:
        """It could not be written just now."""
        self._since[topic] = self._clock.monotonic_s()

    def __contains__(self, topic: str) -> bool:
        since = self._since.get(topic)
        if since is not None and self._clock.monotonic_s() - since > UNUSABLE_S:
            del self._since[topic]
            return False
        return since is not None


class Queues:
    """A cache of queue -> partitions, filled on demand."""

    def __init__(self, admin: LogAdmin, namespace: Namespace, clock: Clock, unusable: Unusable) -> None:
        self._admin, self._namespace, self._clock = admin, namespace, clock
        self._unusable = unusable
        self._partitions: dict[str, int] = {}
        self._missing: dict[str, float] = {}

    def known(self, jobs: list[Read[Job]]) -> dict[str, int]:
        """Queues that have a topic, those of the jobs just read among them. Raises Unavailable."""
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

    def _ask(self, queue: str) -> None:
        topic = self._namespace.dispatch(queue)
        partitions = self._admin.partitions(topic)
        unusable = topic in self._unusable
        self._missing.pop(queue, None)
        if partitions:
            self._partitions[queue] = 0 if unusable else partitions  # 0: it exists, and nothing is offered on it now
        if unusable or not partitions:
            self._missing[queue] = self._clock.monotonic_s()
