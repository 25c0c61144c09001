"""How numbers are spread: percentiles by nearest rank, and a histogram with fixed edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of `count` numbers (at least 1). A percentile is always one of the numbers: the nearest rank, nothing interpolated."""

    count: int
    p50: int
    p95: int
    p99: int
    largest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """How many numbers are in [`from_ms`, `to_ms`). None: no edge on this side."""

    from_ms: int | None
    to_ms: int | None
    count: int


def percentile(numbers: Sequence[int], percent: float) -> int:
    """The smallest of the numbers that at least this share of them does not exceed. Raises ValueError if there are none, or
    if `percent` is not in (0, 100]."""
    if not numbers:
        raise ValueError("a percentile of no numbers")
    if not 0 < percent <= 100:
        raise ValueError(f"percentile {percent}: above 0, at most 100")
    return sorted(numbers)[math.ceil(len(numbers) * percent / 100) - 1]


def spread(numbers: Sequence[int]) -> Spread | None:
    """None if there are no numbers."""
    if not numbers:
        return None
    at = {percent: percentile(numbers, percent) for percent in (50, 95, 99)}
    return Spread(count=len(numbers), p50=at[50], p95=at[95], p99=at[99], largest=max(numbers))


def histogram(numbers: Sequence[int], edges_ms: Sequence[int]) -> tuple[Bin, ...]:
    """One bin below the first edge, one between each two, one from the last edge on. Each number is in exactly one."""
    borders: list[int | None] = [None, *edges_ms, None]
    return tuple(
        Bin(
            from_ms=low,
            to_ms=high,
            count=sum((low is None or low <= number) and (high is None or number < high) for number in numbers),
        )
        for low, high in pairwise(borders)
    )
