"""What reaches the worker's loop. Everything that happens elsewhere ends as one of these in the inbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dueline.scheduler.core.ports import Assignment, Delivered, Outgoing, Received
from dueline.schemas.work import Dispatch
from dueline.workers.attempt import Attempt, StepDone
from dueline.workers.claim import ClaimId
from dueline.workers.offers import Batch
from dueline.workers.outcome import Ended
from dueline.workers.steps import Recorded

if TYPE_CHECKING:
    from dueline.workers.incarnation import Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A step's completion or an attempt event on its way through the group-commit loop."""

    id: ClaimId
    kind: str  # "step" or EventKind
    name: str  # of the step; "" of an event
    record: Outgoing
    produced: Sequence[Outgoing] = ()
    attempt: Attempt | None = None
    answer: Future[None] | None = None


STEP_KIND = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One offer as it is claimed. `declined`: why it is given back in the same transaction; "" if it is not."""

    record: Received
    dispatch: Dispatch | None  # None: it could not be decoded
    id: ClaimId
    declined: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffersRead:
    """The group reader returned."""

    assignment: Assignment | None
    records: Sequence[Received]
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A seek was carried out, or not since the assignment is another one."""

    epoch: int
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalsRead:
    """Records of the home partition of `signals`."""

    records: Sequence[Received]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswered:
    """A heartbeat was acknowledged, or failed."""

    incarnation: str
    sent_s: float
    received_s: float
    delivered: Delivered | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsAnswered:
    """A claim transaction has an outcome."""

    incarnation: str
    batch: Batch
    claimed: Sequence[Ask] = ()
    unclaimed: Sequence[Ask] = ()
    refused: bool = False
    writer_over: str = ""  # why the claim writer can write no more; "" if it can
    append_ms: int = -1
    received_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A transaction of the pair has an outcome."""

    incarnation: str
    landed: Sequence[Write]
    again: Sequence[Write] = ()  # not committed, to be written by the survivor
    silent: AbstractSet[str] = frozenset()  # topics of users that did not answer; who writes to them waits
    over: str = ""  # why the pair can write no more; "" if it can
    append_ms: int = -1
    received_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """A transaction's outcome is not known; it is being read back."""

    incarnation: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSubmitted:
    """A handler completed a step."""

    id: ClaimId
    attempt: Attempt
    done: StepDone


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerEnded:
    """A handler's code has ended."""

    id: ClaimId
    ended: Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsRead:
    """The steps of earlier attempts; `gone`: why they cannot be read any more, "" if they were."""

    id: ClaimId
    recorded: Mapping[str, Recorded] = field(default_factory=dict)
    gone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A fresh incarnation is open: all its ids are initialised."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOff:
    """Whether all that one of the two writers of a drained incarnation wrote can be read."""

    incarnation: str
    readable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftGroup:
    """The group reader is closed."""


Event = (
    OffersRead | Sought | SignalsRead | HeartbeatAnswered | ClaimsAnswered | Written | InDoubt
    | StepSubmitted | HandlerEnded | StepsRead | Opened | SignedOff | LeftGroup
)  # fmt: skip

