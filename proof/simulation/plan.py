"""Which faults strike when: a list that a seed decides before the world begins, and that shrinking may shorten.

A plan is data: it is written to a file and read back, and what it does stands in `faults`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class FaultKind(StrEnum):
    """What can go wrong. Targets: a process, a broker's number, or `process>broker`; "" where there is only one."""

    KILL = "kill"
    """SIGKILL; started again after `for_s`."""
    TERM = "term"
    """SIGTERM; started again `for_s` later."""
    FREEZE = "freeze"
    STICK = "stick"
    """Python hangs, librdkafka's threads beat on."""
    HANG = "hang"
    """The Kafka client of the target hangs in a transaction call, and never returns."""
    FAILPOINT = "failpoint"
    """Kill, freeze or stick (`act`) at a named place (`word`), at its `value`-th time."""
    CUT = "cut"
    """The link breaks, and no connection comes up. Target `process>*`: to all brokers."""
    LOSE_REQUESTS = "lose-requests"
    LOSE_ANSWERS = "lose-answers"
    DELAY = "delay"
    """Each way takes `value` seconds more."""
    BROKER_KILL = "broker-kill"
    """`act` FORGETS: back, it sends no markers for what it ends by itself then."""
    BROKER_FREEZE = "broker-freeze"
    COORDINATOR_MOVE = "coordinator-move"
    """Of the election's group, of the workers', or of the leader's transactional ids (`word`)."""
    END_HELD = "endtxn-held"
    """EndTxn of the target reaches the broker `value` seconds late."""
    END_REPEATED = "endtxn-repeated"
    """It reaches the broker a second time, `value` seconds later: maybe into a later transaction."""
    END_ANSWER_LOST = "endtxn-answer-lost"
    END_RETRIED = "endtxn-retried"
    """The connection breaks while a copy is on its way; the client sends another, and the first comes `value` seconds late."""
    OFFSETS_HELD = "addoffsets-held"
    CLOCK_STEP = "clock-step"
    """A host's wall clock is `value` milliseconds off for `for_s`."""
    CLOCK_DRIFT = "clock-drift"
    """It drifts `value` milliseconds a second for `for_s`, then is set right."""
    BROKER_CLOCK_STEP = "broker-clock-step"
    BROKER_CLOCK_DRIFT = "broker-clock-drift"
    GROUP_DELETED = "group-deleted"
    """All schedulers stop; the election's group is deleted; they start again."""
    OFFSETS_EXPIRED = "offsets-expired"
    """Committed offsets of both groups are gone, while nobody has noticed."""
    RECORDS_EXPIRED = "records-expired"
    """The retention of `signals` or of a dispatch topic (`word`) runs out for all that stands there."""
    ABSENCE = "absence"
    """No scheduler runs for `for_s`, longer than half of the time that deletions stay readable in `jobs`."""
    STORM = "storm"
    """`value` more schedulers start at once, for `for_s`."""
    OPEN_TRANSACTION = "open-transaction"
    """A user's transaction stands open in a topic (`word`) for `for_s`, and is aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One fault to come. Seconds of virtual time."""

    kind: FaultKind
    at_s: float
    for_s: float = 0.0
    target: str = ""
    value: float = 0.0
    word: str = ""
    act: str = ""


Plan = tuple[Planned, ...]


class Profile(StrEnum):
    """How rough the world is."""

    QUIET = "quiet"
    """No fault at all."""
    CALM = "calm"
    """A fault every five minutes: what a good week brings in a day."""
    ROUGH = "rough"
    """A fault every 75 s, of any kind."""
    BRUTAL = "brutal"
    """A fault every 20 s, many at the same time."""


GAPS_S: Final = {Profile.CALM: 300.0, Profile.ROUGH: 75.0, Profile.BRUTAL: 20.0}

LENGTHS_S: Final = (0.3, 1.0, 2.5, 4.0, 5.5, 6.5, 7.5, 9.0, 10.5, 12.0, 16.0, 22.0, 35.0, 70.0)
"""Below and above each time-out: session 6, lease 7, worker's transactions 8, worker 10, poll interval 20, leader's 30 s."""

