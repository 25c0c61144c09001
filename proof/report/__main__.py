"""`python -m proof.report FOLDER... --out DIR`: judge stored histories and write report.html and report.json.

A folder holds one history (proof.history.store) or folders that do. Troubles that a history tells, or `verdict.json` beside it,
break it. Exit code: 0 the promise held, 1 it was broken, there is a trouble, or nothing was judged, 2 a folder holds no history
or one that can't be judged, or the report can't be written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from proof.checker.check import check
from proof.checker.trouble import CannotJudge
from proof.history.history import History
from proof.history.store import REST, StoreError, load
from proof.interruption import exit_code
from proof.report.figures import Pair, figures
from proof.report.setting import REPLAY, this_setting
from proof.report.summary import print_summary
from proof.report.writing import write_report

VERDICT: Final = "verdict.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, judge, tell, write; the exit code."""
    options = parser().parse_args(arguments)
    pairs: list[Pair] = []
    try:
        for folder in histories(options.folder):
            history = told(folder)
            pairs.append((history, check(history)))
        print_summary(pairs)  # first: what was judged is not lost if it cannot be written
        written = write_report(pairs, options.out, this_setting(options.replay), time.time_ns() // 1_000_000)
    except (StoreError, CannotJudge) as error:
        print(f"proof.report: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"proof.report: the report cannot be written to {options.out}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("proof.report: interrupted", file=sys.stderr)
        return 130
    for path in written:
        print(path)
    return 0 if figures(pairs).holds else 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m proof.report", description=(__doc__ or "").split(":", 1)[1].strip())
    made.add_argument("folder", nargs="+", type=Path, help="a stored history, or a folder of them")
    made.add_argument("--out", required=True, type=Path, metavar="DIR", help="where report.html and report.json go")
    made.add_argument("--replay", default=REPLAY, help="the command that does a history again; {seed} stands for its seed")
    return made


def told(folder: Path) -> History:
    """The history in a folder, with the troubles that a run of real faults left beside it: older ones stand nowhere else. Raises
    StoreError."""
    history, file = load(folder), folder.parent / VERDICT
    if folder.name != "history" or not file.is_file():
        return history
    try:
        lines = [str(line) for line in json.loads(file.read_text(encoding="utf-8"))["trouble"]]
        known = history.noted.troubles
        troubles = (*known, *(line for line in lines if line not in known))
        return replace(history, noted=replace(history.noted, troubles=troubles))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file}: not the verdict of a run: {error}") from error


def histories(folders: Sequence[Path]) -> Iterator[Path]:
    """The folders that hold a history, in the order given; of a folder of them by name. Raises StoreError."""
    for folder in folders:
        if (folder / REST).is_file():
            yield folder
            continue
        inner = sorted(path.parent for path in folder.glob(f"*/{REST}"))
        if not inner:
            raise StoreError(f"{folder}: no history here: {REST} stands neither in it nor in a folder of it")
        yield from inner


if __name__ == "__main__":
    sys.exit(exit_code(main))
