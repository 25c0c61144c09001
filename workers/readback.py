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

Pause = Callable[[float], None]
"""Waits so many seconds."""

log = logging.getLogger(__name__)


def read_back(
    admin: LogAdmin, starts: Iterable[tuple[Partition, int]], *, goes_on: Callable[[], bool], pause: Pause
) -> list[Received] | None:
    """Committed records of these partitions from these offsets up to the high watermark of now, past every transaction
    that is open there. Tries until it answers; None when `goes_on` said no. Raises Expired.
    """
    records: list[Received] = []
    for partition, start in starts:
        for tries in itertools.count():
            if not goes_on():
                return None
            try:
                end = admin.end_offset(partition)
                found = list(admin.read_range(partition, start, end, timeout_s=READ_TIMEOUT_S))
            except Unavailable as error:
                log.log(once(tries), "cannot read back %s/%d yet: %s", *partition, error,
                        extra={"action": "worker.read-back-waits"})  # fmt: skip
                pause(RETRY_S)
                continue
            records += found
            break
    return records
