"""`python -m proof.checker FOLDER [--json]`: judge a stored history.

Exit 0: it holds, 1: it is broken, or it tells of a trouble, 2: not to be judged, or no due time was judged, 130: interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from proof.checker.check import check
from proof.checker.trouble import CannotJudge
from proof.history.store import StoreError, load
from proof.history.verdict import Verdict
from proof.interruption import exit_code

SHOWN = 50
"""Violations that are printed; the JSON has all."""


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m proof.checker", description="Judge a stored history.",
        epilog="exit codes: 0 it holds; 1 it is broken, or tells of a trouble; 2 it cannot be judged, or no due time was; "
        "130 interrupted",
    )  # fmt: skip
    parser.add_argument(
        "folder", type=Path, help="the folder `history` of a run of `make faults`, or what `proof.simulation --save` wrote"
    )
    parser.add_argument("--json", action="store_true", help="the whole verdict as JSON")
    options = parser.parse_args(arguments)
    try:
        history = load(options.folder)
        verdict = check(history)
    except (StoreError, CannotJudge) as error:
        print(f"cannot judge: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(json.dumps(as_json(verdict), indent=1) if options.json else in_words(history.title, verdict))
    if verdict.holds and verdict.empty:
        print("nothing to judge: no due time", file=sys.stderr)
        return 2
    return 0 if verdict.holds else 1


def as_json(verdict: Verdict) -> dict[str, object]:
    """The verdict as JSON data, with `holds` and `empty`."""
    return {"holds": verdict.holds, "empty": verdict.empty, **asdict(verdict)}


def in_words(title: str, verdict: Verdict) -> str:
    """The verdict as text, a line a figure and a line a violation."""
    late, took = sorted(verdict.lateness_ms), sorted(each.took_ms for each in verdict.take_overs)
    states = ", ".join(f"{count} {state}" for state, count in verdict.runs_by_state.items())
    ends = ", ".join(f"{count} {end}" for end, count in verdict.ends.items())
    granted, begun = sorted(verdict.granted_ms), sorted(verdict.begun_ms)
    again = ", ".join(f"{count} after {kind}" for kind, count in verdict.steps_again) or "none"
    lines = [
        title,
        f"due times {verdict.due_times}: {ends}",
        f"runs {verdict.runs}: {states}",
        f"lateness of first records, ms: median {_part(late, 0.5)}, p99 {_part(late, 0.99)}, most {_part(late, 1.0)}",
        f"work, ms after its due time: first grant {_spread(granted)}; first effect {_spread(begun)}",
        f"steps executed {verdict.steps_executed}, again: {again}; attempts stopped on the way {verdict.kills_in_flight}",
        f"take-overs {len(took)}, ms: median {_part(took, 0.5)}, most {_part(took, 1.0)}; leaderless {verdict.leaderless_ms} ms",
        f"terms {verdict.terms}, of which {verdict.terms_unled} never led",
        f"faults {verdict.faults}, and {verdict.faults_missed} that did not strike",
        _said(verdict),
        *(f"  trouble: {line}" for line in verdict.troubles),
    ]
    shown = verdict.violations[:SHOWN]
    lines += [f"  {each.kind.value}: {each.subject}: {each.what} [{each.evidence}]" for each in shown]
    if len(verdict.violations) > SHOWN:
        lines.append(f"  and {len(verdict.violations) - SHOWN} more")
    return "\n".join(lines)


def _said(verdict: Verdict) -> str:
    if verdict.holds:
        return "NOTHING TO JUDGE" if verdict.empty else "holds"
    kinds = Counter(each.kind.value for each in verdict.violations)
    found = [f"{count} {kind}" for kind, count in sorted(kinds.items())]
    if verdict.troubles:
        found.append(f"{len(verdict.troubles)} trouble{'s' if len(verdict.troubles) > 1 else ''}")
    return f"BROKEN: {', '.join(found)}"


def _spread(ordered: list[int]) -> str:
    """Half, nine of ten, all of them at most; and how many."""
    return f"median {_part(ordered, 0.5)}, p90 {_part(ordered, 0.9)}, most {_part(ordered, 1.0)} of {len(ordered)}"


def _part(ordered: list[int], share: float) -> int | str:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else "-"


if __name__ == "__main__":
    sys.exit(exit_code(main))
