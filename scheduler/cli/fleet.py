"""The workers as their heartbeats show them, for the commands that tell of them, and why a run waits for one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dueline.scheduler.audit.evidence import Place, place_of
from dueline.scheduler.audit.reading import read_topic
from dueline.scheduler.core.ports import LogAdmin
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.codec import decode
from dueline.schemas.errors import DecodeError
from dueline.schemas.run import Run, RunState
from dueline.schemas.topics import Namespace
from dueline.schemas.work import ENDED, Heartbeat, WorkerState

STALE_AFTER_S: Final = 10.0
"""A worker silent for longer is shown as silent."""

Beats = list[tuple[Place, Heartbeat]]


def read_heartbeats(admin: LogAdmin, namespace: Namespace) -> Beats:
    """The last heartbeat of each incarnation. Raises TopicMissing, Unavailable."""
    latest: dict[str, tuple[Place, Heartbeat]] = {}
    for received in read_topic(admin, namespace.workers):
        record = decoded(received.value)
        if isinstance(record, Heartbeat):
            latest[record.incarnation] = (place_of(received), record)
    return list(latest.values())


def state_of(place: Place, beat: Heartbeat, now_ms: int, stale_after_s: float = STALE_AFTER_S) -> str:
    """What the worker says of itself, or that it says nothing any more."""
    silent = beat.state not in ENDED and now_ms - place.append_ms > stale_after_s * 1000
    return "silent" if silent else beat.state


def why_waiting(run: Run, beats: Iterable[tuple[Place, Heartbeat]], now_ms: int) -> str:
    """Why a run that waits for a worker does, in one line; "" when it waits for something else."""
    if run.state != RunState.WAITING or run.reason != Waiting.NO_WORKER:
        return ""
    queue, handler = run.job.queue, run.job.handler
    running = [
        beat for place, beat in beats if beat.queue == queue and state_of(place, beat, now_ms) == WorkerState.RUNNING
    ]
    if not running:
        return f"waiting: no worker of queue {queue} is running; start one with `dueline worker --queue {queue}`"
    if not any(handler in beat.handlers for beat in running):
        known = ", ".join(sorted({name for beat in running for name in beat.handlers})) or "none"
        return f"waiting: no worker with handler {handler}; the workers of queue {queue} have: {known}"
    return f"waiting: no worker with handler {handler} has a free slot; see `dueline workers`"


def decoded(value: bytes | None) -> object:
    """The record, or None for a tombstone and what is none."""
    if value is None:
        return None
    try:
        return decode(value)
    except DecodeError:
        return None
