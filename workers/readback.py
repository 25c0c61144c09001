"""W6: after a doubtful commit, learn from the log itself what was committed. Blocks; runs beside the loop."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable
from typing import Final

from dueline.scheduler.core.ports import LogAdmin, Partition, Received, Unavailable
from dueline.workers.logging import once

READ_TIMEOUT_S: Final = 10.0
"""Of one try. It waits for open transactions, ours among them, which the broker ends after their time-out."""
RETRY_S: Final = 1.0
"""Between two tries: with the broker away an answer comes at once, and it is no."""

STUCK: Final = 4
"""Tries in a row in which the broker answered and no record could be read: longer than it takes to end a transaction of ours."""

Pause = Callable[[float], None]
"""Waits so many seconds."""

log = logging.getLogger(__name__)


class Stuck(Exception):
    """A transaction stands open that is not ended: a stranger's, or one that a killed broker forgot (docs/kafka.md). Who fences
    this incarnation ends what is ours."""


def read_back(
    admin: LogAdmin,
    starts: Iterable[tuple[Partition, int]],
    *,
    goes_on: Callable[[], bool],
    pause: Pause,
    serve: Callable[[], None],
) -> list[Received] | None:
    """Committed records of these partitions from these offsets up to the high watermark of now, past every transaction
    that is open there. Tries until it answers; None when `goes_on` said no. `serve`: of the writer, called between two
    tries, since what its clients say meanwhile would pile up. Raises Expired, Stuck.
    """
    records: list[Received] = []
    for partition, start in starts:
        stuck = 0
        for tries in itertools.count():
            if not goes_on():
                return None
            answered = False
            try:
                end = admin.end_offset(partition)
                answered = True
                found = list(admin.read_range(partition, start, end, timeout_s=READ_TIMEOUT_S))
            except Unavailable as error:
                log.log(once(tries), "cannot read back %s/%d yet: %s", *partition, error,
                        extra={"action": "worker.read-back-waits"})  # fmt: skip
                stuck = stuck + 1 if answered else 0
                if stuck == STUCK:
                    raise Stuck(str(error)) from None
                serve()
                pause(RETRY_S)
                continue
            records += found
            break
    return records
