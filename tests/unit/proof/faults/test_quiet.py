"""How long is waited for what is left after the last fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from proof.faults import run

JUDGED_MS = 1_000
QUIET_S = 10.0


def waited(monkeypatch: pytest.MonkeyPatch, left_at: dict[int, int], *, reached_ms: int = 60_000) -> tuple[list[str], int]:
    """What await_quiet says, and after how many seconds. `left_at`: how many runs are left from that second on."""
    clock = SimpleNamespace(now=0)
    monkeypatch.setattr(f"{run.__name__}.time", SimpleNamespace(monotonic=lambda: float(clock.now)))

    def unended(_: int) -> list[str]:
        count = next(count for second, count in sorted(left_at.items(), reverse=True) if second <= clock.now)
        return [f"run {number}" for number in range(count)]

    def tick() -> None:
        clock.now += 1

    plan = SimpleNamespace(quiet_s=QUIET_S)
    world: Any = SimpleNamespace(plan=plan, ledger=SimpleNamespace(unended=unended, reached_ms=reached_ms))
    driver: Any = SimpleNamespace(round=tick)
    workload: Any = SimpleNamespace(let_go=lambda: None)
    return run.await_quiet(world, driver, workload, JUDGED_MS), clock.now


def test_nothing_left_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, {0: 3, 4: 0}) == ([], 4)


def test_a_backlog_that_shrinks_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, {0: 3, 9: 2, 18: 1, 27: 0}) == ([], 27)


def test_one_that_does_not_shrink_any_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said, after_s = waited(monkeypatch, {0: 3, 5: 2})
    assert after_s >= 5 + QUIET_S
    assert "2 runs has ended (['run 0', 'run 1'])" in said[0]


def test_a_leader_that_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said, _ = waited(monkeypatch, {0: 0}, reached_ms=JUDGED_MS)
    assert "0 ms past what is judged" in said[0]
