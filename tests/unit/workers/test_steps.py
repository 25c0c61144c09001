"""What a step may be called and return, and what counts as done."""

from __future__ import annotations

from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.schemas.work import Step
from dueline.workers.errors import StepError
from dueline.workers.steps import MAX_RESULT_BYTES, check_step_name, latest_of, record_result

texts = st.text(st.characters(codec="utf-8"))
json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@given(json_data)
def test_json_comes_back_as_it_was(value: object) -> None:
    assert record_result("s", value, 1).value() == value


@given(st.binary())
def test_bytes_come_back_as_they_were(value: bytes) -> None:
    assert record_result("s", bytearray(value), 1).value() == value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), object(), {1: 2}, {"a": {1, 2}}, "\ud800", b"x" * (MAX_RESULT_BYTES + 1),
     "x" * MAX_RESULT_BYTES, [[]] * 200_000, lambda: None],
    ids=["nan", "inf", "object", "int key", "set", "surrogate", "large bytes", "large text", "large list", "function"],
)  # fmt: skip
def test_what_cannot_be_recorded_is_refused_by_the_steps_name(value: object) -> None:
    with pytest.raises(StepError, match="step 'send/7'"):
        record_result("send/7", value, 1)


def test_a_value_within_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(StepError, match="step 's'"):
        record_result("s", loop, 1)


def test_the_largest_result_is_recorded() -> None:
    assert len(record_result("s", b"x" * MAX_RESULT_BYTES, 1).result) == MAX_RESULT_BYTES
    assert len(record_result("s", "x" * (MAX_RESULT_BYTES - 2), 1).result) == MAX_RESULT_BYTES


def test_a_number_of_an_enum_is_its_number() -> None:
    class Dish(IntEnum):
        SOUP = 2

    assert record_result("s", Dish.SOUP, 1).value() == 2


@pytest.mark.parametrize("name", ["", "x" * 251, "a\nb", None, 7])
def test_a_name_that_cannot_be_is_refused(name: object) -> None:
    with pytest.raises(StepError, match="step"):
        check_step_name(name, ())


def test_a_name_used_twice_is_refused_by_name() -> None:
    with pytest.raises(StepError, match=r"step 'send/7'.*used before"):
        check_step_name("send/7", {"send/7"})


def step(name: str, attempt: int, result: bytes, run: str = "r") -> Step:
    return Step(
        run=run, attempt=attempt, claim=1, incarnation="i", name=name, encoding="json", result=result, started_ms=0,
        finished_ms=0,
    )  # fmt: skip


def test_the_newest_attempt_wins_and_other_runs_do_not_count() -> None:
    done = latest_of([step("a", 2, b"2"), step("a", 1, b"1"), step("b", 1, b"3"), step("c", 1, b"4", run="other")], "r")
    assert {name: recorded.value() for name, recorded in done.items()} == {"a": 2, "b": 3}
