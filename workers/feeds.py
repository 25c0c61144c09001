"""The two readers of a worker, each with a thread of its own: offers by its group, signals of its home partition."""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from dueline.scheduler.core.ports import EARLIEST, Assignment, Expired, GroupReader, LogReader, Partition, Unavailable
from dueline.workers.events import Event, LeftGroup, OffersRead, SignalsRead, Sought
from dueline.workers.offers import Seek
from dueline.workers.threads import Shell

LIMIT: Final = 500
"""Records taken at once."""

log = logging.getLogger(__name__)


class OfferFeed:
    """Reads offers, and carries out the seeks that discarded ones need. What it reads is tagged with the last seek."""

    def __init__(self, reader: GroupReader, *, post: Callable[[Event], None]) -> None:
        self._reader = reader
        self._post = post
        self._seeks: SimpleQueue[Seek] = SimpleQueue()
        self._epoch = 0
        self._assignment: Assignment | None = None
        self._stopped = False

    def start(self, shell: Shell) -> None:
        """Begin to read."""
        shell.feed("dueline-offers", self._step, self._end)

    def seek(self, seek: Seek) -> None:
        """Carry it out before the next read. Any thread."""
        self._seeks.put(seek)

    def stop(self) -> None:
        """Leave the group soon; LeftGroup tells. Any thread."""
        self._stopped = True

    def _step(self, timeout_s: float) -> bool:
        if self._stopped:
            return False
        self._carry_out_seeks()
        assignment, records = self._reader.poll(timeout_s, LIMIT)
        if records or assignment is not self._assignment:
            self._assignment = assignment
            self._post(OffersRead(assignment=assignment, records=records, epoch=self._epoch))
        return True

    def _carry_out_seeks(self) -> None:
        while True:
            try:
                seek = self._seeks.get_nowait()
            except Empty:
                return
            now = self._reader.assignment()
            done = now is not None and now.serial == seek.serial
            try:
                for partition, offset in seek.offsets.items() if done else ():
                    self._reader.seek(partition, offset)
            except Unavailable as error:  # a partition just assigned may not take a seek yet: it is asked for again
                log.info("offers cannot be read again yet: %s", error, extra={"action": "worker.seek-waits"})
                done = False
            if done:
                self._epoch = seek.epoch
            self._post(Sought(epoch=seek.epoch, done=done))

    def _end(self) -> None:
        self._reader.close()
        self._post(LeftGroup())


class SignalFeed:
    """Reads the home partition of `signals` from an offset taken before the first heartbeat: no grant comes before that."""

    def __init__(self, reader: LogReader, partition: Partition, start: int, *, post: Callable[[Event], None]) -> None:
        self._reader = reader
        self._partition = partition
        self._post = post
        self._stopped = False
        reader.assign({partition: start})

    def start(self, shell: Shell) -> None:
        """Begin to read."""
        shell.feed("dueline-signals", self._step, self._reader.close)

    def stop(self) -> None:
        """End soon. Any thread."""
        self._stopped = True

    def _step(self, timeout_s: float) -> bool:
        if self._stopped:
            return False
        try:
            records = self._reader.poll(timeout_s, LIMIT)
        except Expired as error:
            # Signals are sent again until they are answered: the oldest that stands is soon enough.
            log.warning("signals were deleted before they were read, reading on: %s", error,
                        extra={"action": "worker.signals-expired"})  # fmt: skip
            self._reader.assign({self._partition: EARLIEST})
            return True
        if records:
            self._post(SignalsRead(records=records))
        return True
