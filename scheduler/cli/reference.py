"""docs/cli.md and docs/cli-jobs.md, made from the commands' own help: `python -m dueline.scheduler.cli.reference docs`.

A test compares the files with what this makes, so the pages can't fall behind.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer
from typer.main import get_command

from dueline.scheduler.cli.tree import app

WIDTH: Final = 100
"""Columns of the help on the page, whatever terminal it is made in."""

HEAD: Final = """# The command

<!-- Made by `python -m dueline.scheduler.cli.reference docs`; edit the help in scheduler/cli/, not this page. -->

This page has the cluster's side: setting up, processes, the audit. Jobs and runs are in [cli-jobs.md](cli-jobs.md).

Every command that prints data takes `--json`: one document on standard output, with times in UTC. What is said about the
data goes to standard error. Global options may stand before or after the command's name. Errors say what, where and what
to do; a traceback is a bug.

Commands that ask something of the leader (`jobs apply`, `trigger`, `cancel`, `jobs pause` and the like) wait until the
ledger shows what became of it, `--wait-timeout` at most; with `--no-wait` they return once the broker has the record. If
the leader has read it and neither an effect nor a refusal is seen, they say so (`unconfirmed` with `--json`), exit code 4.
Commands that read do so from the log itself: they need a broker, and no scheduler.

Processes (`scheduler`, `worker`, `dev`) end in order on SIGTERM or Ctrl-C, with exit code 0; a second signal ends them at
once, with 128 + its number. They wait for a broker that is away; the other commands give up after `--timeout`, exit code 3.
"""


JOBS: Final = frozenset({"jobs", "next", "trigger", "cancel", "runs", "run"})
"""Commands about jobs and runs: a page of their own, so that none gets too long."""

JOBS_HEAD: Final = """# The command: jobs and runs

<!-- Made by `python -m dueline.scheduler.cli.reference docs`; edit the help in scheduler/cli/, not this page. -->

Global options, exit codes and what holds for every command are in [cli.md](cli.md). A commented job file:
[examples/jobs.yaml](../examples/jobs.yaml).
"""


def pages() -> dict[str, str]:
    """File name to content."""
    sections = {name: f"## `{name}`\n\n```text\n{text}\n```" for name, text in helps()}
    of_jobs = {name: section for name, section in sections.items() if name.removeprefix("dueline ").split()[0] in JOBS}
    others = [section for name, section in sections.items() if name not in of_jobs]
    return {
        "cli.md": "\n\n".join([HEAD.rstrip(), *others]) + "\n",
        "cli-jobs.md": "\n\n".join([JOBS_HEAD.rstrip(), *of_jobs.values()]) + "\n",
    }


def helps() -> Iterator[tuple[str, str]]:
    """Each command's name with its help, in the order of the tree."""
    root = get_command(app)
    context = typer.Context(
        root, info_name="dueline", terminal_width=WIDTH, max_content_width=WIDTH, help_option_names=["-h", "--help"]
    )
    yield from _below(context)


def _below(context: typer.Context) -> Iterator[tuple[str, str]]:
    command = context.command
    yield context.command_path, _clean(command.get_help(context))
    for name, below in getattr(command, "commands", {}).items():
        inner = typer.Context(below, info_name=name, parent=context, terminal_width=WIDTH, max_content_width=WIDTH)
        yield from _below(inner)


def _clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


if __name__ == "__main__":
    for name, content in pages().items():
        Path(sys.argv[1], name).write_text(content, encoding="utf-8")
