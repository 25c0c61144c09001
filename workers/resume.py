"""W9: the steps that earlier attempts of a run completed. Blocks; runs beside the loop, while the run is held."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Final

from dueline.scheduler.core.ports import Expired, LogAdmin, Unavailable
from dueline.schemas.codec import decode_as
from dueline.schemas.errors import DecodeError
from dueline.schemas.run import StepRange
from dueline.schemas.work import Dispatch, Step
from dueline.workers.logging import once
from dueline.workers.readback import RETRY_S, Pause
from dueline.workers.steps import Recorded, latest_of

READ_TIMEOUT_S: Final = 20.0
"""Of one try. The read-committed position waits for every transaction open before the end, also other workers'."""

log = logging.getLogger(__name__)


class StepsExpired(Exception):
    """Steps of an earlier attempt are not in the log any more. The run is never silently started over."""


def read_earlier(
    admin: LogAdmin, topic: str, dispatch: Dispatch, *, wanted: Callable[[], bool], pause: Pause
) -> Mapping[str, Recorded]:
    """What is done, by step name; the newest attempt wins. Tries until it answers or nobody wants it any more ({}).

    Raises StepsExpired.
    """
    steps: list[Step] = []
    for part in dispatch.earlier:
        for tries in itertools.count():
            if not wanted():
                break
            try:
                steps += _read(admin, topic, dispatch.run, part)
            except Unavailable as error:
                log.log(once(tries), "run %s: the steps of attempt %d cannot be read yet: %s", dispatch.run, part.attempt, error,
                        extra={"action": "resume.waits"})  # fmt: skip
                pause(RETRY_S)
                continue
            except Expired as error:
                raise StepsExpired(
                    f"the steps of attempt {part.attempt}, {topic}/{part.home} from offset {part.start}, are not in the log "
                    f"any more ({error}): what they did is unknown, so the run is not started over. Keep {topic} longer "
                    "(retention.ms) than a run may live"
                ) from error
            break
    return latest_of(steps, dispatch.run)


def _read(admin: LogAdmin, topic: str, run: str, part: StepRange) -> list[Step]:
    front = f"{run}/".encode()
    found: list[Step] = []
    for received in admin.read_range((topic, part.home), part.start, part.end, timeout_s=READ_TIMEOUT_S):
        if received.value is None or not (received.key or b"").startswith(front):
            continue
        try:
            step = decode_as(Step, received.value)
        except DecodeError as error:
            log.error("record at %s/%d offset %d is no step, skipped: %s", topic, part.home, received.offset, error,
                      extra={"action": "resume.undecodable"})  # fmt: skip
            continue
        if step.run == run and step.attempt <= part.attempt:  # a range may stand for several attempts
            found.append(step)
    return found
