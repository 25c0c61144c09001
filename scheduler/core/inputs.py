"""What one round of the leader decides on: what was read, and what the shell saw of workers and fences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.core.ports import FenceResult
from dueline.schemas.base import NONE
from dueline.schemas.command import Command
from dueline.schemas.job import Job
from dueline.schemas.ledger import Position
from dueline.schemas.work import AttemptEvent, Heartbeat

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why an input cannot be used: a stable word, and what to do."""

    error: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[T_co]):
    """One input with its coordinates; `value` is None when it is a tombstone (no problem) or unusable (a problem)."""

    topic: str
    partition: int
    offset: int
    append_ms: int
    key: bytes
    raw: bytes
    value: T_co | None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One round. The lists are in the order of their logs; `positions` are the next offsets once all of it is decided."""

    jobs: list[Read[Job]] = field(default_factory=list)
    commands: list[Read[Command]] = field(default_factory=list)
    events: list[Read[AttemptEvent]] = field(default_factory=list)
    undecided: list[Read[AttemptEvent]] = field(default_factory=list)  # those of `events` that met a bug: value and problem
    heartbeats: list[Heartbeat] = field(default_factory=list)  # read this round
    absent_jobs: list[str] = field(default_factory=list)  # not found when `jobs` was read whole (L12)
    positions: list[Position] = field(default_factory=list)
    read_jobs_ms: int = NONE  # leader time at which `jobs` ended where it has been read to now
    steps_ends: Mapping[int, int] = field(default_factory=dict)  # home -> end of `steps`, taken after the events were read
    fenced: list[FenceResult] = field(default_factory=list)  # whose home of `attempts` has been read past attempts_end
    dead: list[Heartbeat] = field(default_factory=list)  # silent for worker_timeout: last heartbeat of each
    fleet: Fleet = field(default_factory=Fleet)
    jobs_topic: str = ""
    led_ms: int = 0  # leader time at which this term began
    first: bool = False  # the first round of a term: send again what is derived
    firing: bool = True  # False: the clocks disagree, nothing new fires
    anchor: bool = False  # write positions even if nothing else is decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The leader's settings that decisions depend on. Milliseconds."""

    tzdata: str = ""
    max_records: int = 5_000  # of one transaction, about; a slice
    max_bytes: int = 32 * 1024 * 1024  # likewise
    offer_timeout_ms: int = 5_000  # an offer nobody answers is made again
    resend_ms: int = 1_000
    allowed_skew_ms: int = 1_000
    max_taken: int = 10_000
    generation: int = -1
