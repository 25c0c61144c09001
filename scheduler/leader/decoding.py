"""Records as read become inputs of the plan: decoded, or with the reason why they cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dueline.scheduler.core.inputs import Problem, Read
from dueline.scheduler.core.ports import Received
from dueline.scheduler.core.quarantine import INTERNAL_ERROR
from dueline.schemas.codec import decode_as
from dueline.schemas.command import Command
from dueline.schemas.definition import parse_command, parse_job
from dueline.schemas.errors import DecodeError, DefinitionError
from dueline.schemas.job import Job
from dueline.schemas.work import AttemptEvent, Heartbeat

T = TypeVar("T")

log = logging.getLogger(__name__)


def read_job(received: Received) -> Read[Job]:
    """A record of `jobs`; a tombstone has no value and no problem."""
    return _read(received, parse_job, "invalid-job")


def read_command(received: Received) -> Read[Command]:
    """A record of `control`."""
    return _read(received, parse_command, "invalid-command")


def read_event(received: Received) -> Read[AttemptEvent]:
    """A record of `attempts`. Its worker's home is the partition it stands in; one that says otherwise is refused."""
    read = _read(received, lambda value: decode_as(AttemptEvent, value), "invalid-event")
    if read.value is None or read.value.home == received.partition:
        return read
    detail = f"{received.topic}[{received.partition}] offset {received.offset}: names home {read.value.home}, not its partition"
    return replace(read, value=None, problem=Problem(error="invalid-event", detail=detail))


def read_heartbeat(received: Received) -> Heartbeat | None:
    """A record of `workers`; None for a tombstone or what is no heartbeat."""
    if received.value is None:
        return None
    try:
        return decode_as(Heartbeat, received.value)
    except DecodeError:
        return None
    except Exception:
        where = f"{received.topic}[{received.partition}] offset {received.offset}"
        log.exception("a bug: %s cannot be decoded and is passed over", where, extra={"action": "quarantine_worker"})
        return None


def _read(received: Received, parse: Callable[[bytes], T], invalid: str) -> Read[T]:
    value: T | None = None
    problem: Problem | None = None
    if received.value is not None:
        where = f"{received.topic}[{received.partition}] offset {received.offset}"
        try:
            value = parse(received.value)
        except DecodeError as error:
            problem = Problem(error="undecodable", detail=f"{where}: {error}")
        except DefinitionError as error:
            problem = Problem(error=invalid, detail=f"{where}: {error}")
        except MemoryError:  # of this process now, not of what it looks at
            raise
        except Exception as error:  # a bug, or a text nested too deep: the record is refused, and everybody else's are read
            log.exception("a bug: %s cannot be decoded and was refused", where, extra={"action": "quarantine_input"})
            problem = Problem(error=INTERNAL_ERROR, detail=f"{where}: {type(error).__name__}: {error}")
    return Read(
        topic=received.topic,
        partition=received.partition,
        offset=received.offset,
        append_ms=received.append_ms,
        key=received.key or b"",
        raw=received.value or b"",
        value=value,
        problem=problem,
    )
