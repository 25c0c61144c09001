"""What one simulated world is: everything that its course follows from, as data that can be written down and read back."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from proof.simulation.plan import Cast, FaultKind, Plan, Planned, Profile, random_plan
from proof.simulation.workload import BEGIN_S, QUEUE

HEALED_S: Final = 20.0
"""Due times are judged up to so long after the last fault was healed; ..."""
QUIET_S: Final = 180.0
"""... and so much longer the world goes on, so that all of them can be decided and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Time-outs of one process, seconds. `session_s` 0: the brokers' minimum."""

    session_s: float = 0.0
    transaction_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """`hours`: of virtual time with workload and faults. `plan` None: the random one of seed and profile. `load`: 1 for about 500
    runs an hour; an hour with fewer costs less."""

    seed: int
    hours: float = 1.0
    profile: Profile = Profile.ROUGH
    plan: Plan | None = None
    load: float = 1.0

    @property
    def heal_s(self) -> float:
        """When faults and workload end."""
        return self.hours * 3600

    @property
    def judged_s(self) -> float:
        """Due times up to here are judged."""
        return self.heal_s + HEALED_S

    @property
    def end_s(self) -> float:
        """When the world ends."""
        return self.judged_s + QUIET_S

    def faults(self) -> Plan:
        """The plan, made or given."""
        if self.plan is not None:
            return self.plan
        return random_plan(self.seed, self.profile, Sizes.of(self.seed).cast, from_s=BEGIN_S + 20, until_s=self.heal_s)

    def to_json(self) -> dict[str, Any]:
        """For a file; with the plan spelt out."""
        return {
            "seed": self.seed, "hours": self.hours, "profile": self.profile.value, "load": self.load,
            "plan": [{name: value for name, value in asdict(one).items() if value not in ("", 0.0)} for one in self.faults()],
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Setup:
        """Raises KeyError, ValueError for what is no setup."""
        plan = tuple(Planned(**{**one, "kind": FaultKind(one["kind"])}) for one in content["plan"])
        return cls(
            seed=int(content["seed"]), hours=float(content["hours"]), profile=Profile(content["profile"]), plan=plan,
            load=float(content.get("load", 1.0)),
        )  # fmt: skip

    def __str__(self) -> str:
        return json.dumps(self.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many of everything, and with which time-outs; from the seed alone, so that a shrunk plan meets the same cluster."""

    schedulers: Mapping[str, Times]
    workers: Mapping[str, Times]
    brokers: int
    min_session_s: float
    worker_timeout_s: float
    partitions: int

    @classmethod
    def of(cls, seed: int) -> Sizes:
        """The sizes of a seed."""
        dice = random.Random(f"sizes of {seed}")
        min_session_s = dice.choice((3.0, 6.0, 6.0, 6.0))

        def scheduler() -> Times:
            return Times(session_s=dice.choice((0.0, 0.0, 0.0, 10.0)), transaction_s=dice.choice((6.0, 30.0, 30.0, 60.0)))

        def worker() -> Times:
            return Times(transaction_s=dice.choice((4.0, 8.0, 8.0, 20.0)))

        return cls(
            schedulers={f"s{number}": scheduler() for number in range(1, dice.choice((2, 2, 3)) + 1)},
            workers={f"w{number}": worker() for number in range(1, dice.choice((2, 3)) + 1)},
            brokers=dice.choice((1, 3, 3)),
            min_session_s=min_session_s,
            worker_timeout_s=dice.choice((9.0, 10.0, 10.0, 20.0)),
            partitions=4,
        )

    @property
    def cast(self) -> Cast:
        """Whom faults can strike."""
        return Cast(
            schedulers=list(self.schedulers), workers=list(self.workers), brokers=range(1, self.brokers + 1), queues=[QUEUE]
        )

    @property
    def session_s(self) -> float:
        """The longest session of a scheduler."""
        return max(self.min_session_s, *(times.session_s for times in self.schedulers.values()))
