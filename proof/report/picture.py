"""The timeline as SVG: faults as bands through all rows, a row of terms, a row for each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from proof.history.acts import Fault
from proof.report.markup import Markup, clock, duration, element, joined, since
from proof.report.strip import AXIS, GUTTER, LANE, LANES, PLOT, ROW, WIDTH, Drawn, Strip, lanes
from proof.report.timeline import OPEN, STATES, SUMMED, Timeline

HEIGHTS: Final = {"succeeded": 0.45, "failed": 0.9, "cancelled": 0.7, "skipped": 0.25, OPEN: 0.6, SUMMED: 0.15}
"""Of a row, so that a state shows without its colour."""
COLOURS: Final = 8
"""How many colours of faults the style sheet has; each kind has a number too."""
TERM_LABEL: Final = 34.0
"""From this width on a term's number is written into it."""
SHIFT: Final = 7.0
"""A letter's height, for text that stands on its baseline."""


def picture(timeline: Timeline, strip: Strip, bars: Drawn, numbers: Mapping[str, int], name: str) -> Markup:
    """One strip. `numbers`: each kind of fault's number in the legend. `name`: unique in the page."""
    top_terms = AXIS + LANE * LANES + 4
    top_jobs = top_terms + ROW + 4
    height = top_jobs + ROW * len(timeline.rows) + 4
    placed = lanes(strip, timeline.faults)
    began = timeline.began_ms
    title = f"From {since(strip.from_ms - began)} to {since(min(strip.to_ms, timeline.ended_ms) - began)}"
    runs = bars.count + bars.left_out
    told = f"{runs} runs in {len(timeline.rows)} rows, {len(placed)} faults, beginning at {clock(strip.from_ms)}"
    parts = [
        element("title", title, id=f"{name}-t"),
        element("desc", told, id=f"{name}-d"),
        axis(strip, began, height),
        standstills(timeline, strip, height),
        bands(placed, height),
        joined([fault_mark(lane, x, width, fault, numbers) for lane, x, width, fault in placed]),
        fault_numbers(placed, numbers),
        row_name("faults", AXIS + LANE),
        row_name("leader", top_terms),
        leaders(timeline, strip, top_terms),
    ]
    for number, row in enumerate(timeline.rows):
        top = top_jobs + ROW * number
        parts.append(row_name(row, top))
        parts.append(element("path", d=f"M{GUTTER:g} {top + ROW:g}h{PLOT:g}", class_="rule"))
        parts.extend(
            element("path", d=rectangles(bars.rectangles[number, state], top, state), class_=f"s-{state.replace(' ', '-')}")
            for state in STATES
            if (number, state) in bars.rectangles
        )
    for mark in timeline.marks:
        if strip.holds(mark.at_ms):
            x, y = strip.x(mark.at_ms), top_jobs + ROW * mark.row
            parts.append(element("path", element("title", mark.what), d=f"M{x:.1f} {y + 8:.1f}l-5 -8h10z", class_="wrong"))
    drawing = element(
        "svg", *parts, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_labelledby=f"{name}-t {name}-d", class_="strip",
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip
    return element("div", drawing, class_="wide", tabindex="0", role="region", aria_label=title)


def rectangles(spans: Sequence[tuple[float, float]], top: float, state: str) -> str:
    """One path for all: far shorter than an element each. They stand on the row's lower edge."""
    height = (ROW - 2) * HEIGHTS[state]
    y = top + ROW - 1 - height
    return "".join(f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z" for x, width in spans)


def row_name(name: str, top: float) -> Markup:
    """Shortened to what the gutter holds; the whole name shows on pointing."""
    short = name if len(name) <= 22 else f"{name[:21]}…"
    return element("text", short, element("title", name), x=f"{GUTTER - 6:g}", y=f"{top + ROW - 4:g}", text_anchor="end")


def axis(strip: Strip, began_ms: int, height: float) -> Markup:
    """Marks with the time since the beginning of the history."""
    marks = strip.marks_ms
    lines = "".join(f"M{strip.x(at):.1f} {AXIS - 4:g}V{height:g}" for at in marks)
    texts = [
        element("text", since(at - began_ms).removesuffix(".000"), x=f"{strip.x(at):.1f}", y=f"{AXIS - 6:g}", class_="when")
        for at in marks
    ]
    return joined([element("path", d=lines, class_="rule"), *texts])


def bands(placed: Sequence[tuple[int, float, float, Fault]], height: float) -> Markup:
    """All in one path, so that where several faults overlap the tint is the same."""
    top = AXIS
    d = "".join(f"M{x:.1f} {top:g}h{width:.1f}V{height:g}h-{width:.1f}z" for _, x, width, _ in placed)
    return element("path", d=d, class_="band") if d else Markup("")


def standstills(timeline: Timeline, strip: Strip, height: float) -> Markup:
    """Bands of their own colour: what came late in them is the machine's doing."""
    parts = []
    for from_ms, to_ms in timeline.starved:
        span = strip.span(from_ms, to_ms)
        if span is not None:
            what = f"the machine gave no process a turn for {duration(to_ms - from_ms)}: no fault"
            parts.append(
                element("rect", element("title", what), x=f"{span[0]:.1f}", y=f"{AXIS:g}", width=f"{span[1]:.1f}",
                        height=f"{height - AXIS:g}", class_="starved")
            )  # fmt: skip
    return joined(parts)


def fault_mark(lane: int, x: float, width: float, fault: Fault, numbers: Mapping[str, int]) -> Markup:
    """The fault in its lane, with its words on pointing."""
    length = duration(fault.ended_ms - fault.began_ms) if fault.ended_ms > fault.began_ms else "an instant"
    what = f"{fault.kind} {fault.target}, {length}" + (f": {fault.detail}" if fault.detail else "")
    return element(
        "rect", element("title", what[:300]), x=f"{x:.1f}", y=f"{AXIS + lane * LANE:.1f}", width=f"{width:.1f}",
        height=f"{LANE - 1:g}", class_=f"f{(numbers[fault.kind] - 1) % COLOURS}",
    )  # fmt: skip


def fault_numbers(placed: Sequence[tuple[int, float, float, Fault]], numbers: Mapping[str, int]) -> Markup:
    """The kind's number beside each fault, where there is room before the next one of its lane."""
    texts = []
    following = {id(one): other for one, other in successors(placed)}
    for one in placed:
        lane, x, width, fault = one
        text = str(numbers[fault.kind])
        at = x + 1 if width >= 6 * len(text) + 2 else x + width + 1
        other = following.get(id(one))
        room = (other[1] if other else WIDTH) - at
        if room >= 6 * len(text):
            inside = at < x + width
            texts.append(
                element("text", text, x=f"{at:.1f}", y=f"{AXIS + lane * LANE + SHIFT:.1f}", class_="in" if inside else "no")
            )
    return joined(texts)


def successors(
    placed: Sequence[tuple[int, float, float, Fault]],
) -> list[tuple[tuple[int, float, float, Fault], tuple[int, float, float, Fault]]]:
    """Pairs of faults that follow each other in a lane."""
    last: dict[int, tuple[int, float, float, Fault]] = {}
    pairs = []
    for one in placed:
        if one[0] in last:
            pairs.append((last[one[0]], one))
        last[one[0]] = one
    return pairs


def leaders(timeline: Timeline, strip: Strip, top: float) -> Markup:
    """Terms in two shades in turn, spells without a leader hatched by their own colour and lower."""
    parts = []
    for number, term in enumerate(timeline.terms):
        span = strip.span(term.from_ms, term.to_ms)
        if span is None:
            continue
        x, width = span
        what = f"term {term.term}, {term.process}, {duration(term.to_ms - term.from_ms)}"
        box = element("rect", element("title", what), x=f"{x:.1f}", y=f"{top + 1:g}", width=f"{width:.1f}", height=f"{ROW - 2:g}",
                      class_=f"term{number % 2}")  # fmt: skip
        parts.append(box)
        if width >= TERM_LABEL:
            parts.append(element("text", str(term.term), x=f"{x + 3:.1f}", y=f"{top + ROW - 4:g}", class_="in"))
    for from_ms, to_ms in timeline.gaps:
        span = strip.span(from_ms, to_ms)
        if span is not None:
            what = f"no leader for {duration(to_ms - from_ms)}"
            parts.append(
                element("rect", element("title", what), x=f"{span[0]:.1f}", y=f"{top + ROW - 6:g}", width=f"{span[1]:.1f}",
                        height="5", class_="gap")
            )  # fmt: skip
    return joined(parts)
