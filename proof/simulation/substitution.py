"""Puts virtual threads, clocks and clients where dueline's modules have the real ones, name by name, and takes them out again.

The list is explicit: each module of a process, and which of its names are replaced. Nothing else of dueline is touched.
`unlisted` finds what a module imports of the standard library's threads and clocks and the list lacks; a test keeps it empty.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Final

from proof.simulation.futures import Future, ThreadPoolExecutor
from proof.simulation.kernel import Kernel, time_of
from proof.simulation.threads import SimpleQueue, Threading, Time, Uncaught

KAFKA: Final = "dueline.scheduler.kafka"

THREADS: Final[Mapping[str, tuple[str, ...]]] = {
    "dueline.scheduler.leader.scheduler": ("threading",),
    f"{KAFKA}.admin": ("Future", "monotonic_s"),
    f"{KAFKA}.clock": ("time", "monotonic_s"),
    f"{KAFKA}.cluster": ("threading",),
    f"{KAFKA}.contact": ("threading", "monotonic_s"),
    f"{KAFKA}.doubt": ("threading",),
    f"{KAFKA}.failpoints": ("threading", "time"),
    f"{KAFKA}.fencer": ("threading", "ThreadPoolExecutor"),
    f"{KAFKA}.group": ("monotonic_s",),
    f"{KAFKA}.outage": ("threading",),
    f"{KAFKA}.plain": ("threading",),
    f"{KAFKA}.ranges": ("monotonic_s",),
    f"{KAFKA}.reader": ("monotonic_s",),
    f"{KAFKA}.selftest": ("monotonic_s",),
    f"{KAFKA}.topics": ("monotonic_s",),
    f"{KAFKA}.transaction": ("monotonic_s",),
    f"{KAFKA}.watchdog": ("threading",),
    f"{KAFKA}.writers": ("ThreadPoolExecutor",),
    "dueline.workers.attempt": ("threading", "Future"),
    "dueline.workers.events": ("Future",),
    "dueline.workers.executor": ("threading",),
    "dueline.workers.feeds": ("SimpleQueue",),
    "dueline.workers.incarnation": ("threading",),
    "dueline.workers.loop": ("Future",),
    "dueline.workers.process": ("threading",),
    "dueline.workers.threads": ("threading", "time", "SimpleQueue"),
}
"""Module -> names that mean threads, waiting or the monotonic clock there."""

HARMLESS: Final = frozenset({"Empty", "FutureTimeout", "InvalidStateError"})
"""Exceptions: the virtual ones raise the same."""

Names = dict[tuple[str, str], object]
"""(module, name) -> what stands there instead."""


def virtual(kernel: Kernel, uncaught: Uncaught) -> Names:
    """All of `THREADS` on this kernel."""
    stand_ins: dict[str, object] = {
        "threading": Threading(kernel, uncaught),
        "time": Time(kernel),
        "SimpleQueue": partial(SimpleQueue, kernel),
        "Future": partial(Future, kernel),
        "ThreadPoolExecutor": partial(ThreadPoolExecutor, kernel, uncaught),
        "monotonic_s": time_of(kernel),
    }
    return {(module, name): stand_ins[name] for module, names in THREADS.items() for name in names}


@contextmanager
def substituted(names: Names) -> Iterator[None]:
    """These names while the block lasts. Raises AttributeError for one that the module does not have."""
    before: Names = {}
    try:
        for (module, name), stand_in in names.items():
            home = importlib.import_module(module)
            before[module, name] = getattr(home, name)
            setattr(home, name, stand_in)
        yield
    finally:
        for (module, name), real in before.items():
            setattr(importlib.import_module(module), name, real)


# --- what the list must have ------------------------------------------------------------------------------------------

WAITING: Final = frozenset({"threading", "time", "queue", "concurrent", "sched", "select"})
OWN: Final = "dueline.scheduler.kafka.clock"


def unlisted(module: ModuleType) -> list[str]:
    """Names that the module takes of `WAITING`, or of dueline's clock, and that the list does not have."""
    listed = {*THREADS.get(module.__name__, ()), *HARMLESS}
    return sorted(name for name in _taken(module) if name not in listed)


def _taken(module: ModuleType) -> Iterator[str]:
    for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.split(".")[0] in WAITING:
                    yield one.asname or one.name
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            from_clock = node.module == OWN or (node.level > 0 and node.module == "clock" and module.__package__ == KAFKA)
            if from_clock or (not node.level and node.module.split(".")[0] in WAITING):
                for one in node.names:
                    yield one.asname or one.name
