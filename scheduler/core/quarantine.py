"""A round decided without those that a bug keeps from being decided, so that everybody else's jobs go on.

An input that cannot be decided is refused, with its coordinates and what was raised; if it told of an attempt's end, the attempt
is given up. A job whose due times cannot be decided is set aside: nothing of it is recorded, so its cursor stays, and when it
is mended all that is due is found late.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.core.guard import Culprits, Guard
from dueline.scheduler.core.inputs import Inputs, Problem, Read, Settings
from dueline.scheduler.core.plan import decide
from dueline.scheduler.core.state import State

T = TypeVar("T")

INTERNAL_ERROR = "internal-error"
"""Why an input was refused that met a bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A round's decision, and whom it left out."""

    decision: Decision
    culprits: Culprits


def plan_around(state: State, inputs: Inputs, settings: Settings, now: int, *, probing: bool = False) -> Planned:
    """`plan`, without whoever raises. Pure as `plan` is: the caller sets the named jobs aside in its state.

    `probing`: also without whoever makes a record that cannot be encoded. What nobody in particular raises is raised.
    """
    found = Culprits()
    while True:
        guard = Guard(lenient=True, aside=found.jobs, probing=probing)
        draft = Draft(state, _without(inputs, found), settings, now, guard)
        try:
            decide(draft)
            if not guard.met:
                return Planned(decision=draft.decision(), culprits=found)
        except Exception:
            if not guard.met:
                raise
        known = len(found)
        found = found.and_also(guard.met)
        if len(found) == known:
            raise RuntimeError(f"nothing can be decided without {found}: they raise again when they are left out")


def _without(inputs: Inputs, culprits: Culprits) -> Inputs:
    if not culprits:
        return inputs
    workers, events = culprits.workers, _refused(inputs.events, culprits)
    return replace(
        inputs,
        jobs=_refused(inputs.jobs, culprits),
        commands=_refused(inputs.commands, culprits),
        events=events,
        undecided=[
            replace(read, problem=refused.problem)
            for read, refused in zip(inputs.events, events, strict=True)
            if refused is not read
        ],
        heartbeats=[each for each in inputs.heartbeats if each.incarnation not in workers],
        dead=[each for each in inputs.dead if each.incarnation not in workers],
        fenced=[each for each in inputs.fenced if each.incarnation not in workers],
        fleet=Fleet(
            workers={name: each for name, each in inputs.fleet.workers.items() if name not in workers},
            queues=inputs.fleet.queues,
        ),
    )


def _refused(reads: list[Read[T]], culprits: Culprits) -> list[Read[T]]:
    return [_refused_one(read, culprits) for read in reads]


def _refused_one(read: Read[T], culprits: Culprits) -> Read[T]:
    trouble = culprits.reads.get((read.topic, read.partition, read.offset))
    if trouble is None:
        return read
    detail = (
        f"{read.topic}[{read.partition}] offset {read.offset}: {trouble.error}. This is a bug of dueline, not of the record: "
        "the leader's log has the traceback; everybody else's jobs go on"
    )
    return replace(read, value=None, problem=Problem(error=INTERNAL_ERROR, detail=detail))
