"""The sections of the page that say numbers. Each says how its numbers were counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proof.history.verdict import Kind
from proof.report.charts import bars, cause_of, dots
from proof.report.figures import Figures, Found, Outlier
from proof.report.markup import Markup, counted, duration, element, joined, number, since, table
from proof.report.spread import Bin

MAX_LISTED: Final = 500
"""Violations, outliers and faults in one table; report.json has all of them."""

UNFOLDED: Final = 20
"""A longer table of outliers is folded away."""

COUNTED: Final = {
    Kind.MISSED: "due times with neither a run record nor a summary that covers them, and runs that nothing explains",
    Kind.DOUBLED: "more run records, grants of an attempt or effects than the promise allows",
    Kind.EARLY: "records or effects before their due time, beyond the stated difference of clocks",
    Kind.LATE: "first records later than the stated bound after the due time, or after the faults that stood in the way",
    Kind.UNEXPLAINED: "records, ends or effects that no rule accounts for",
    Kind.LOST: "steps, produced records or acknowledged inputs that are gone",
    Kind.ORDER: "terms that do not grow, and records that follow one they may not follow",
    Kind.LIMIT: "overlap policies or limits exceeded",
}


def how(text: str) -> Markup:
    """How a section's numbers were counted."""
    return element("p", element("strong", "How it was counted. "), text, class_="how")


def section(title: str, *content: Markup) -> Markup:
    """With its heading."""
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def pair(picture: Markup, beside: Markup) -> Markup:
    """A picture and the table that says the same."""
    return element("div", picture, beside, class_="pair")


def headline(sums: Figures) -> Markup:
    """The verdict in a sentence, and the figures that it rests on."""
    if sums.violations:
        words = element("strong", f"The promise was broken: {counted(len(sums.violations), 'violation')}.")
    elif sums.troubles:
        words = element("strong", f"The run is broken: no violation, but {counted(len(sums.troubles), 'trouble')}.")
    elif sums.empty:
        words = element("strong", "Nothing was judged: this report shows nothing.")
    else:
        words = element("strong", "The promise held: no violation.")
    told = (
        f" {counted(sums.faults, 'fault')}, {counted(sums.due_times, 'due time')} judged in "
        f"{counted(sums.histories, 'history', 'histories')} of {duration(sums.judged_ms)} altogether."
    )
    tiles = [("faults", sums.faults, False), ("due times", sums.due_times, False)]
    tiles += [(kind.value, count, count > 0) for kind, count in sums.violations_by_kind.items()]
    shown = [
        element("li", element("b", number(count)), name, class_="broken" if broken else None) for name, count, broken in tiles
    ]
    rows = [("faults", number(sums.faults), "injected and noted by the harness, each with its time")]
    if sums.no_effect:
        rows.append(("struck nothing", number(sums.no_effect), "faults that were tried and took no effect; they count as none"))
    rows.append(
        ("due times", number(sums.due_times), "computed by the checker from the published jobs with its own schedule evaluation")
    )
    rows.append(("runs", number(sums.runs), "keys of run records in the committed ledger"))
    rows += [(kind.value, number(count), COUNTED[kind]) for kind, count in sums.violations_by_kind.items()]
    rows += [(f"runs {state}", number(count), "by the last record of the run") for state, count in sums.runs_by_state.items()]
    return joined([
        element("div", words, told, class_="verdict" if sums.holds else "verdict broken", role="status"),
        element("ul", *shown, class_="tiles"),
        how(
            "A checker that shares no code with the scheduler but the record schemas read the topics with a read-committed "
            "reader, computed what had to happen from the published jobs, and compared it with the log and with what the "
            "handlers themselves noted outside Kafka. It does not trust what the scheduler says of itself. Each kind of "
            "violation is a number of findings of the checker, not of due times."
        ),
        table("The figures", ("figure", "number", "what it counts"), rows, numbers=False),
    ])  # fmt: skip


def troubles(sums: Figures) -> Markup:
    """What is wrong beside the records."""
    text = (
        "What the harness found wrong beside the records: ends of processes that no fault explains, tracebacks and jobs set "
        "aside in the logs of the processes, barriers out of the order of generations, runs that did not end in time."
    )
    return lines_of("Troubles", text, sums.troubles) if sums.troubles else Markup("")


def notes(sums: Figures) -> Markup:
    """What is told and breaks nothing."""
    text = "What the harness noted and a fault explains, such as a process that its watchdog ended while a link was cut."
    return lines_of("Notes", text, sums.notes) if sums.notes else Markup("")


