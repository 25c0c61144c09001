"""The workers as seen by one leader: last heartbeats, when they were received, and who has been silent for too long.

Silence is measured in monotonic time since receipt, and counts only while it was heard (W7): the broker of `workers` answered
all the time, and all that stood there was read. A new leader, or one that was cut off, gives every worker the whole time-out
again; one whose fetches are lost while its probes are answered takes nobody for silent before it has read on.
"""

from __future__ import annotations

from dataclasses import dataclass

from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.core.ports import Clock, Contact, Contacted
from dueline.scheduler.core.state import State
from dueline.schemas.topics import Namespace
from dueline.schemas.work import ENDED, Heartbeat, WorkerState


@dataclass(slots=True)
class _Seen:
    heartbeat: Heartbeat
    received_s: float
    live: bool  # heard of in this term, not only found in the compacted topic


class Roster:
    """One term's view of the workers."""

    def __init__(self, clock: Clock, contact: Contact, namespace: Namespace, *, timeout_s: float, fresh_s: float) -> None:
        self._clock, self._contact, self._namespace = clock, contact, namespace
        self._timeout_s, self._fresh_s = timeout_s, fresh_s
        self._seen: dict[str, _Seen] = {}
        self._counted_from_s = clock.monotonic_s()
        self._heard = Contacted(since_s=self._counted_from_s, until_s=float("-inf"), end=0)
        self._unread = contact.contacted()
        self._caught_up = False

    def catch_up(self) -> None:
        """`workers` has been read to the end it had when the term began: from now on silence counts, and what comes is live."""
        if not self._caught_up:
            self._caught_up = True
            self._counted_from_s = self._clock.monotonic_s()

    def read_to(self, position: int) -> None:
        """`workers` was read to here: what stood there at the probe that waited for this is known now."""
        if position >= self._unread.end:
            self._heard, self._unread = self._unread, self._contact.contacted()

    def hear(self, heartbeat: Heartbeat, age_ms: int) -> None:
        """A heartbeat was read. `age_ms`: leader time less its append time: a hint whether it is one of the past."""
        live = self._caught_up or age_ms < self._fresh_s * 1000
        self._seen[heartbeat.incarnation] = _Seen(heartbeat, self._clock.monotonic_s(), live)

    def forget(self, incarnation: str) -> None:
        """Its record was deleted."""
        self._seen.pop(incarnation, None)

    def fleet(self, queues: dict[str, int]) -> Fleet:
        """The workers that may be offered work."""
        oldest = self._clock.monotonic_s() - self._fresh_s
        return Fleet(
            workers={
                incarnation: seen.heartbeat
                for incarnation, seen in self._seen.items()
                if seen.live and seen.received_s >= oldest and seen.heartbeat.state == WorkerState.RUNNING
            },
            queues=queues,
        )

    def dead(self, state: State) -> list[Heartbeat]:
        """Workers to fence: silent for the time-out, lost, or stopped while the ledger still has runs with them."""
        found: list[Heartbeat] = []
        for incarnation, seen in list(self._seen.items()):
            if state.fences.get(incarnation) is not None:
                del self._seen[incarnation]  # ended: `workers` names every incarnation there ever was
                continue
            if seen.heartbeat.state in ENDED:
                if seen.heartbeat.state == WorkerState.LOST or state.held.get(incarnation):
                    found.append(seen.heartbeat)
            elif self._silent(seen.received_s):
                found.append(seen.heartbeat)
        found += self._unheard(state)
        return found

    def _silent(self, since_s: float) -> bool:
        counted_from_s = max(since_s, self._counted_from_s, self._heard.since_s)
        return self._caught_up and self._heard.until_s - counted_from_s > self._timeout_s

    def _unheard(self, state: State) -> list[Heartbeat]:
        """Holders of runs of which no heartbeat stands in the topic any more."""
        if not self._silent(self._counted_from_s):
            return []
        holders = {str(entry[0]): str(entry[1]) for entry in state.holding.between()}
        found: list[Heartbeat] = []
        for incarnation, key in holders.items():
            run = state.runs.get(key)
            if incarnation in self._seen or state.fences.get(incarnation) is not None or run is None:
                continue
            found.append(
                Heartbeat(
                    incarnation=incarnation,
                    worker=run.worker,
                    queue=run.job.queue,
                    home=run.home,
                    state=WorkerState.RUNNING,
                    seq=0,
                    slots=0,
                    transactional_ids=list(self._namespace.worker_ids(incarnation)),
                )
            )
        return found
