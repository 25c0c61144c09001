"""`report.json`: the report for programs. Version 1; a field may be added, none changes its meaning without a new version.

    schema          "dueline.proof.report"
    version         1
    made_ms         when the report was made, milliseconds since the epoch, like every time here that ends in `_ms`
    holds           no violation and no trouble, and at least one judged due time
    troubles        what is wrong beside the records of the histories, a line each
    notes           what is told beside them and breaks nothing, a line each
    setting         {replay, machine, versions: {name: version}}; `{seed}` in `replay` stands for a history's seed
    figures         sums over all histories:
        histories, judged_ms, faults, due_times, runs, runs_by_state: {state: n}
        no_effect: faults that were tried and took no effect, which are none of `faults`
        starved, starved_ms: how often, and how long altogether, the machine gave no process a turn; no fault, and counted as none
        violations: {kind: n}, each kind of `proof.history.verdict.Kind`, zeros included
        lateness: {count, p50_ms, p95_ms, p99_ms, max_ms} or null; nearest rank
        lateness_histogram: [{from_ms, to_ms, n}], [from, to), null where there is no edge
        lateness_bounds_ms: the bounds of the histories, each once
        steps_executed, steps_again, kills_in_flight, leaderless_ms
        unmeasured: changes of terms beside which a broker's clock was moved, in neither `leaderless_ms` nor `take_overs`
    faults_by_kind  [{kind, n, no_effect, total_ms, steps_again}]
    take_overs      [{cause, session_ms, aim_ms, count, p50_ms, p95_ms, p99_ms, max_ms, took_ms: [..], outliers: [
                      {title, seed, since_began_ms, took_ms, meanwhile: [..]}]}]
    violations      [{title, seed, kind, subject, what, evidence}], all of them
    histories       [{title, seed, command, began_ms, judged_ms, due_times, runs, violations: n, bounds: {..}, faults: [
                      {kind, target, began_ms, ended_ms, shift_ms, detail, struck}], starved: [{began_ms, ended_ms}]}]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from proof.report.figures import Figures, Found, KindOfFault, Pair, TakeOvers
from proof.report.setting import Setting
from proof.report.spread import Spread

SCHEMA: Final = "dueline.proof.report"
VERSION: Final = 1

Json = dict[str, Any]


def document(pairs: Sequence[Pair], sums: Figures, setting: Setting, made_ms: int) -> Json:
    """The whole of it, ready for `json.dumps`."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "made_ms": made_ms,
        "holds": sums.holds,
        "troubles": list(sums.troubles),
        "notes": list(sums.notes),
        "setting": {"replay": setting.replay, "machine": setting.machine, "versions": dict(setting.versions)},
        "figures": figures_of(sums),
        "faults_by_kind": [kind_of(kind) for kind in sums.kinds],
        "take_overs": [take_overs_of(group) for group in sums.take_overs],
        "violations": [violation_of(found) for found in sums.violations],
        "histories": [history_of(pair, setting) for pair in pairs],
    }


def figures_of(sums: Figures) -> Json:
    """The headline."""
    return {
        "histories": sums.histories,
        "judged_ms": sums.judged_ms,
        "faults": sums.faults,
        "no_effect": sums.no_effect,
        "starved": sums.starved,
        "starved_ms": sums.starved_ms,
        "due_times": sums.due_times,
        "runs": sums.runs,
        "runs_by_state": sums.runs_by_state,
        "violations": {kind.value: count for kind, count in sums.violations_by_kind.items()},
        "lateness": None if sums.lateness is None else spread_of(sums.lateness),
        "lateness_histogram": [{"from_ms": one.from_ms, "to_ms": one.to_ms, "n": one.count} for one in sums.lateness_bins],
        "lateness_bounds_ms": list(sums.lateness_bounds_ms),
        "steps_executed": sums.steps_executed,
        "steps_again": sums.steps_again,
        "kills_in_flight": sums.kills_in_flight,
        "leaderless_ms": sums.leaderless_ms,
        "unmeasured": sums.unmeasured,
    }


def spread_of(spread: Spread) -> Json:
    """In milliseconds."""
    return {
        "count": spread.count, "p50_ms": spread.p50, "p95_ms": spread.p95, "p99_ms": spread.p99, "max_ms": spread.largest,
    }  # fmt: skip


def kind_of(kind: KindOfFault) -> Json:
    """A kind of fault."""
    return {
        "kind": kind.kind, "n": kind.count, "no_effect": kind.no_effect, "total_ms": kind.total_ms, "steps_again": kind.again,
    }  # fmt: skip


def take_overs_of(group: TakeOvers) -> Json:
    """A group, with each of its take-overs."""
    outliers = [
        {
            "title": one.title, "seed": one.seed, "since_began_ms": one.since_began_ms, "took_ms": one.took_ms,
            "meanwhile": list(one.meanwhile),
        }
        for one in group.outliers
    ]  # fmt: skip
    head = {"cause": group.cause, "session_ms": group.session_ms, "aim_ms": group.aim_ms}
    return {**head, **spread_of(group.spread), "took_ms": list(group.took_ms), "outliers": outliers}


def violation_of(found: Found) -> Json:
    """A violation and where it was found."""
    one = found.violation
    return {
        "title": found.title, "seed": found.seed, "kind": one.kind.value, "subject": one.subject, "what": one.what,
        "evidence": one.evidence,
    }  # fmt: skip


def history_of(pair: Pair, setting: Setting) -> Json:
    """A history without its log."""
    history, verdict = pair
    return {
        "title": history.title,
        "seed": history.seed,
        "command": setting.command(history.seed),
        "began_ms": history.began_ms,
        "judged_ms": history.judged_ms,
        "due_times": verdict.due_times,
        "runs": verdict.runs,
        "violations": len(verdict.violations),
        "bounds": asdict(history.bounds),
        "faults": [asdict(fault) for fault in history.noted.faults if fault.injected],
        "starved": [
            {"began_ms": one.began_ms, "ended_ms": one.ended_ms} for one in history.noted.faults if not one.injected
        ],
    }
