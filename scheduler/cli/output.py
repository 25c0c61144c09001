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

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dueline.scheduler.cli.errors import shown

JsonValue = object

IDS: Final = frozenset({"run", "job", "incarnation", "record"})
"""Columns that are copied into the next command: never broken over lines, whatever the terminal's width."""

NARROWEST: Final = 8
"""Columns that every other cell keeps beside ids, however narrow the terminal is."""

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
            table.add_column(
                column.removeprefix("#"), justify="right" if right else "left", overflow="fold", no_wrap=column in IDS
            )
        cells = [[shown(cell) for cell in row] for row in rows]
        for row in cells:
            table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
        if cells:
            self.data.width = max(self.data.width, _least_width(columns, cells))
            self.data.print(table)
        else:
            self.note(empty)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values below each other."""
        grid = Table.grid(padding=(0, 2))
        for name, value in pairs:
            grid.add_row(Text(name, style="bold"), Text(shown(value), style=STYLES.get(value, ""), overflow="fold"))
        self.data.print(grid)

    def line(self, text: str = "") -> None:
        """A line of the answer."""
        self.data.print(Text(shown(text)), soft_wrap=True)

    def block(self, text: str) -> None:
        """Text as it is: a traceback, JSON."""
        self.data.file.write(shown(text).rstrip("\n") + "\n")

    def note(self, text: str) -> None:
        """Something about the answer."""
        self.notes.print(Text(shown(text)), soft_wrap=True)


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Columns of a table whose ids stand whole: beyond the terminal's, it breaks the lines itself, and they can be copied."""
    widths = [
        cell_len(max([column, *(row[place] for row in rows)], key=cell_len)) for place, column in enumerate(columns)
    ]
    kept = [width if column in IDS else min(width, NARROWEST) for column, width in zip(columns, widths, strict=True)]
    return sum(kept) + 2 * len(columns)
