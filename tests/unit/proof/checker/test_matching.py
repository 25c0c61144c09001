"""Effects against due times with every run id taken away: each drop and each double is still seen."""

from __future__ import annotations

from dataclasses import replace

from proof.checker.matching import check_matching
from proof.checker.reading import read
from proof.history.history import History
from proof.history.verdict import Kind
from tests.unit.proof.checker.edit import with_effects
from tests.unit.proof.checker.histories import calm, squall


def anonymous(history: History) -> History:
    return with_effects(history, [replace(effect, run="", attempt=0, key="", due_ms=0) for effect in history.noted.effects])


def kinds(history: History) -> set[Kind]:
    return {violation.kind for violation in check_matching(read(history))}


def test_valid_histories_match() -> None:
    for seed in range(3):
        assert kinds(anonymous(calm(seed))) == set()
        assert kinds(anonymous(squall(seed))) == set()


def test_each_dropped_and_each_doubled_effect_is_seen_without_ids() -> None:
    history = anonymous(calm(1))
    effects = history.noted.effects
    succeeds = [place for place, effect in enumerate(effects) if effect.job not in ("d", "s")]  # d fails, s is cancelled
    judged = [place for place in succeeds if effects[place].at_ms <= history.judged_ms - 100]
    assert len(judged) > 20
    for place in judged:
        assert kinds(with_effects(history, [*effects[:place], *effects[place + 1 :]])) == {Kind.LOST}
        assert kinds(with_effects(history, [*effects, effects[place]])) == {Kind.DOUBLED}
