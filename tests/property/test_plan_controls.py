"""Negative controls: with one rule of the planner broken, random histories must show it, or they prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from dueline.scheduler.core import definitions, draft, dues, events, misfire, plan
from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.misfire import Pass
from dueline.scheduler.core.state import State
from dueline.scheduler.core.transitions import ForbiddenTransition
from dueline.schemas.ledger import Fence
from dueline.schemas.run import Run, Summary
from tests.property.plan_histories import History, Player, histories, replayed, stuck
from tests.unit.core.checker import faults

HUNT = settings(
    max_examples=1_000,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def wrong_with(history: History) -> list[str]:
    """What a history shows."""
    world = Player(history).play()
    found = faults(world.versions, world.runs, world.now) + stuck(world)
    return found if replayed(world, history.seed) else [*found, "replay differs"]


Sabotage = Callable[[pytest.MonkeyPatch], None]


def order_of_runs(patch: pytest.MonkeyPatch) -> None:
    """L5: a job's runs in due-time order."""
    sort_key = draft._by_job_and_due

    def backwards(record: Run | Summary) -> tuple[str, int]:
        job, due = sort_key(record)
        return job, -due

    patch.setattr(draft, "_by_job_and_due", backwards)


def fence_before_its_runs(patch: pytest.MonkeyPatch) -> None:
    """L5, W7: a fence is done only after its runs were given away."""
    decided = Draft.decision

    def fences_first(self: Draft) -> Decision:
        decision = decided(self)
        return replace(decision, ledger=sorted(decision.ledger, key=lambda record: not isinstance(record, Fence)))

    patch.setattr(Draft, "decision", fences_first)


def taken_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Due times that have a record stay with the version before."""
    patch.setattr(definitions, "_taken", lambda *_: [])


def ahead_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Before its due time a run is offered to be held."""
    patch.setattr(draft, "_keeps_time", lambda _: False)


def due_times_too_soon(patch: pytest.MonkeyPatch) -> None:
    """Nothing is early."""
    decide = misfire.decide

    def soon(found: Any, now: int) -> Any:
        return decide(replace(found, end_ms=found.end_ms + 20_000), now)

    patch.setattr(dues, "decide", soon)


def cursor_too_far(patch: pytest.MonkeyPatch) -> None:
    """A cursor stands at what is recorded, not beyond."""
    decided = State._decided
    patch.setattr(State, "_decided", lambda self, job, version, due: decided(self, job, version, due + 8_000))


def cursor_stands_still(patch: pytest.MonkeyPatch) -> None:
    """A summary moves the cursor to its last due time, not to its first."""
    apply = State.apply

    def first_only(self: State, record: Any) -> bool:
        if isinstance(record, Summary):
            self._decided(record.job, record.version, record.first_ms)
            return True
        return apply(self, record)

    patch.setattr(State, "apply", first_only)


def summary_miscounted(patch: pytest.MonkeyPatch) -> None:
    """A summary's count is exact."""
    decide = misfire.decide

    def one_more(found: Any, now: int) -> Any:
        for verdict in decide(found, now):
            yield replace(verdict, count=verdict.count + 1) if isinstance(verdict, Pass) and verdict.count > 2 else verdict

    patch.setattr(dues, "decide", one_more)


def blocked_not_woken(patch: pytest.MonkeyPatch) -> None:
    """A run that waits for another one is woken."""
    patch.setattr(plan, "wake_blocked", lambda _: None)


def superseded_attempt_granted(patch: pytest.MonkeyPatch) -> None:
    """W3: a claim of an attempt that has been given to another."""
    patch.setattr(events, "holds", lambda run, _: run.state == "running")
    patch.setattr(events, "answers_offer", lambda run, _: run.state in ("dispatched", "running"))


SABOTAGE: list[Sabotage] = [
    order_of_runs,
    fence_before_its_runs,
    taken_forgotten,
    ahead_forgotten,
    due_times_too_soon,
    cursor_too_far,
    cursor_stands_still,
    summary_miscounted,
    blocked_not_woken,
    superseded_attempt_granted,
]


@pytest.mark.parametrize("sabotage", SABOTAGE, ids=lambda sabotage: sabotage.__name__)
def test_a_broken_rule_shows(sabotage: Sabotage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a planner without one of its rules, then some history shows a fault, or the planner runs into one itself."""
    sabotage(monkeypatch)
    try:
        shown = find(histories(), lambda history: bool(wrong_or_broken(history)), settings=HUNT)
    except NoSuchExample:
        pytest.fail(f"1,000 histories do not notice: {sabotage.__doc__}")
    assert wrong_or_broken(shown)


def wrong_or_broken(history: History) -> list[str]:
    """What a history shows; a planner that runs into its own checks (transitions, overlap) shows that."""
    try:
        return wrong_with(history)
    except (AssertionError, ForbiddenTransition) as error:
        return [repr(error)]
