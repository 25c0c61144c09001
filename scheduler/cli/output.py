"""What a command prints: tables for people, JSON for programs. Colour codes go to terminals only.

Data goes to stdout, everything said about it to stderr, so that a pipe carries data alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

JsonValue = object

PIPE_WIDTH: Final = 200
"""Columns when the output is no terminal: wide enough that no cell of a usual table is cut."""

STYLES: Final = {
    "ran": "green",
    "succeeded": "green",
    "running": "cyan",
    "dispatched": "cyan",
    "waiting": "yellow",
    "pending": "yellow",
    "late": "yellow",
    "skipped": "dim",
    "covered": "dim",
    "excluded": "dim",
    "moved": "dim",
    "failed": "red",
    "missed": "bold red",
    "duplicated": "bold red",
    "early": "bold red",
    "unexplained": "bold red",
    "paused": "yellow",
    "deleted": "dim",
}
"""The look of words that stand for a state or verdict, wherever they appear as a cell."""


def _console(*, stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


@dataclass(slots=True)
class Output:
    """Where a command's answer goes."""

    as_json: bool = False
    data: Console = field(default_factory=_console)
    notes: Console = field(default_factory=lambda: _console(stderr=True))

    def json(self, value: JsonValue) -> None:
        """One JSON document."""
        self.data.file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        self.data.file.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str, title: str = "") -> None:
        """A table; when there are no rows, `empty` is said instead."""
        table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for column in columns:
            right = column.startswith("#")
            table.add_column(column.removeprefix("#"), justify="right" if right else "left", overflow="fold")
        count = 0
        for row in rows:
            table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
            count += 1
        if count:
            self.data.print(table)
        else:
            self.note(empty)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values below each other."""
        grid = Table.grid(padding=(0, 2))
        for name, value in pairs:
            grid.add_row(Text(name, style="bold"), Text(value, style=STYLES.get(value, "")))
        self.data.print(grid)

    def line(self, text: str = "") -> None:
        """A line of the answer."""
        self.data.print(Text(text))

    def block(self, text: str) -> None:
        """Text as it is: a traceback, JSON."""
        self.data.file.write(text.rstrip("\n") + "\n")

    def note(self, text: str) -> None:
        """Something about the answer."""
        self.notes.print(Text(text), soft_wrap=True)
