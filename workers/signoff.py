"""The end of an incarnation in order: it says that it stopped only when all that it wrote can be read.

A commit is acknowledged before its markers are written, and a broker that is killed in between may forget them (docs/kafka.md):
then no reader of the home partition gets beyond what stands open there, and nobody fences who stopped in order. The next commit
of the same producer in that partition ends it, and commits it, which is right: who stops in order has nothing in doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from dueline.scheduler.core.ports import Clock, LogAdmin, Outgoing, Partition, TransactionWriter, Unavailable, WriteError
from dueline.workers.readback import Pause

ENDS_S: Final = 2.0
"""By then what was committed just now can be read; transactions of others with the same home take milliseconds."""
LOOK_S: Final = 0.1
PAIR: Final = 2

log = logging.getLogger(__name__)


def sign_off(
    incarnation: str, places: Iterable[Partition], writer: TransactionWriter, *, admin: LogAdmin, clock: Clock, pause: Pause
) -> bool:
    """Whether everything in these partitions can be read; what stands open there for long is ended by a record without value
    from each of the pair, which take turns (L11). Blocks; False, and no exception, when it cannot be told or does not help: then
    who fences this incarnation ends what is ours."""
    places = list(places)
    try:
        if not (held := _held(places, admin, clock, pause)):
            return True
        log.warning("incarnation %s: a transaction stands open in %s: it is ended, in case it is ours and a killed broker "
                    "forgot it", incarnation, ", ".join(f"{topic}/{number}" for topic, number in held),
                    extra={"action": "worker.sign-off"})  # fmt: skip
        records = [Outgoing(topic=topic, partition=number, key=b"forgotten", value=None) for topic, number in held]
        for _ in range(PAIR):
            writer.write([records])
        return not _held(places, admin, clock, pause)
    except (Unavailable, WriteError) as error:
        log.warning("incarnation %s: cannot tell whether all that it wrote can be read: %s", incarnation, error,
                    extra={"action": "worker.sign-off-fails"})  # fmt: skip
        return False


def _held(places: Iterable[Partition], admin: LogAdmin, clock: Clock, pause: Pause) -> list[Partition]:
    """Those in which something stands open, and goes on doing so."""
    until_s = clock.monotonic_s() + ENDS_S
    held = [place for place in places if admin.open_from(place) is not None]
    while held and clock.monotonic_s() < until_s:
        pause(LOOK_S)
        held = [place for place in held if admin.open_from(place) is not None]
    return held
