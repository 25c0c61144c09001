"""`report.html`: the report for people. One file: no script, nothing from elsewhere; a browser is told to refuse both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proof.report.figures import Figures, Pair
from proof.report.histories import timelines
from proof.report.markup import Markup, clock, element, joined, number, table
from proof.report.sections import (
    MAX_LISTED,
    faults,
    headline,
    how,
    lateness,
    left_out,
    notes,
    section,
    steps,
    take_overs,
    troubles,
    violations,
)
from proof.report.setting import Setting
from proof.report.style import STYLE

TITLE: Final = "dueline: what a run of faults showed"
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(pairs: Sequence[Pair], sums: Figures, setting: Setting, made_ms: int) -> str:
    """The whole document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", TITLE),
        element("style", Markup(STYLE)),
    )
    body = element(
        "body",
        element("header", element("h1", TITLE), element("p", f"Made {clock(made_ms)}. The same for programs: report.json.")),
        element(
            "main",
            headline(sums),
            troubles(sums),
            violations(sums),
            faults(sums),
            lateness(sums),
            steps(sums),
            take_overs(sums),
            notes(sums),
            timelines(pairs, sums, setting),
            again(pairs, setting),
        ),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def again(pairs: Sequence[Pair], setting: Setting) -> Markup:
    """Seeds, commands, versions, the machine."""
    shown = pairs[:MAX_LISTED]
    rows = [
        (str(history.seed), history.title, element("code", setting.command(history.seed)), number(len(verdict.violations)))
        for history, verdict in shown
    ]
    return section(
        "Again",
        how(
            "The seed decides which faults come in which order. On real processes the same seed does the same faults, but "
            "not at the same instant to the millisecond; a simulated history is repeated exactly. The versions and the "
            "machine are those of the Python that made this report."
        ),
        table("How to do each history again", ("seed", "history", "command", "violations"), rows, numbers=False),
        left_out(len(pairs), len(shown)),
        joined([
            table("Versions", ("what", "version"), list(setting.versions.items()), numbers=False),
            element("p", f"Machine: {setting.machine}."),
        ]),
    )  # fmt: skip
