"""A World whose leader decides around bugs, as the real one does, and bugs to plant: each meets one job only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dueline.scheduler.core import commands, definitions, draft, dues, events, plan, spans
from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.guard import Culprits
from dueline.scheduler.core.life import finished, lost
from dueline.scheduler.core.quarantine import plan_around
from dueline.scheduler.core.spans import Span
from dueline.schemas.codec import Record, encode
from tests.unit.core.world import World


class Bug(Exception):
    """What no code expects."""


class QuarantinedWorld(World):
    """Decides around whoever raises, and sets jobs aside as `Term` does."""

    culprits = Culprits()

    def plan(self, when: int | None = None, **changes: Any) -> Decision:
        self.now = self.now if when is None else when
        arguments = self.state, self.inputs(**changes), self.settings, self.now
        planned = plan_around(*arguments)
        try:
            written(planned.decision)
        except (Bug, UnicodeEncodeError):
            planned = plan_around(*arguments, probing=True)
            written(planned.decision)
        self.culprits = planned.culprits
        return planned.decision

    def round(self, when: int | None = None, **changes: Any) -> Decision:
        decision = super().round(when, **changes)
        for job_id, trouble in self.culprits.jobs.items():
            self.state.set_aside(job_id, trouble)
        return decision


def written(decision: Decision) -> None:
    """Encode everything, as the leader does before it writes."""
    for record in (*decision.versions, *decision.ledger, *decision.dispatches, *decision.signals, *decision.rejected):
        vars(draft)["encode"](record)


Plant = Callable[[pytest.MonkeyPatch, str], None]
"""Plants a bug that this job meets."""


def in_its_due_times(patch: pytest.MonkeyPatch, job: str) -> None:
    """Its schedule raises."""
    patch.setattr(spans.Span, "next_due", raising(Span.next_due, lambda span, *_: span.job.id == job))


def in_its_admission(patch: pytest.MonkeyPatch, job: str) -> None:
    """What is due cannot be admitted."""
    patch.setattr(dues, "admission", raising(dues.admission, lambda _, span, *__: span.job.id == job))
    patch.setattr(definitions, "admission", dues.admission)


def in_its_offers(patch: pytest.MonkeyPatch, job: str) -> None:
    """Each offer fails after it was half made."""
    offer = Draft.offer

    def half(self: Draft, run: Any, **more: Any) -> Any:
        made = offer(self, run, **more)
        if run.job.id == job:
            raise Bug(f"offering {run.key}")
        return made

    patch.setattr(Draft, "offer", half)


def in_its_events(patch: pytest.MonkeyPatch, job: str) -> None:
    """What workers say of its runs fails after it was decided."""
    _after(patch, plan, "decide_event", lambda _, read: read.value is not None and read.value.run.startswith(f"{job}@"))


def in_its_ends(patch: pytest.MonkeyPatch, job: str) -> None:
    """How an attempt ended cannot be decided."""
    patch.setattr(events, "finished", raising(finished, lambda run, *_, **__: run.job.id == job))


def in_its_definitions(patch: pytest.MonkeyPatch, job: str) -> None:
    """New versions of it fail half-way."""
    _after(patch, definitions, "new_version", lambda _, state, *__, **___: state is not None and state.id == job)
    patch.setattr(commands, "new_version", definitions.new_version)


def in_its_commands(patch: pytest.MonkeyPatch, job: str) -> None:
    """Commands about it fail half-way."""
    _after(patch, plan, "decide_command", lambda _, read: read.value is not None and read.value.job == job)


def in_its_losses(patch: pytest.MonkeyPatch, job: str) -> None:
    """Its runs cannot be taken from a fenced worker."""
    patch.setattr(events, "lost", raising(lost, lambda run, **_: run.job.id == job))


def in_its_records(patch: pytest.MonkeyPatch, job: str) -> None:
    """Its run records cannot be encoded."""

    def refusing(record: Record) -> bytes:
        if getattr(getattr(record, "job", None), "id", "") == job:
            raise Bug(f"encoding a run of {job}")
        return encode(record)

    patch.setattr(draft, "encode", refusing)


PLANTS: tuple[Plant, ...] = (
    in_its_due_times, in_its_admission, in_its_offers, in_its_events, in_its_ends, in_its_definitions, in_its_commands,
    in_its_losses, in_its_records,
)  # fmt: skip


def raising(right: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    """The function, but for these arguments."""

    def wrong(*args: Any, **more: Any) -> Any:
        if when(*args, **more):
            raise Bug("planted")
        return right(*args, **more)

    return wrong


def _after(patch: pytest.MonkeyPatch, module: Any, name: str, when: Callable[..., bool]) -> None:
    right = getattr(module, name)

    def wrong(*args: Any, **more: Any) -> Any:
        result = right(*args, **more)
        if when(*args, **more):
            raise Bug("planted")
        return result

    patch.setattr(module, name, wrong)
