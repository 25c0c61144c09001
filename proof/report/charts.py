"""Small pictures for numbers: horizontal bars, and dots along a line of time. Each stands beside a table that says the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from proof.report.figures import TakeOvers
from proof.report.markup import Markup, duration, element, joined, number

WIDTH: Final = 560.0
LABEL: Final = 190.0
VALUE: Final = 60.0
LINE: Final = 18.0
MAX_DOTS: Final = 600
"""A line has at most this many dots: of those that fall on the same place one is drawn."""


def bars(name: str, title: str, rows: Sequence[tuple[str, int]]) -> Markup:
    """A bar a row, its length in proportion to its number; the number is written beside it."""
    largest = max((value for _, value in rows), default=0) or 1
    room = WIDTH - LABEL - VALUE
    parts = []
    for place, (label, value) in enumerate(rows):
        y = place * LINE
        width = room * value / largest
        parts.append(element("text", short(label), element("title", label), x=LABEL - 6, y=y + 13, text_anchor="end"))
        if value:
            parts.append(element("rect", x=LABEL, y=y + 3, width=f"{max(1.0, width):.1f}", height=LINE - 6, class_="bar"))
        parts.append(element("text", number(value), x=f"{LABEL + width + 5:.1f}", y=y + 13))
    return drawing(name, title, "; ".join(f"{label}: {value}" for label, value in rows), parts, len(rows) * LINE + 4)


def dots(name: str, title: str, groups: Sequence[TakeOvers]) -> Markup:
    """A line a group: a dot for each take-over, a stroke at the time that should not be exceeded. The scale is linear from 0."""
    largest = max((max(group.spread.largest, group.aim_ms) for group in groups), default=1)
    step = 10 ** math.floor(math.log10(max(largest, 1)))
    room = WIDTH - LABEL - 20

    def x(took_ms: int) -> float:
        return LABEL + room * took_ms / largest

    top = 16.0
    height = top + len(groups) * LINE + 4
    parts = []
    for at in range(0, largest + 1, step):
        parts.append(element("path", d=f"M{x(at):.1f} {top:g}V{height:g}", class_="rule"))
        parts.append(element("text", duration(at), x=f"{x(at):.1f}", y="11", class_="when", text_anchor="middle"))
    for place, group in enumerate(groups):
        y = top + place * LINE
        label = cause_of(group)
        parts.append(element("text", short(label), element("title", label), x=LABEL - 6, y=y + 13, text_anchor="end"))
        parts.append(element("path", d=f"M{x(group.aim_ms):.1f} {y + 2:g}v{LINE - 4:g}", class_="aim"))
        places = sorted({round(x(took_ms) * 2) for took_ms in group.took_ms})
        every = -(-len(places) // MAX_DOTS)
        kept = [*places[::every], places[-1]]
        middle = f"{y + LINE / 2:g}"
        parts.append(joined([element("circle", cx=f"{at / 2:.1f}", cy=middle, r="2.5", class_="dot") for at in kept]))
    told = "; ".join(
        f"{cause_of(group)}: {group.spread.count} take-overs, longest {duration(group.spread.largest)}" for group in groups
    )
    return drawing(name, title, told, parts, height)


def cause_of(group: TakeOvers) -> str:
    """Cause and session time-out."""
    return f"{group.cause}, session {group.session_ms / 1000:g} s"


def short(label: str) -> str:
    """What fits beside the bars."""
    return label if len(label) <= 30 else f"{label[:29]}…"


def drawing(name: str, title: str, told: str, parts: Sequence[Markup], height: float) -> Markup:
    """The picture, with its title and its words for those who can't see it."""
    return element(
        "svg", element("title", title, id=f"{name}-t"), element("desc", told, id=f"{name}-d"), *parts,
        viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_labelledby=f"{name}-t {name}-d", class_="chart",
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip
