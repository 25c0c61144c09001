"""`python -m bench`: the measurements. burst and steps stand beside a raw Kafka loop on the same broker, and say the ratio.

    python -m bench                      burst and steps, as docs/performance.md has them
    python -m bench burst --jobs 2000    one of them, with its options (--help)
    python -m bench plan                 the pure planner alone, no broker
"""

from __future__ import annotations

import importlib.util
import runpy
import signal
import sys
from types import FrameType

from bench import burst, steps
from bench.world import Failed

MEASUREMENTS = {"burst": burst.main, "steps": steps.main}
"""With a broker."""
PURE = ("plan", "schedules")
"""Modules of this package that parse the command line themselves."""


def main(arguments: list[str]) -> int:
    """Run what is named, or burst and steps; the exit code."""
    if arguments and arguments[0] in PURE:
        return _run_pure(arguments)
    if arguments and arguments[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
        return 0
    named = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    if named and named not in MEASUREMENTS:
        print(f"bench: no measurement {named!r}; there are {', '.join((*MEASUREMENTS, *PURE))}", file=sys.stderr)
        return 2
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for name in [named] if named else MEASUREMENTS:
            code = MEASUREMENTS[name](arguments[1:] if named else arguments)
            if code:
                return code
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _interrupt(number: int, _: FrameType | None) -> None:
    """So that SIGTERM, too, ends the processes and removes the folder."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def _run_pure(arguments: list[str]) -> int:
    module = f"bench.{arguments[0]}"
    if importlib.util.find_spec(module) is None:
        print(f"bench: {module} is not there yet", file=sys.stderr)
        return 2
    sys.argv = [module, *arguments[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
