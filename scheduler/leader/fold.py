"""The fold: one reader of `runs` and `job-versions` that starts with the process and never stops, leading or not.

It is the truth about what was written. A take-over ends when the fold has read the own barrier in both topics; while
leading, everything committed must come back through it, all of it and in order, or the term is over (L7).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from dueline.scheduler.core.ports import EARLIEST, Clock, Delivered, Expired, LogReader, Received
from dueline.scheduler.core.state import State
from dueline.schemas.codec import decode
from dueline.schemas.errors import DecodeError
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier, Fence, Positions
from dueline.schemas.run import Run, Summary
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

POLL_LIMIT = 10_000


class LedgerDamaged(Exception):
    """A record of the ledger cannot be read. Nothing may be decided without it; a person must look."""


class EchoLost(Exception):
    """What this leader committed did not come back as it was, or another leader wrote: the term is over."""


class Fold:
    """Folds the ledger. `state` is always a prefix of it."""

    def __init__(self, reader: LogReader, namespace: Namespace, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._runs, self._versions = (namespace.runs, 0), (namespace.job_versions, 0)
        self._expected: dict[str, deque[tuple[int, float]]] = {namespace.runs: deque(), namespace.job_versions: deque()}
        self._leading = False
        self.restart()

    def restart(self) -> None:
        """Begin anew: what was read cannot be trusted when something that was committed did not come back."""
        self.state = State()
        self._barriers: dict[str, Barrier] = {}  # topic -> last barrier read
        self._barrier_offset = -1
        self._barrier_term = -1
        self._reader.assign({self._runs: EARLIEST, self._versions: EARLIEST})

    def poll(self, timeout_s: float, limit: int = POLL_LIMIT) -> int:
        """Apply what is there; how many records. Raises LedgerDamaged, and while leading EchoLost."""
        try:
            records = self._reader.poll(timeout_s, limit)
        except Expired as error:
            raise LedgerDamaged(
                f"the ledger starts later than what was read ({error}): its topics must be compacted, never deleted; "
                "run `dueline init` to see their settings"
            ) from error
        for record in records:
            if self._leading:
                self._check_echo(record)
            self._apply(record)
        return len(records)

    def passed(self, ends: dict[str, int]) -> bool:
        """Whether everything below these ends (topic -> offset) has been applied."""
        return all(self._reader.position((topic, 0)) >= end for topic, end in ends.items())

    def close(self) -> None:
        """Release the client."""
        self._reader.close()

    # -- take-over -----------------------------------------------------------------------------------------------------

    def saw_barrier(self, barrier_id: str) -> int | None:
        """The term that this barrier opened, once both topics have been read up to it."""
        found = [self._barriers.get(topic) for topic, _ in (self._runs, self._versions)]
        if all(barrier is not None and barrier.id == barrier_id for barrier in found):
            return self._barrier_term
        return None

    def overtaken(self, barrier_id: str, offset: int) -> bool:
        """Whether a later barrier than this one was read: another leader took over (also when compaction took ours)."""
        last = self._barriers.get(self._runs[0])
        return last is not None and last.id != barrier_id and self._barrier_offset > offset

    # -- echo ------------------------------------------------------------------------------------------------------------

    def lead(self) -> None:
        """From now on only what `expect` announces may arrive."""
        self._leading = True
        for expected in self._expected.values():
            expected.clear()

    def follow(self) -> None:
        """Another leader's records may arrive again."""
        self._leading = False

    def expect(self, delivered: Sequence[Delivered]) -> None:
        """These were committed and must come back, in this order."""
        now = self._clock.monotonic_s()
        for place in delivered:
            expected = self._expected.get(place.topic)
            if expected is not None:
                expected.append((place.offset, now))

    def check_echo_age(self, timeout_s: float) -> None:
        """Raise EchoLost when something committed did not come back for this long."""
        for topic, expected in self._expected.items():
            if expected and self._clock.monotonic_s() - expected[0][1] > timeout_s:
                raise EchoLost(f"{topic} offset {expected[0][0]} was committed but not read back within {timeout_s} s")

    def _check_echo(self, record: Received) -> None:
        expected = self._expected[record.topic]
        if not expected or expected[0][0] != record.offset:
            wanted = expected[0][0] if expected else "nothing"
            raise EchoLost(f"{record.topic}: read offset {record.offset} where {wanted} was expected: another leader wrote")
        expected.popleft()

    # -- apply -----------------------------------------------------------------------------------------------------------

    def _apply(self, received: Received) -> None:
        if received.value is None:
            return
        try:
            record = decode(received.value)
        except DecodeError as error:
            where = f"{received.topic}[{received.partition}] offset {received.offset}"
            raise LedgerDamaged(f"{where}: {error}. Nothing is decided without it; upgrade this scheduler or inspect") from error
        if isinstance(record, Barrier):
            self._barriers[received.topic] = record
            if received.topic == self._runs[0]:
                self._barrier_offset = received.offset
                self._barrier_term = self.state.apply_barrier(received.offset)
        elif isinstance(record, JobVersion | Run | Summary | Positions | Fence):
            if not self.state.apply(record):
                where = f"{received.topic} offset {received.offset}"
                log.warning("stale record dropped: %s has a lower term", where, extra={"action": "stale_record"})
        else:
            log.warning("%s holds a %s: ignored", received.topic, type(record).__name__, extra={"action": "foreign_record"})
