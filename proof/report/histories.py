"""The section of the page that shows each history: its timeline as pictures, and the tables that say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from proof.history.acts import Fault
from proof.report.figures import Figures, Pair
from proof.report.markup import Markup, clock, counted, duration, element, joined, number, since, table
from proof.report.picture import COLOURS, picture
from proof.report.sections import MAX_LISTED, folded, how, left_out, section
from proof.report.setting import Setting
from proof.report.strip import strips, thinned
from proof.report.timeline import STATES, Timeline, timeline

MAX_BARS: Final = 60_000
"""Bars in the whole page: about 25 bytes each."""
MAX_STRIPS: Final = 24
"""Strips in the whole page, but for one that each history has."""
STRIPS: Final = 12
"""Of one history at most."""
MAX_PICTURES: Final = 40
"""Histories with a picture: the ones with violations first."""


def timelines(pairs: Sequence[Pair], sums: Figures, setting: Setting) -> Markup:
    """Each history in the order given."""
    numbers = {kind.kind: place for place, kind in enumerate(sums.kinds, 1)}
    by_need = sorted(range(len(pairs)), key=lambda place: (-len(pairs[place][1].violations), place))
    pictured = set(by_need[:MAX_PICTURES])
    share = max(1, len(pictured))
    parts = [
        history(place, pairs[place], numbers, setting, min(STRIPS, max(1, MAX_STRIPS // share)), MAX_BARS // share)
        for place in sorted(pictured)
    ]
    more = len(pairs) - len(pictured)
    note = element("p", f"{number(more)} histories have no picture here; report.json has their figures.", class_="note")
    return section(
        "Timelines",
        how(
            "A bar is a run: from its due time (a manual run: from its first record) to the append time of the record of "
            "its end. A bar of the row leader is a term: from its barrier's append time to its end, with the term's number; "
            "the low bars in it are spells without a leader, as in the take-overs above. Faults stand at the top by the "
            "harness's clock, each with the number of its kind, and tint all rows while they are on. A grey band is time in "
            "which the machine gave no process a turn, as the harness's own pulse showed: no fault. A triangle is a violation."
        ),
        legend(numbers),
        *parts,
        note if more else Markup(""),
    )


def legend(numbers: Mapping[str, int]) -> Markup:
    """States and kinds of faults."""
    states = [
        element("li", swatch(f"s-{state.replace(' ', '-')}"), "not ended" if state == "open" else state) for state in STATES
    ]
    kinds = [element("li", swatch(f"f{(place - 1) % COLOURS}"), f"{place} {kind}") for kind, place in numbers.items()]
    others = [element("li", swatch("gap"), "no leader"), element("li", swatch("starved"), "machine stood still"),
              element("li", swatch("wrong", "M0 8l5 -8l5 8z"), "violation")]  # fmt: skip
    return element("ul", *states, *others, *kinds, class_="legend")


def swatch(name: str, shape: str = "M0 0h10v8h-10z") -> Markup:
    """A small shape in a colour, by default a box."""
    return element("svg", element("path", d=shape, class_=name), viewBox="0 0 10 8", aria_hidden="true")


def history(
    place: int, pair: Pair, numbers: Mapping[str, int], setting: Setting, at_most_strips: int, at_most_bars: int
) -> Markup:
    """One: what it is, how to do it again, its strips and tables."""
    told, verdict = pair
    line = timeline(told, verdict)
    cut = strips(line, at_most_strips)
    drawings = thinned(line, cut, at_most_bars)
    pictures = [
        picture(line, strip, drawing, numbers, f"h{place}-{part}")
        for part, (strip, drawing) in enumerate(zip(cut, drawings, strict=True))
    ]
    hidden = sum(drawing.left_out for drawing in drawings)
    notes = []
    if hidden:
        notes.append(f"{number(hidden)} bars are not drawn, because one of the same row and state stands in the same place.")
    if line.starved:
        still = duration(sum(to_ms - from_ms for from_ms, to_ms in line.starved))
        notes.append(f"The machine gave no process a turn {counted(len(line.starved), 'time')}, for {still} altogether.")
    if line.unread:
        notes.append(f"Not in the picture, since undecodable: {counted(line.unread, 'record')} of the ledger.")
    if len(verdict.violations) > len(line.marks):
        notes.append(
            f"{number(len(verdict.violations) - len(line.marks))} violations name no due time and have no triangle; see above."
        )
    return joined([
        element("h3", f"{told.title}, seed {told.seed}"),
        element(
            "p",
            f"Began {clock(told.began_ms)}; due times judged for {duration(told.judged_ms - told.began_ms)}: "
            f"{number(verdict.due_times)}; {counted(len(line.faults), 'fault')}; "
            f"{counted(len(verdict.violations), 'violation')}. Expected of it: lateness at most "
            f"{duration(told.bounds.lateness_ms)}, clocks at most {duration(told.bounds.skew_ms)} apart; session time-out "
            f"{duration(told.bounds.session_ms)}, worker time-out {duration(told.bounds.worker_timeout_ms)}. Again: ",
            element("code", setting.command(told.seed)),
        ),
        *pictures,
        *(element("p", note, class_="note") for note in notes),
        jobs_table(line),
        terms_table(line),
        faults_table(line),
    ])  # fmt: skip


def jobs_table(line: Timeline) -> Markup:
    """Runs by row and state."""
    counts = Counter((bar.row, bar.state) for bar in line.bars)
    rows = [
        (name, *(number(counts[row, state]) for state in STATES), number(sum(counts[row, state] for state in STATES)))
        for row, name in enumerate(line.rows)
    ]
    columns = ("job", *("not ended" if state == "open" else state for state in STATES), "all")
    return folded("Runs by job, as a table", table("Runs by job", columns, rows))


def terms_table(line: Timeline) -> Markup:
    """Terms in order."""
    began = line.began_ms
    rows = [
        (str(term.term), term.process, since(term.from_ms - began), duration(term.to_ms - term.from_ms)) for term in line.terms
    ]
    shown = table("Terms", ("term", "process", "barrier at", "lasted"), rows[:MAX_LISTED], numbers=False)
    return folded(f"{counted(len(rows), 'term')}, as a table", joined([shown, left_out(len(rows), min(len(rows), MAX_LISTED))]))


def faults_table(line: Timeline) -> Markup:
    """Faults in order."""
    rows = [fault_row(fault, line.began_ms) for fault in line.faults[: 2 * MAX_LISTED]]
    columns = ("at", "kind", "target", "lasted", "clock moved", "detail")
    shown = table("Faults", columns, rows, numbers=False)
    return folded(f"{counted(len(line.faults), 'fault')}, as a table", joined([shown, left_out(len(line.faults), len(rows))]))


def fault_row(fault: Fault, began_ms: int) -> tuple[str, ...]:
    """Its cells."""
    lasted = duration(fault.ended_ms - fault.began_ms) if fault.ended_ms > fault.began_ms else "an instant"
    moved = duration(fault.shift_ms) if fault.shift_ms else ""
    return since(fault.began_ms - began_ms), fault.kind, fault.target, lasted, moved, fault.detail[:300]
