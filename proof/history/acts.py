"""What the world did and what was done to it, each noted by whoever did it, with milliseconds since the epoch of one clock: the
harness's own (a real run) or virtual time (a simulated one). No fault moves that clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

ABORT_S: Final = 5.0
"""How long a worker waits for the answer to an abort."""
STARVED: Final = "machine-starved"
"""Kind of a note that is no fault: the machine gave no process a turn for that long. Nobody brought it about, but it explains
what came late."""


class Outcome(StrEnum):
    """What a publisher knows of its record."""

    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A job definition, a deletion (`value` None) or a command that the workload sent. `offset` is -1 unless acknowledged."""

    topic: str
    key: bytes
    value: bytes | None
    sent_ms: int
    answered_ms: int
    outcome: Outcome
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a handler did outside Kafka, noted by its own code in one atomic append. `step` is "" for the body of a handler
    outside its steps. `key`: the idempotency key the step was given. `run` and `attempt` as the context told them.
    `began_ms`: when the step or body was called, some time before its effect; -1 where that was not noted."""

    job: str
    due_ms: int
    step: str
    key: str
    run: str
    attempt: int
    at_ms: int
    process: str
    began_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One injected fault. `target`: a process, broker, link ("w1>b2") or host. `ended_ms` equals `began_ms` for an instant.
    `shift_ms`: for clocks, how far it was moved at most. `detail`: anything a reader of the report wants to know. `struck` False:
    it was tried and did not take effect (a failpoint that was not reached, an EndTxn that the broker refused): it is counted
    apart and excuses nothing. What may have taken effect struck."""

    kind: str
    target: str
    began_ms: int
    ended_ms: int
    shift_ms: int = 0
    detail: str = ""
    struck: bool = True

    @property
    def injected(self) -> bool:
        """Whether it was brought about; the machine's own standstills are noted beside the faults, and are none."""
        return self.kind != STARVED


class Role(StrEnum):
    """What a process is."""

    SCHEDULER = "scheduler"
    WORKER = "worker"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One life of a process. `ended_ms` -1: it still ran at the end. `how`: "exit 0", "SIGKILL", ... `session_ms`: a scheduler's
    session time-out, where it is not the one of the bounds. `call_ms`: how long a worker's transaction may go without an answer
    until it gives up (`call_ms`); 0 not known."""

    process: str
    role: Role
    pid: int
    began_ms: int
    ended_ms: int
    how: str
    session_ms: int = 0
    call_ms: int = 0


def call_ms(transaction_s: float) -> int:
    """Of a worker with this transaction time-out: it waits for the commit, and then for the abort."""
    return round((transaction_s + ABORT_S) * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What may be expected of this run, in milliseconds. `lateness_ms`: how long after its due time (or after the end of the
    faults that stood in the way) a run has its first record at the latest. `skew_ms`: how far any two clocks that stamp this
    history were ever apart, but for what a fault says of a broker's clock (`shift_ms`). `worker_timeout_ms`, `session_ms`:
    settings of the processes, of all that say nothing else of themselves."""

    lateness_ms: int
    skew_ms: int
    worker_timeout_ms: int
    session_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What a handler of the workload does, so that a checker knows what a run had to leave behind.

    `steps`: the names of the steps of a run that succeeds, in order. `effects`: whether each step has an effect outside Kafka.
    `produces`: the topic to which each step produces one record through its context ("" none), the record's key being the step's
    idempotency key. `result`, `produced`: the JSON text of each step's result, and the text of the record that it produces, with
    `$run`, `$step` and `$key` (the step's idempotency key) in place of those; "" not known.

    How an attempt ends that nothing disturbs: in success, except
    - `fails`: each one ends in failure, after all its steps;
    - `flaky`: those numbered 1 to `flaky` (`ctx.attempt`) end in failure;
    - `snoozes`: those numbered 1 to `snoozes` ask to be called again after `snooze_ms`;
    - `hangs`: none ends by itself: the `timeout` of the definition or a cancel ends it.
    `failure`: the word that records have for its failures: `failed` (no retry follows), `retry`, `exception`; "" not known.
    `takes_ms`: the longest that an undisturbed attempt takes on an idle machine, from its beginning to its end; -1 not known."""

    steps: tuple[str, ...] = ()
    effects: bool = True
    produces: str = ""
    result: str = ""
    produced: str = ""
    fails: bool = False
    flaky: int = 0
    snoozes: int = 0
    snooze_ms: int = 0
    hangs: bool = False
    failure: str = ""
    takes_ms: int = -1


Conducts = dict[str, Conduct]
"""By the name of the handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """All that was noted outside the log. `troubles`: what whoever recorded it found wrong beside the records, a line each: each
    breaks the run. `notes`: what a reader should know, and breaks nothing."""

    published: tuple[Published, ...] = ()
    effects: tuple[Effect, ...] = ()
    faults: tuple[Fault, ...] = ()
    lives: tuple[Life, ...] = ()
    conducts: Conducts = field(default_factory=dict)
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def struck(self) -> tuple[Fault, ...]:
        """The faults that took effect: the only ones that explain anything."""
        return tuple(fault for fault in self.faults if fault.struck)
