"""Handlers against what the checker is told of them (`conducts`), attempt by attempt, and the notes of their effects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dueline import TestContext
from dueline.workers.errors import Fail, Retry, Snooze
from proof.faults import effects, handlers
from proof.faults.handlers import MOODY, PACE_S, SNOOZE_S, conducts
from proof.history.acts import Effect

POSTS = "posts"


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(effects.FILE_ENVIRONMENT, str(tmp_path / "effects"))
    monkeypatch.setenv(effects.PROCESS_ENVIRONMENT, "w1")
    monkeypatch.setenv(handlers.TOPIC_ENVIRONMENT, POSTS)
    return tmp_path / "effects"


def steps(found: tuple[Effect, ...]) -> tuple[str, ...]:
    return tuple(effect.step for effect in found)


@pytest.mark.parametrize("name", ["tick", "nap", "walk", "trek", "post"])
def test_a_run_leaves_its_steps_and_their_results(name: str, file: Path) -> None:
    ctx, conduct = TestContext(), conducts(POSTS)[name]
    ctx.run(vars(handlers)[name])
    assert steps(effects.read_effects(file)) == conduct.steps
    assert {step: json.dumps(result) for step, result in ctx.steps.items()} == {
        step: conduct.result.replace("$step", step) for step in conduct.steps
    }
    assert len(ctx.produced) == (1 if conduct.produces else 0)


def test_effects_say_when_their_step_was_called(file: Path) -> None:
    TestContext().run(handlers.walk)
    assert all(effect.at_ms - effect.began_ms >= PACE_S * 1000 - 1 for effect in effects.read_effects(file))
    file.unlink()
    TestContext().run(handlers.tick)
    [tick] = effects.read_effects(file)
    assert 0 <= tick.at_ms - tick.began_ms < PACE_S * 1000


def test_a_failure_without_retry_comes_after_the_step(file: Path) -> None:
    with pytest.raises(Fail):
        TestContext().run(handlers.flop)
    assert (steps(effects.read_effects(file)), conducts(POSTS)["flop"].fails) == (("try",), True)


def test_the_moody_one_fails_as_often_as_it_says(file: Path) -> None:
    ctx, conduct = TestContext(), conducts(POSTS)["moody"]
    with pytest.raises(Retry):
        ctx.run(handlers.moody)
    for _ in range(MOODY - 1):
        with pytest.raises(Retry):
            ctx.resume(handlers.moody)
    ctx.resume(handlers.moody)
    assert [(effect.step, effect.attempt) for effect in effects.read_effects(file)] == [("begin", 1), ("end", MOODY + 1)]
    assert conduct.flaky == MOODY


def test_the_sleepy_one_snoozes_once(file: Path) -> None:
    ctx, conduct = TestContext(), conducts(POSTS)["sleepy"]
    with pytest.raises(Snooze) as snoozed:
        ctx.run(handlers.sleepy)
    ctx.resume(handlers.sleepy)
    assert (snoozed.value.seconds, conduct.snooze_ms, conduct.snoozes) == (SNOOZE_S, round(SNOOZE_S * 1000), 1)
    assert steps(effects.read_effects(file)) == conduct.steps
