"""An attempt whose worker was cut off: no step begins before one of it was committed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dueline.workers.attempt import Attempt, Facts, StepDone
from dueline.workers.errors import AttemptClosed, Interruption

FACTS = Facts(run="job@x", job="job", handler="h", due_ms=0, attempt=1, payload="null")


@dataclass(slots=True)
class Ground:
    """What the attempt stands on. `leased`: whether the lease holds."""

    leased: bool = True
    submitted: list[StepDone] = field(default_factory=list)

    def may_begin(self) -> bool:
        return self.leased

    def now_ms(self) -> int:
        return 0

    def unwritable(self, _topic: str) -> str:
        return ""

    def submit(self, done: StepDone) -> None:
        self.submitted.append(done)


def test_given_a_lapsed_lease_when_it_holds_again_then_no_step_begins_and_the_attempt_is_handed_back() -> None:
    ground = Ground(leased=False)
    attempt = Attempt(FACTS, {}, ground)
    assert not attempt.may_begin()
    attempt.doubt()
    assert not attempt.may_begin()  # it waits while it is not known
    ground.leased = True
    with pytest.raises(Interruption, match="cut off") as raised:
        attempt.may_begin()
    assert not isinstance(raised.value, AttemptClosed)  # `finished(interrupted)` is written, if it still can be


def test_given_a_lapsed_lease_when_the_step_under_way_is_committed_then_the_next_one_begins() -> None:
    attempt = Attempt(FACTS, {}, Ground())
    step = attempt.open_step("first")
    attempt.doubt()
    attempt.complete(step, None)
    attempt.proved(attempt.doubts)  # its transaction began after the doubt, and a fenced incarnation commits none
    assert attempt.may_begin()


def test_given_a_lapsed_lease_what_was_begun_before_or_only_found_in_the_log_proves_nothing() -> None:
    """It may have been committed before another incarnation's fence (W7), and be heard of after."""
    attempt = Attempt(FACTS, {}, Ground())
    begun = attempt.doubts
    attempt.doubt()
    attempt.committed()
    attempt.proved(begun)
    with pytest.raises(Interruption, match="cut off"):
        attempt.may_begin()