def lines_of(title: str, text: str, lines: Sequence[str]) -> Markup:
    """A section of lines."""
    listed = lines[:MAX_LISTED]
    return section(
        title, how(text), element("ul", *(element("li", line) for line in listed)), left_out(len(lines), len(listed))
    )  # fmt: skip


def violations(sums: Figures) -> Markup:
    """Each with its evidence."""
    if not sums.violations:
        return section("Violations", element("p", "None was found."))
    listed = sums.violations[:MAX_LISTED]
    rows = [violation_row(found) for found in listed]
    return section(
        "Violations",
        how("Every finding of the checker. The evidence names topic, partition and offset, or the harness's note."),
        table("Violations", ("kind", "subject", "what", "evidence", "history"), rows, numbers=False),
        left_out(len(sums.violations), len(listed)),
    )


def violation_row(found: Found) -> tuple[str, ...]:
    """Its cells."""
    one = found.violation
    return one.kind.value, one.subject, one.what, one.evidence or "none given", f"{found.title}, seed {found.seed}"


def left_out(count: int, shown: int) -> Markup:
    """What the table does not list."""
    return element("p", f"{number(count - shown)} more are in report.json.", class_="note") if count > shown else Markup("")


def faults(sums: Figures) -> Markup:
    """By kind."""
    if not sums.kinds:
        return section("Faults", element("p", "None was injected."))
    rows = [(kind.kind, number(kind.count), number(kind.no_effect), duration(kind.total_ms)) for kind in sums.kinds]
    rows.append(("all", number(sums.faults), number(sums.no_effect), duration(sum(kind.total_ms for kind in sums.kinds))))
    return section(
        "Faults",
        how(
            "One for each fault that the harness noted when it did it. A kill is an instant and has no length; the length of the "
            "others is from their beginning to their end, summed, also where faults overlap. What was tried and struck nothing "
            "(a place in the code that was not reached in time, a request that the broker refused) is no fault: it is counted "
            "apart and excuses nothing."
        ),
        starved(sums),
        pair(
            bars("faults", "Faults by kind", [(kind.kind, kind.count) for kind in sums.kinds]),
            table("Faults by kind", ("kind", "faults", "struck nothing", "summed length"), rows),
        ),
    )


def starved(sums: Figures) -> Markup:
    """What the machine itself did meanwhile."""
    if not sums.starved:
        return Markup("")
    told = (
        f"Beside the faults, the machine gave no process a turn {counted(sums.starved, 'time')}, for "
        f"{duration(sums.starved_ms)} altogether: that is nobody's doing and no fault, but what it delayed is late."
    )
    return element("p", told, class_="note")


def lateness(sums: Figures) -> Markup:
    """Histogram and percentiles."""
    late = sums.lateness
    if late is None:
        return section("Lateness", element("p", "No run was measured."))
    rows = [(edges(one), number(one.count), f"{one.count / late.count:.2%}") for one in sums.lateness_bins]
    bounds = ", ".join(duration(bound) for bound in sums.lateness_bounds_ms)
    spans = [("measured", number(late.count))]
    spans += [(name, duration(value)) for name, value in
              (("p50", late.p50), ("p95", late.p95), ("p99", late.p99), ("longest", late.largest))]  # fmt: skip
    return section(
        "Lateness",
        how(
            "The append time of a run's first record in the ledger, by the broker's clock, less its due time; of each run "
            "that was not offered ahead of time, faults or not. A percentile is the nearest rank: one of the measured "
            f"numbers. A run is late (a violation) when it exceeds the bound of its history ({bounds}) after its due time, "
            "or after the end of the faults that stood in the way."
        ),
        pair(
            bars("lateness", "Runs by lateness", [(edges(one), one.count) for one in sums.lateness_bins]),
            joined([
                table("Lateness", ("figure", "number"), spans),
                table("Runs by lateness", ("lateness", "runs", "share"), rows),
            ]),
        ),
    )  # fmt: skip


def edges(one: Bin) -> str:
    """`10 ms – 20 ms`, the second not included."""
    if one.from_ms is None:
        return f"below {duration(one.to_ms or 0)}"
    if one.to_ms is None:
        return f"{duration(one.from_ms)} or more"
    return f"{duration(one.from_ms)} – {duration(one.to_ms)}"