HUNG_S: Final = 110.0
"""Longer than any watchdog here waits."""
ABSENT_S: Final = 700.0

WEIGHTS: Final[dict[FaultKind, int]] = {
    FaultKind.KILL: 10,
    FaultKind.TERM: 5,
    FaultKind.FREEZE: 10,
    FaultKind.STICK: 4,
    FaultKind.HANG: 2,
    FaultKind.FAILPOINT: 10,
    FaultKind.CUT: 5,
    FaultKind.LOSE_REQUESTS: 4,
    FaultKind.LOSE_ANSWERS: 4,
    FaultKind.DELAY: 3,
    FaultKind.BROKER_KILL: 4,
    FaultKind.BROKER_FREEZE: 2,
    FaultKind.COORDINATOR_MOVE: 3,
    FaultKind.END_HELD: 4,
    FaultKind.END_REPEATED: 4,
    FaultKind.END_ANSWER_LOST: 4,
    FaultKind.END_RETRIED: 6,
    FaultKind.OFFSETS_HELD: 3,
    FaultKind.CLOCK_STEP: 3,
    FaultKind.CLOCK_DRIFT: 2,
    FaultKind.BROKER_CLOCK_STEP: 2,
    FaultKind.BROKER_CLOCK_DRIFT: 2,
    FaultKind.GROUP_DELETED: 1,
    FaultKind.OFFSETS_EXPIRED: 1,
    FaultKind.RECORDS_EXPIRED: 2,
    FaultKind.ABSENCE: 1,
    FaultKind.STORM: 1,
    FaultKind.OPEN_TRANSACTION: 3,
}

FORGETS: Final = "forgets"
"""What a lone broker's kill does besides, if it is away for longer than transactions may last (docs/kafka.md)."""

MILD: Final = frozenset({
    FaultKind.KILL, FaultKind.TERM, FaultKind.FREEZE, FaultKind.DELAY, FaultKind.COORDINATOR_MOVE, FaultKind.CUT,
})  # fmt: skip

BLURRING: Final = frozenset({FaultKind.BROKER_CLOCK_STEP, FaultKind.BROKER_CLOCK_DRIFT, FaultKind.ABSENCE})
"""After a broker's clock was off the checker must allow for it in the whole history, and without schedulers little happens."""

PLACES: Final = {
    "s": ("leader.before-init", "leader.before-offsets", "leader.after-offsets", "leader.before-commit", "leader.after-commit"),
    "w": (
        "claim.before-offsets", "claim.after-offsets", "claim.before-commit", "claim.after-commit",
        "worker.before-commit", "worker.after-commit", "worker.before-init",
    ),
}  # fmt: skip
"""Failpoints of a scheduler and of a worker, by the first letter of the process's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who can be struck: names of schedulers (s1, ...) and workers (w1, ...), numbers of brokers, names of queues."""

    schedulers: Sequence[str]
    workers: Sequence[str]
    brokers: Sequence[int]
    queues: Sequence[str]


def random_plan(seed: int, profile: Profile, cast: Cast, *, from_s: float, until_s: float) -> Plan:
    """Faults between the two moments, some of them in quick succession."""
    if profile is Profile.QUIET:
        return ()
    dice = random.Random(f"faults of {seed}")
    kinds = [kind for kind in FaultKind if profile is not Profile.CALM or kind in MILD]
    if dice.random() < 0.75:
        kinds = [kind for kind in kinds if kind not in BLURRING]
    plan: list[Planned] = []
    at_s = from_s + dice.expovariate(1 / GAPS_S[profile])
    while at_s < until_s:
        [kind] = dice.choices(kinds, [WEIGHTS[kind] for kind in kinds])
        if kind is FaultKind.ABSENCE:  # one is enough
            kinds.remove(kind)
        plan.append(_planned(dice, kind, round(at_s, 3), cast))
        quick = dice.random() < 0.25  # two faults within one take-over
        at_s += dice.uniform(0.05, 8.0) if quick else dice.expovariate(1 / GAPS_S[profile])
    return tuple(plan)


