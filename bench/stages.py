"""Where a profiled leader's time went, by stage of its loop: python -m bench.stages FOLDER/scheduler.prof"""

from __future__ import annotations

import pstats
import sys
from pathlib import Path
from typing import Any

FUNCTIONS = {
    "tick": ("leader/term.py", "tick"),
    "read": ("leader/intake.py", "read"),
    "plan": ("core/plan.py", "plan"),
    "commit": ("leader/term.py", "_commit"),
    "encode": ("leader/encode.py", "groups"),
    "write": ("kafka/turns.py", "write"),
    "echo": ("leader/fold.py", "poll"),
}
"""Functions of the loop, by the end of their file's path."""


def stages(file: Path) -> dict[str, float]:
    """Seconds of each stage under the profiler (which makes Python slower and leaves the network as it is)."""
    found = {name: _cumulative(file, where) for name, where in FUNCTIONS.items()}
    waits = _cumulative(file, ("~", "<method 'poll' of 'cimpl.Consumer' objects>"))
    return {
        "read inputs, and wait for them (intake.read)": found["read"],
        "decide (plan)": found["plan"],
        "encode what was decided (encode.groups)": found["encode"],
        "write: offsets, produce, flush, commit (writer.write)": found["write"],
        "apply it to the own state": found["commit"] - found["encode"] - found["write"],
        "read back and fold the own records (fold.poll)": found["echo"],
        "everything in the loop (term.tick)": found["tick"],
        "of it and of standing by: in the client's poll": waits,
    }


def show(file: Path) -> None:
    """Print them."""
    for name, seconds in stages(file).items():
        print(f"  {name:56} {seconds * 1000:9,.0f} ms")


def _cumulative(file: Path, where: tuple[str, str]) -> float:
    statistics: dict[tuple[str, int, str], Any] = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    return sum(entry[3] for (path, _, name), entry in statistics.items() if path.endswith(where[0]) and name == where[1])


if __name__ == "__main__":
    show(Path(sys.argv[1]))