def steps(sums: Figures) -> Markup:
    """Steps that were executed again."""
    rows = [
        (kind.kind, number(kind.count), number(kind.again), f"{kind.again / kind.count:.3f}" if kind.count else "no fault")
        for kind in sums.kinds
    ]
    return section(
        "Steps executed again",
        how(
            "A step's effect is noted by the handler's own code in one atomic append outside Kafka. A second effect of the "
            "same step of the same run counts as executed again, and is put down to the fault that ended the first attempt. "
            "It is allowed only for the step in flight when its worker was killed or fenced, with the same idempotency key: "
            "at most one for each."
        ),
        element(
            "p",
            f"{counted(sums.steps_executed, 'effect')} of steps; {counted(sums.steps_again, 'step')} executed again; "
            f"{counted(sums.kills_in_flight, 'attempt')} stopped on the way, each with at most one step in flight.",
        ),
        pair(
            bars("again", "Steps executed again, by kind of fault", [(kind.kind, kind.again) for kind in sums.kinds]),
            table("Steps executed again", ("kind of fault", "faults", "steps again", "per fault"), rows),
        ),
    )


def take_overs(sums: Figures) -> Markup:
    """How long each took, and how long nobody led."""
    nobody = element("p", "Time without a leader: ", element("strong", duration(sums.leaderless_ms)), share(sums))
    told = how(
        "A take-over lasts from the fault that ended a leader, by the harness's clock, to the committed barrier of the next one, "
        "by the broker's. Time without a leader is the sum over all changes of terms, as the checker found it, from the fault or "
        "the old term's last record, whichever is later. The time that should not be exceeded is the session time-out and a "
        "quarter of it (at least 1 s), or 1.5 s where the leader was asked to end. It is promised of leaders that are killed or "
        "asked to end; the others stand beside it for comparison: a leader that is stuck is replaced only after "
        "max.poll.interval, and nobody can take over while the broker is away. A take-over above it is listed with every fault "
        "that was on meanwhile; it is not a violation."
    )
    if not sums.take_overs:
        return section("Take-overs", told, element("p", "None was measured." if sums.unmeasured else "None happened."), nobody)
    columns = ("after", "take-overs", "p50", "p95", "p99", "longest", "should not exceed", "above")
    rows = [
        (
            cause_of(group), number(group.spread.count), duration(group.spread.p50), duration(group.spread.p95),
            duration(group.spread.p99), duration(group.spread.largest), duration(group.aim_ms), number(len(group.outliers)),
        )
        for group in sums.take_overs
    ]  # fmt: skip
    outliers = sorted((one for group in sums.take_overs for one in group.outliers), key=lambda one: -one.took_ms)
    return section(
        "Take-overs",
        told,
        nobody,
        dots("take-overs", "Take-over times by kind of fault; the stroke: what should not be exceeded", sums.take_overs),
        table("Take-over times", columns, rows),
        listed(outliers[:MAX_LISTED]),
        left_out(len(outliers), min(len(outliers), MAX_LISTED)),
    )


def listed(outliers: Sequence[Outlier]) -> Markup:
    """Each outlier; many of them folded away."""
    if not outliers:
        return element("p", "No take-over took longer than it should.")
    title = "Take-overs above the time that should not be exceeded"
    columns = ("after", "took", "should not exceed", "at", "history", "faults meanwhile")
    made = table(title, columns, [outlier_row(outlier) for outlier in outliers], numbers=False)
    return made if len(outliers) <= UNFOLDED else folded(f"{title}: {number(len(outliers))}, the longest first", made)


def folded(title: str, content: Markup) -> Markup:
    """Opened by who wants it, and on paper."""
    return element("details", element("summary", title), content)


def share(sums: Figures) -> str:
    """Of the judged time, where all of it was measured."""
    if sums.unmeasured:
        changes = f"{counted(sums.unmeasured, 'change')} of terms"
        return f", without {changes} that were not measured, since a broker's clock was moved."
    return f", {sums.leaderless_ms / sums.judged_ms:.2%} of the judged time." if sums.judged_ms else "."


def outlier_row(outlier: Outlier) -> Sequence[str]:
    """Its cells."""
    return (
        outlier.cause, duration(outlier.took_ms), duration(outlier.aim_ms), since(outlier.since_began_ms),
        f"{outlier.title}, seed {outlier.seed}", "; ".join(outlier.meanwhile) or "none",
    )  # fmt: skip
