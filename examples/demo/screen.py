"""What the demo shows while it works: progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Advance = Callable[[int], None]
"""Tells a bar how far the work has come."""

PLAIN_WIDTH: Final = 160
"""Characters of a line where there is no terminal that says."""


class Screen:
    """Narration goes to `console`; each line says how many seconds into the demo it is."""

    def __init__(self, *, to_stderr: bool) -> None:
        """`to_stderr`: standard output is kept for JSON."""
        self.console = Console(file=sys.stderr if to_stderr else sys.stdout, highlight=False)
        if not self.console.is_terminal:
            self.console.width = PLAIN_WIDTH
        self._began_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._began_s

    def say(self, text: str, style: str = "") -> None:
        """One line of the story."""
        text = escape(text)
        styled = f"[{style}]{text}[/{style}]" if style else text
        self.console.print(f"[dim]{self.elapsed_s:5.1f} s[/dim]  {styled}", soft_wrap=True)

    def quote(self, line: str) -> None:
        """A line of somebody's log, as it stands there."""
        self.console.print(f"           {escape(line)}", style="cyan", soft_wrap=True)

    def act(self, title: str) -> None:
        """The heading of an act."""
        self.console.print()
        self.say(title, "bold")

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Advance]:
        """A bar that the block moves by telling how far it has come. On no terminal: nothing but the story's lines."""
        if not self.console.is_terminal:
            yield lambda _: None
            return
        with Progress(
            TextColumn("         {task.description}"),
            BarColumn(bar_width=40),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            refresh_per_second=5,
        ) as progress:
            task = progress.add_task(what, total=total)
            yield lambda done: progress.update(task, completed=min(done, total))