def _planned(dice: random.Random, kind: FaultKind, at_s: float, cast: Cast) -> Planned:
    process = dice.choice([*cast.schedulers, *cast.schedulers, *cast.workers])
    broker = dice.choice(list(cast.brokers))
    for_s = dice.choice(LENGTHS_S) * dice.uniform(0.9, 1.1)
    fault = Planned(kind=kind, at_s=at_s, for_s=round(for_s, 3), target=process)
    match kind:
        case FaultKind.KILL | FaultKind.TERM:
            return replace(fault, for_s=round(dice.choice((0.1, 1.0, 4.0, 12.0, 40.0)), 3))
        case FaultKind.HANG:
            return replace(fault, for_s=HUNG_S)
        case FaultKind.ABSENCE:
            return replace(fault, target="", for_s=dice.choice((30.0, ABSENT_S)))
        case FaultKind.FAILPOINT:
            act = dice.choice(("kill", "kill", "freeze", "stick"))
            return replace(fault, word=dice.choice(PLACES[process[0]]), act=act, value=dice.randint(1, 5))
        case FaultKind.CUT | FaultKind.LOSE_REQUESTS | FaultKind.LOSE_ANSWERS:
            return replace(fault, target=f"{process}>{dice.choice([broker, '*'])}")
        case FaultKind.DELAY:
            return replace(fault, target=f"{process}>{dice.choice([broker, '*'])}", value=dice.choice((0.05, 0.3, 1.5, 4.0)))
        case FaultKind.BROKER_KILL:
            return replace(fault, target=str(broker), act="" if len(cast.brokers) > 1 else FORGETS)
        case FaultKind.BROKER_FREEZE:
            return replace(fault, target=str(broker))
        case FaultKind.COORDINATOR_MOVE:
            return replace(fault, target="", for_s=0.0, word=dice.choice(("schedulers", "workers", "leader")))
        case FaultKind.END_HELD | FaultKind.END_REPEATED | FaultKind.END_RETRIED | FaultKind.OFFSETS_HELD:
            return replace(fault, value=round(dice.choice((0.02, 0.3, 2.0, 7.0, 15.0, 28.0)) * dice.uniform(0.5, 1.1), 3))
        case FaultKind.CLOCK_STEP:
            shift_ms = dice.choice((-3_600_000, -45_000, -2_000, 2_000, 45_000, 3_600_000))
            return replace(fault, for_s=dice.choice((20.0, 50.0, 100.0)), value=shift_ms)
        case FaultKind.CLOCK_DRIFT:
            return replace(fault, for_s=300.0, value=dice.choice((-20.0, -1.0, 1.0, 20.0)))
        case FaultKind.BROKER_CLOCK_STEP:
            shift_ms = dice.choice((-20_000, -3_000, -300, 300, 3_000, 20_000))
            return replace(fault, target=str(broker), for_s=dice.choice((20.0, 60.0)), value=shift_ms)
        case FaultKind.BROKER_CLOCK_DRIFT:
            return replace(fault, target=str(broker), for_s=120.0, value=dice.choice((-5.0, -1.0, 1.0, 5.0)))
        case FaultKind.GROUP_DELETED:
            return replace(fault, target="", for_s=dice.choice((14.0, 30.0)))
        case FaultKind.OFFSETS_EXPIRED:
            return replace(fault, target="", for_s=0.0)
        case FaultKind.RECORDS_EXPIRED:
            return replace(fault, target="", for_s=0.0, word=dice.choice(["signals", *(f"dispatch.{q}" for q in cast.queues)]))
        case FaultKind.STORM:
            return replace(fault, target="", value=dice.choice((3, 6)), for_s=dice.choice((10.0, 30.0)))
        case FaultKind.OPEN_TRANSACTION:
            return replace(fault, target="", word=dice.choice(("jobs", "control", "runs", "job-versions")))
    return fault
