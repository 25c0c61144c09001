"""When the driver lets the next fault begin."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proof.faults import driver
from proof.faults.driver import Driver
from proof.faults.kinds.kind import Attack, Kind
from proof.faults.plan import Plan
from proof.faults.workload import Workload
from proof.faults.world import World

APART_S = 0.25
LASTS_S = 0.1
LEADERLESS_S = 0.2
ALONE_S = 2 * LEADERLESS_S
ROUNDING_S = 0.01
FAULTS = 4


class Stage:
    """As much of a world as the driver asks for. Each fault lasts a while, and for a while after it nobody leads."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.notes = SimpleNamespace(injected=0, tried=0)
        self.held: set[str] = set()
        self.healing, self.user_waits = False, True
        self.brokers = SimpleNamespace(lost=list, failed=list)
        self.links = SimpleNamespace(clear=lambda: None)
        self.crew = SimpleNamespace(heal=lambda: None)
        self.spans: list[list[float]] = []
        self.most = self.active = 0
        self.trouble: list[str] = []
        self.strikes, self.ready = True, True

    def pump(self) -> None:
        threading.Event().wait(0.005)

    def leader(self) -> object:
        return None if self.spans and time.monotonic() < self.spans[-1][1] + LEADERLESS_S else self

    def stands_by(self) -> bool:
        return not self.spans or time.monotonic() >= self.spans[-1][1] + ALONE_S

    def begin(self, *_: Any) -> Attack | None:
        if not self.ready:
            return None

        def acts() -> Iterator[float]:
            self.notes.tried += 1
            self.notes.injected += self.strikes
            self.active += 1
            self.most = max(self.most, self.active)
            span = [time.monotonic(), time.monotonic() + LASTS_S]
            self.spans.append(span)
            yield LASTS_S
            self.active -= 1

        return Attack(targets=(), acts=cast(Any, acts()))


def driven(*, strikes: bool = True, ready: bool = True, **fields: Any) -> Stage:
    stage = Stage(Plan(faults=FAULTS, seed=1, out=Path("nowhere"), pause_s=(0.0, 0.01), **fields))
    stage.strikes, stage.ready = strikes, ready
    kinds = [Kind(name="some", weight=1, begin=stage.begin)]
    made = Driver(cast(World, stage), cast(Workload, SimpleNamespace(act=None, chance=Random(1))), kinds)
    made.run()
    stage.trouble = made.trouble
    return stage


def test_faults_overlap_and_do_not_wait_for_a_leader() -> None:
    assert driven().most > 1


def test_faults_apart_come_one_by_one_when_there_has_been_a_standby_for_a_while() -> None:
    stage = driven(apart_s=APART_S)
    assert stage.most == 1
    quiet = [after[0] - before[1] for before, after in zip(stage.spans, stage.spans[1:], strict=False)]
    assert min(quiet) >= ALONE_S + APART_S - ROUNDING_S, quiet


def test_a_run_in_which_nothing_strikes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{driver.__name__}.TRIED", 2)
    with pytest.raises(RuntimeError, match="only 0 struck"):
        driven(strikes=False)


def test_a_run_in_which_no_fault_finds_its_target_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{driver.__name__}.STALL_S", 0.1)
    assert driven(ready=False).trouble == ["no fault has begun for 0 s, after 0 of them"]
    assert driven().trouble == []
