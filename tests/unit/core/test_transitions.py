"""The table of transitions: complete, enforced, and what docs/states.md shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from dueline.scheduler.core.transitions import START, TERMINAL, TRANSITIONS, ForbiddenTransition, check, mermaid
from dueline.scheduler.core.waiting import Waiting
from dueline.schemas.run import RunState

PAGE = Path(__file__).resolve().parents[3] / "docs" / "states.md"
DESIGN = PAGE.with_name("design.md")
RENEW = "docs/states.md or docs/design.md is not current: put the output of transitions.mermaid() and the table's rows there"


def test_every_state_can_be_reached_and_the_final_ones_are_final() -> None:
    """Then each state follows from something, each that is not final leads on, and no final one does."""
    assert {after for _, after in TRANSITIONS} == set(RunState)
    assert {before for before, _ in TRANSITIONS} == {START, *RunState} - TERMINAL


@pytest.mark.parametrize("before", [START, *RunState])
@pytest.mark.parametrize("after", list(RunState))
def test_what_is_not_in_the_table_is_refused(before: str, after: str) -> None:
    """Then check lets pass what the table has, and a final record applied twice."""
    if (before, after) in TRANSITIONS or (before == after and before in TERMINAL):
        check("menu@x", before, after)
    else:
        with pytest.raises(ForbiddenTransition, match="menu@x"):
            check("menu@x", before, after)


def test_the_page_shows_the_table() -> None:
    """Then docs/states.md has the diagram, a row for every transition and for every reason to wait, and no others."""
    text = PAGE.read_text()
    for page in (text, DESIGN.read_text()):
        assert f"```mermaid\n{mermaid()}\n```" in page, RENEW
    rows = {f"| {before or '(no record)'} | {after} | {why} |" for (before, after), why in TRANSITIONS.items()}
    section = text.split("## The table")[1].split("## What")[0]
    shown = {line for line in section.splitlines() if line.startswith("| ")}
    assert shown - {"| from | to | why |", "| --- | --- | --- |"} == rows, RENEW
    for reason in Waiting:
        assert f"| `{reason}` |" in text, RENEW
