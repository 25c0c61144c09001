"""The ledger's own records: barriers, positions, fences. They stand in `runs` beside the run records, under keys with `!`."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Final

from dueline.schemas.base import NONE, record

BARRIER_KEY: Final = "!barrier"
POSITIONS_KEY: Final = "!positions"
FORGOTTEN_KEY: Final = b"forgotten"
"""Of a record without value in `attempts` or `steps`, which says nothing: it ends what a broker forgot to end there, as a barrier
does in `rejected`. It is no run's or step's key: each of those has an `@`."""


@record
class Barrier:
    """A take-over's marker, in `runs` and `job-versions`; its offset in `runs` is the term. In `rejected` it says nothing: it
    ends what a broker forgot to end."""

    id: str  # unique
    process: str  # host:pid of the scheduler, for people
    generation: int

    @property
    def key(self) -> str:
        """The record's key."""
        return BARRIER_KEY


@record
class Position:
    """How far one input partition was read: the next offset. `topic_id` tells a topic from its successor of the same name."""

    topic: str
    topic_id: str
    partition: int
    offset: int


@record
class Positions:
    """The leader's positions in all its inputs: ledger state, not consumer group offsets, which expire."""

    positions: list[Position] = field(default_factory=list)
    jobs_read_ms: int = NONE  # leader time of the last transaction that had read `jobs`
    sequence: int = 0  # of dispatches, so that (term, sequence) is unique
    term: int = NONE
    generation: int = NONE
    leader_ms: int = NONE

    @property
    def key(self) -> str:
        """The record's key in `runs`."""
        return POSITIONS_KEY


class FencePhase(StrEnum):
    """A fence is first intended, then done: between the two the incarnation's events may still arrive."""

    INTENT = "intent"
    DONE = "done"


@record
class Fence:
    """The end of an incarnation that fell silent. Key: `!fence/incarnation`."""

    incarnation: str
    worker: str
    queue: str
    home: int
    phase: str  # FencePhase
    reason: str
    transactional_ids: list[str] = field(default_factory=list)
    steps_end: int = NONE  # read-uncommitted ends of its home partition, taken after the fence
    attempts_end: int = NONE
    term: int = NONE
    generation: int = NONE
    leader_ms: int = NONE

    @property
    def key(self) -> str:
        """The record's key in `runs`."""
        return f"!fence/{self.incarnation}"
