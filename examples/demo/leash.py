"""Runs a module as `python -m MODULE ...` would, in a process that ends when the one that started it does (on Linux).

The demo ends its processes itself. This is for the day on which the demo is killed with -9 and cannot.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
"""Of prctl(2): the signal that this process gets when its parent ends."""


def main() -> None:
    """`python -m examples.demo.leash PARENT MODULE [ARGUMENT ...]`; PARENT is the process id of who started it."""
    parent, module = int(sys.argv[1]), sys.argv[2]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call above
            sys.exit(1)
    sys.argv[:] = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
