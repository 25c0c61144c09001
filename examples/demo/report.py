"""What the demo shows at its end: the tables for a person, or all of it as JSON."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from examples.demo.promises import Outcome, Played


def show(console: Console, outcome: Outcome, *, day_s: int) -> None:
    """The tables, then each promise."""
    audit = outcome.audit["totals"]
    console.print(f"\n[bold]The week[/bold], a day being {day_s} real seconds. Repeated: mails sent again with the same key. "
                  "Skipped: steps that a later attempt found done. First: when the first mail went.")  # fmt: skip
    console.print(_mornings(outcome))
    console.print(_take_overs(outcome.played))
    console.print(f"refused writes: {len(refused_writes(outcome.played))}, of the leader that woke up on Monday")
    console.print("dueline audit: " + ", ".join(f"{number} {verdict}" for verdict, number in audit.items()))
    console.print("\n[bold]What was promised[/bold]")
    for each in outcome.promises:
        mark = "[green]kept  [/green]" if each.kept else "[bold red]BROKEN[/bold red]"
        console.print(f"{mark}  {each.text} [dim]({each.found})[/dim]")
    console.print()


def as_json(outcome: Outcome, *, day_s: int, subscribers: int, elapsed_s: float) -> dict[str, Any]:
    """Times in milliseconds unless the name says seconds."""
    played = outcome.played
    return {
        "ok": not outcome.broken,
        "elapsed_s": round(elapsed_s, 1),
        "day_s": day_s,
        "subscribers": subscribers,
        "days": [
            {
                "job": each.job,
                "day": each.day.title,
                "run": each.run.key,
                "mails": each.tally.delivered,
                "subscribers": each.tally.subscribers,
                "repeated": each.tally.repeated,
                "first_mail_ms": each.first_mail_ms,
                "state": each.run.state,
                "reason": each.reason,
                "attempts": each.attempts,
                "steps_skipped": each.steps_skipped,
                "audit": each.answer,
            }
            for each in outcome.mornings
        ],
        "worker_killed": {
            "worker": played.sunday.killed,
            "mails": played.sunday.sent,
            "successor": played.sunday.successor,
            "next_mail_after_ms": played.sunday.first_again_ms - played.sunday.killed_ms,
        },
        "take_overs": dict(_take_over_times(played)),
        "refused_writes": refused_writes(played),
        "audit": outcome.audit["totals"],
        "promises": [{"promise": each.text, "kept": each.kept, "found": each.found} for each in outcome.promises],
    }


def refused_writes(played: Played) -> list[str]:
    """The lines in which schedulers say that the broker refused their write."""
    return [played.monday.refusal] if played.monday.refusal else []


# --- steps ------------------------------------------------------------------------------------------------------------


def _mornings(outcome: Outcome) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("06:00 of", "job"):
        table.add_column(name, no_wrap=True)
    for name in ("mails", "readers", "repeated", "attempts", "skipped", "first"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ledger")
    table.add_column("audit", no_wrap=True)
    for each in outcome.mornings:
        first = "–" if each.first_mail_ms is None else f"+{each.first_mail_ms / 1000:.2f} s"
        tally = each.tally
        table.add_row(
            each.day.title, each.job, f"{tally.delivered:,}", f"{tally.subscribers:,}", str(tally.repeated),
            str(each.attempts), str(each.steps_skipped), first, f"{each.run.state}: {each.reason}", each.answer,
        )  # fmt: skip
    return table


def _take_over_times(played: Played) -> list[tuple[str, int]]:
    return [
        ("leader frozen (Monday)", played.monday.taken_over.append_ms - played.monday.frozen_ms),
        ("leader killed -9 (Tuesday)", played.tuesday.taken_over.append_ms - played.tuesday.killed_ms),
        ("broker started again (Thursday)", played.outage.taken_over.append_ms - played.outage.up_ms),
    ]


def _take_overs(played: Played) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("from what happened to the next leader's first committed barrier")
    table.add_column("seconds", justify="right")
    for what, ms in _take_over_times(played):
        table.add_row(what, f"{ms / 1000:.1f}")
    again_s = (played.sunday.first_again_ms - played.sunday.killed_ms) / 1000
    table.add_row("worker killed -9 (Sunday), to the next worker's first mail", f"{again_s:.1f}")
    return table
