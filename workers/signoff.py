"""The end of a writer of an incarnation in order (W10): whether all that it wrote can be read. Only then the incarnation says
that it stopped; else it asks to be fenced, and who fences it ends what is ours in its home partition (see `trail`). Blocks, for
about SIGN_OFF_S if the broker answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from dueline.scheduler.core.ports import Clock, TransactionWriter, Unavailable, WriteError
from dueline.scheduler.kafka.errors import NotAuthorized
from dueline.workers.readback import Pause
from dueline.workers.trail import ENDS_S, Ending, Trail

SIGN_OFF_S: Final = 2 * ENDS_S + 1.0
"""What stands open is ended after the first ENDS_S, and can be read soon after, unless it is not ours."""
LOOK_S: Final = 0.1

log = logging.getLogger(__name__)


def sign_off(
    incarnation: str, trail: Trail, writer: TransactionWriter, *, clock: Clock, pause: Pause, goes_on: Callable[[], bool]
) -> bool:
    """Whether all can be read; False, and no exception, when it cannot be told or is not so."""
    until_s = clock.monotonic_s() + SIGN_OFF_S
    why = ""
    trail.anew()
    while goes_on():
        try:
            if trail.look():
                return True
            if (ending := trail.ending()) is not None:
                end(incarnation, ending, trail, writer)
            why = f"something stands open in {trail}"
            writer.serve()
        except WriteError as error:
            why = str(error)
            break
        except (Unavailable, NotAuthorized) as error:
            why = str(error)
        if clock.monotonic_s() >= until_s:
            break
        pause(LOOK_S)
    log.warning("incarnation %s stops, and asks to be fenced: it cannot tell whether all that it wrote can be read: %s",
                incarnation, why or "it was closed", extra={"action": "worker.sign-off-fails"})  # fmt: skip
    return False


def end(incarnation: str, ending: Ending, trail: Trail, writer: TransactionWriter) -> None:
    """End what stands open, if it is ours. What ends it is then looked for as well. Raises WriteError."""
    log.warning("incarnation %s: a record without value goes to %s, to end what a killed broker may have forgotten there",
                incarnation, ending, extra={"action": "worker.trail-ends"})  # fmt: skip
    for _ in range(writer.producers):
        trail.wrote(writer.write([ending.records], offsets=ending.offsets))
    trail.ended()
