"""What a run of faults showed, in a few lines of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proof.history.acts import Fault
from proof.history.verdict import Verdict
from proof.report.figures import Pair, by_kind, troubles_of
from proof.report.markup import UNPRINTABLE, counted, duration, number
from proof.report.spread import spread

FIRST = 10
"""How many violations are listed; the report has all of them."""


def print_summary(pairs: Sequence[Pair], console: Console | None = None) -> None:
    """Print the verdict, the figures, the troubles and the first violations."""
    out = console or Console()
    verdicts, troubles = [verdict for _, verdict in pairs], troubles_of(pairs)
    faults = [fault for history, _ in pairs for fault in history.noted.faults]
    violations = [violation for verdict in verdicts for violation in verdict.violations]
    due_times = sum(verdict.due_times for verdict in verdicts)
    out.print(said(len(violations), due_times, len(troubles)))
    injected = [fault for fault in faults if fault.injected and fault.struck]
    out.print(figures_table(verdicts, injected, [fault for fault in faults if not fault.injected]))
    if injected:
        out.print(faults_table(verdicts, injected))
    for trouble in troubles:
        out.print(plain(f"trouble: {trouble}"), style="red")
    for violation in violations[:FIRST]:
        out.print(plain(f"{violation.kind}: {violation.subject}: {violation.what} [{violation.evidence}]"), style="red")
    if len(violations) > FIRST:
        out.print(f"and {number(len(violations) - FIRST)} more", style="red")


def said(violations: int, due_times: int, troubles: int) -> str:
    """The verdict in one sentence."""
    if troubles and not violations:
        return f"[bold red]BROKEN[/]: no violation in {number(due_times)} due times, but {counted(troubles, 'trouble')}"
    if violations:
        return f"[bold red]BROKEN[/]: {number(violations)} violations in {number(due_times)} due times"
    if not due_times:
        return "[bold yellow]NOTHING JUDGED[/]: no due time; this shows nothing"
    return f"[bold green]HELD[/]: no violation in {number(due_times)} due times"


def figures_table(verdicts: Sequence[Verdict], faults: Sequence[Fault], starved: Sequence[Fault]) -> Table:
    """Name and number. `starved`: the machine's own standstills, which are no faults."""
    table = Table(title="what was counted", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")
    late = spread([value for verdict in verdicts for value in verdict.lateness_ms])
    took = spread([one.took_ms for verdict in verdicts for one in verdict.take_overs])
    rows = [
        ("faults", number(len(faults))),
        ("due times judged", number(sum(verdict.due_times for verdict in verdicts))),
        ("runs", number(sum(verdict.runs for verdict in verdicts))),
    ]
    counts = by_kind(violation for verdict in verdicts for violation in verdict.violations)
    rows += [(f"violations: {kind}", number(count)) for kind, count in counts.items()]
    if late:
        rows.append(("lateness p50, p99, max", ", ".join(map(duration, (late.p50, late.p99, late.largest)))))
    again = sum(count for verdict in verdicts for _, count in verdict.steps_again)
    in_flight = sum(verdict.kills_in_flight for verdict in verdicts)
    rows += [
        ("steps executed", number(sum(verdict.steps_executed for verdict in verdicts))),
        ("steps executed again, of attempts stopped on the way", f"{number(again)} of {number(in_flight)}"),
    ]
    if took:
        rows.append((f"take-overs ({took.count}) p50, p95, max", ", ".join(map(duration, (took.p50, took.p95, took.largest)))))
    rows.append(("time without a leader", duration(sum(verdict.leaderless_ms for verdict in verdicts))))
    if unmeasured := sum(verdict.unmeasured for verdict in verdicts):
        rows.append(("changes of terms not measured (a broker's clock was moved)", number(unmeasured)))
    if starved:
        still = duration(sum(one.ended_ms - one.began_ms for one in starved))
        rows.append(("machine stood still (no fault)", f"{counted(len(starved), 'time')}, {still}"))
    for name, figure in rows:
        table.add_row(name, figure)
    return table


def faults_table(verdicts: Sequence[Verdict], faults: Sequence[Fault]) -> Table:
    """By kind, the most frequent first."""
    table = Table(title="faults", title_justify="left")
    table.add_column("kind")
    for column in ("faults", "steps again", "take-overs", "p95", "longest"):
        table.add_column(column, justify="right")
    again: Counter[str] = Counter()
    for verdict in verdicts:
        for kind, count in verdict.steps_again:
            again[kind] += count
    counts = Counter(fault.kind for fault in faults)
    causes = {one.cause for verdict in verdicts for one in verdict.take_overs}
    for kind in sorted({*counts, *again, *causes}, key=lambda kind: (-counts[kind], kind)):
        took = spread([one.took_ms for verdict in verdicts for one in verdict.take_overs if one.cause == kind])
        spans = (number(took.count), duration(took.p95), duration(took.largest)) if took else ("0", "", "")
        table.add_row(plain(kind), number(counts[kind]), number(again[kind]), *spans)
    return table


def plain(text: str) -> str:
    """Text that can neither style the terminal nor move its cursor."""
    return escape(UNPRINTABLE.sub("\ufffd", text))
