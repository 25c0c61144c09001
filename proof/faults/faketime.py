"""libfaketime, where a machine has it: lies to single processes about the wall clock.

It is looked for in `DUELINE_FAKETIME` (the path of libfaketime.so.1) and in the package `libfaketime`; without it no broker's
clock is moved. It is no dependency: there is no wheel of it, and a fresh machine may have no compiler.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = "DUELINE_FAKETIME"
LIBRARY: Final = "libfaketime.so.1"


def needed() -> Path:
    """Where it is. Raises ValueError if nowhere."""
    found = library()
    if found is None:
        raise ValueError(f"a broker's clock is moved by libfaketime, which is not here: set {ENVIRONMENT} to its {LIBRARY}")
    return found


def library() -> Path | None:
    """Where it is; None if nowhere."""
    given = os.environ.get(ENVIRONMENT)
    if given:
        return Path(given) if Path(given).exists() else None
    found = importlib.util.find_spec("libfaketime")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    return next(iter(sorted(folder.rglob(LIBRARY))), None) if folder is not None else None


def environment(library: Path, file: Path) -> dict[str, str]:
    """For a process whose wall clock follows that file."""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with it every timed wait of Java returns at once
    }


def write(file: Path, shift_ms: int) -> None:
    """From now on that far off."""
    fresh = file.with_suffix(".new")
    fresh.write_text(f"{shift_ms / 1000:+.3f}\n", encoding="utf-8")
    os.replace(fresh, file)
