"""Percentiles by nearest rank, and histograms that count each number once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof.report.spread import histogram, percentile, spread

NUMBERS = st.lists(st.integers(-10_000, 100_000), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("numbers", "percent", "expected"),
    [
        ([15, 20, 35, 40, 50], 5, 15),
        ([15, 20, 35, 40, 50], 30, 20),
        ([15, 20, 35, 40, 50], 40, 20),
        ([15, 20, 35, 40, 50], 50, 35),
        ([15, 20, 35, 40, 50], 100, 50),
        ([7], 50, 7),
        ([7], 99, 7),
        (list(range(1, 101)), 95, 95),
        (list(range(1, 101)), 99, 99),
        (list(range(1, 1001)), 99, 990),
        ([3, 1, 2], 99, 3),
    ],
)
def test_a_percentile_is_the_nearest_rank(numbers: list[int], percent: float, expected: int) -> None:
    assert percentile(numbers, percent) == expected


@settings(deadline=None)
@given(NUMBERS, st.integers(1, 100))
def test_a_percentile_is_the_smallest_number_that_so_many_do_not_exceed(numbers: list[int], percent: int) -> None:
    def reached(candidate: int) -> bool:
        return sum(number <= candidate for number in numbers) * 100 >= percent * len(numbers)

    assert percentile(numbers, percent) == min(number for number in numbers if reached(number))


@pytest.mark.parametrize(("numbers", "percent"), [([], 50), ([1], 0), ([1], 101)])
def test_what_has_no_percentile_is_an_error(numbers: list[int], percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(numbers, percent)


def test_a_spread_of_nothing_is_none() -> None:
    assert spread([]) is None
    found = spread([5, 1, 9])
    assert found is not None
    assert (found.count, found.p50, found.p95, found.p99, found.largest) == (3, 5, 9, 9, 9)


@settings(deadline=None)
@given(st.lists(st.integers(-100, 200), max_size=100))
def test_a_histogram_counts_each_number_once(numbers: list[int]) -> None:
    bins = histogram(numbers, (0, 10, 100))
    assert sum(one.count for one in bins) == len(numbers)
    assert [(one.from_ms, one.to_ms) for one in bins] == [(None, 0), (0, 10), (10, 100), (100, None)]


def test_an_edge_belongs_to_the_bin_above_it() -> None:
    assert [one.count for one in histogram([-1, 0, 9, 10, 100, 101], (0, 10, 100))] == [1, 2, 1, 2]
