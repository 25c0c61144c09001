"""What leader and workers say to each other about an attempt: dispatch, signal, attempt event, step, heartbeat."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Final

from dueline.schemas.base import NONE, record
from dueline.schemas.run import RunJob, StepRange


@record
class Dispatch:
    """The leader's offer of one attempt, in `dispatch.<queue>`. Key: run id."""

    job: RunJob
    run: str
    due_ms: int
    trigger: str
    attempt: int
    term: int
    seq: int
    ahead: bool  # hold it and start at due_ms
    earlier: list[StepRange] = field(default_factory=list)
    leader_ms: int = NONE


class SignalKind(StrEnum):
    """What the leader tells a worker about a claim."""

    GRANT = "grant"  # the attempt is yours
    DECLINE = "decline"  # it is not
    RECALL = "recall"  # give back what has not begun
    CANCEL = "cancel"  # stop what runs
    FENCED = "fenced"  # this incarnation has been ended


@record
class Signal:
    """The leader's word to the holder of a claim, in `signals`, on the worker's home partition. Key: run id."""

    kind: str  # SignalKind
    incarnation: str
    run: str = ""
    attempt: int = 0
    claim: int = NONE
    reason: str = ""
    deadline_ms: int = NONE  # grant: end of the attempt, worker's clock allowing
    term: int = NONE
    leader_ms: int = NONE


class EventKind(StrEnum):
    """What a worker records about an attempt."""

    CLAIMED = "claimed"
    DECLINED = "declined"
    FINISHED = "finished"


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    SNOOZE = "snooze"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@record
class AttemptEvent:
    """A claim, its return or its end, in `attempts`, on the worker's home partition, transactional. Key: run id."""

    kind: str  # EventKind
    run: str
    attempt: int
    claim: int  # unique in the incarnation
    incarnation: str
    worker: str
    queue: str
    home: int
    dispatch_term: int = NONE
    dispatch_seq: int = NONE
    steps_from: int = NONE  # claimed: end offset of the home partition of `steps`
    outcome: str = ""  # finished: Outcome
    reason: str = ""
    error: str = ""  # the traceback
    retryable: bool = True
    result: str = ""  # JSON text
    until_ms: int = NONE  # snooze
    started_ms: int = NONE
    finished_ms: int = NONE
    steps_done: int = 0
    steps_skipped: int = 0  # done by an earlier attempt


@record
class Step:
    """A step's completion, in `steps`, on the worker's home partition, transactional. Key: run id / step."""

    run: str
    attempt: int
    claim: int
    incarnation: str
    name: str
    encoding: str  # json | bytes
    result: bytes
    started_ms: int
    finished_ms: int

    @property
    def key(self) -> str:
        """The record's key in `steps`."""
        return f"{self.run}/{self.name}"


class HeldState(StrEnum):
    """What a worker does with a claim it names in its heartbeat."""

    REQUESTED = "requested"
    HELD = "held"  # granted, not begun
    RUNNING = "running"


@record
class HeldClaim:
    """A claim that a worker holds."""

    run: str
    attempt: int
    claim: int
    state: str  # HeldState


class WorkerState(StrEnum):
    """The life of an incarnation."""

    RUNNING = "running"  # takes new work
    DRAINING = "draining"  # finishes what it holds
    STOPPED = "stopped"  # holds nothing; its last heartbeat
    LOST = "lost"  # its last one, too: it was fenced, or does not know what it wrote; the leader fences it, whatever it holds


ENDED: Final = frozenset({WorkerState.STOPPED, WorkerState.LOST})
"""No heartbeat comes after these."""


@record
class Heartbeat:
    """A worker's sign of life, in `workers`, by a plain producer. Key: incarnation."""

    incarnation: str
    worker: str
    queue: str
    home: int
    state: str  # WorkerState
    seq: int
    slots: int
    prefetch: int = 0
    handlers: list[str] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    claims: list[HeldClaim] = field(default_factory=list)
    transactional_ids: list[str] = field(default_factory=list)
    worker_ms: int = NONE
    started_ms: int = NONE
    version: str = ""
