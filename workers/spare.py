"""A worker beyond its queue's partition count gets no work: it says so, and what to do."""

from __future__ import annotations

import logging
from typing import Final

PATIENCE_S: Final = 5.0
"""Without a partition. A rebalance takes less; a worker that is the first of its queue joins in less."""

log = logging.getLogger(__name__)


class Spare:
    """Watches how long the worker has been without a partition. Says it once for each such time."""

    def __init__(self, topic: str, partitions: int, queue: str) -> None:
        self._topic = topic
        self._partitions = partitions
        self._queue = queue
        self._since_s: float | None = None
        self._said = False

    def look(self, now_s: float, *, joined: bool, owned: int) -> bool:
        """Note what is; whether it was said now. `joined`: the group has answered."""
        if owned or not joined:
            if self._said and owned:
                log.info("this worker has a partition of %s now", self._topic, extra={"action": "worker.spare-over"})
            self._since_s, self._said = None, False
            return False
        if self._since_s is None:
            self._since_s = now_s
        if self._said or now_s < self._since_s + PATIENCE_S:
            return False
        self._said = True
        log.warning(
            "this worker owns no partition of %s, so it gets no work: the queue has more workers than the topic's %d "
            "partitions. It stands by for one that stops. To have it work, give the queue more partitions (`dueline init "
            "--queue %s --partitions N`), move jobs to another queue, or give the other workers more --slots",
            self._topic, self._partitions, self._queue, extra={"action": "worker.spare"},
        )  # fmt: skip
        return True
