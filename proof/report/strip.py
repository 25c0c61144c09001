"""The geometry of the timeline's picture: a history cut into strips of equal length, its bars thinned out to what can
be told apart.

All lengths are units of the picture's own coordinates, of which a strip is WIDTH wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proof.history.acts import Fault
from proof.report.timeline import Bar, Timeline

WIDTH: Final = 1_200.0
GUTTER: Final = 150.0
"""Where the rows' names stand."""
PLOT: Final = WIDTH - GUTTER
AXIS: Final = 18.0
LANE: Final = 9.0
ROW: Final = 15.0
LANES: Final = 6
LEAST: Final = 1.0
"""Nothing is drawn narrower."""
FINEST: Final = 0.5
"""Bars that begin closer to each other can't be told apart."""
SHORTEST_MS: Final = 60_000
"""A history is not cut into shorter strips."""
STEPS_MS: Final = (
    1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000,
    21_600_000, 43_200_000, 86_400_000, 604_800_000, 2_592_000_000,
)  # fmt: skip
"""Lengths of strips and distances of marks on their axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A part of the timeline: [from_ms, to_ms) over the whole width of the plot."""

    from_ms: int
    to_ms: int

    def x(self, at_ms: int) -> float:
        """Where this time is; outside of the strip: its border."""
        inside = min(max(at_ms, self.from_ms), self.to_ms)
        return GUTTER + PLOT * (inside - self.from_ms) / (self.to_ms - self.from_ms)

    def span(self, from_ms: int, to_ms: int) -> tuple[float, float] | None:
        """(x, width) of what is in the strip, at least LEAST wide and not beyond the right border; None: nothing is."""
        if to_ms < self.from_ms or from_ms >= self.to_ms or (to_ms == self.from_ms and from_ms < to_ms):
            return None
        x = self.x(from_ms)
        width = max(LEAST, self.x(to_ms) - x)
        return min(x, WIDTH - width), width

    def holds(self, at_ms: int) -> bool:
        """Whether this instant is in it."""
        return self.from_ms <= at_ms < self.to_ms

    @property
    def marks_ms(self) -> range:
        """Where the axis has a mark: at most 12, whole steps from the strip's beginning."""
        step = length_of(self.to_ms - self.from_ms, 12)
        return range(self.from_ms, self.to_ms, step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Bars of one strip: rectangles (x, width) by (row, state); `left_out`: bars that stand where another one of theirs does."""

    rectangles: dict[tuple[int, str], list[tuple[float, float]]]
    left_out: int

    @property
    def count(self) -> int:
        """How many are drawn."""
        return sum(len(some) for some in self.rectangles.values())


def length_of(span_ms: int, parts: int) -> int:
    """The shortest of STEPS_MS that covers the span in at most this many parts."""
    return next((step for step in STEPS_MS if step * parts >= span_ms), -(-span_ms // parts))


def strips(timeline: Timeline, at_most: int) -> list[Strip]:
    """Covering it without a gap, in order."""
    span_ms = timeline.ended_ms - timeline.began_ms
    length = max(length_of(span_ms, at_most), min(SHORTEST_MS, length_of(span_ms, 1)))
    starts = range(timeline.began_ms, timeline.ended_ms, length)
    return [Strip(from_ms=start, to_ms=start + length) for start in starts]


Placed = tuple[int, str, float, float]
"""A bar in a strip: row, state, x, width."""


def placed(strip: Strip, bars: Sequence[Bar]) -> list[Placed]:
    """The bars that are in the strip."""
    spans = ((bar, strip.span(bar.from_ms, bar.to_ms)) for bar in bars)
    return [(bar.row, bar.state, *span) for bar, span in spans if span is not None]


def drawn(bars: Sequence[Placed], grain: float) -> Drawn:
    """Of several bars of one row and state that begin within the same `grain` of width, the widest."""
    widest: dict[tuple[int, str, int], tuple[float, float]] = {}
    for row, state, x, width in bars:
        place = (row, state, int(x / grain))
        if place not in widest or width > widest[place][1]:
            widest[place] = (x, width)
    rectangles: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for (row, state, _), span in sorted(widest.items()):
        rectangles.setdefault((row, state), []).append(span)
    return Drawn(rectangles=rectangles, left_out=len(bars) - len(widest))


def thinned(timeline: Timeline, cut: Sequence[Strip], at_most: int) -> list[Drawn]:
    """Each strip's bars, with the finest grain at which there are no more than this altogether."""
    grain = FINEST
    bars = [placed(strip, timeline.bars) for strip in cut]
    while True:
        made = [drawn(some, grain) for some in bars]
        if sum(one.count for one in made) <= at_most or grain > PLOT:
            return made
        grain *= 2


def lanes(strip: Strip, faults: Sequence[Fault]) -> list[tuple[int, float, float, Fault]]:
    """(lane, x, width, fault): faults that overlap stand in different lanes, while there are LANES; then in the one that ends
    first."""
    free = [0.0] * LANES
    found = []
    for fault in faults:
        span = strip.span(fault.began_ms, fault.ended_ms)
        if span is None:
            continue
        x, width = span
        lane = next((number for number, end in enumerate(free) if end <= x), free.index(min(free)))
        free[lane] = max(free[lane], x + width)
        found.append((lane, x, width, fault))
    return found
