"""Made once per machine: Java's ahead-of-time cache, from a short practice run of the broker.

Java writes that cache when a process ends, which takes some seconds; a practice run keeps that out of every real
broker's stop, and a killed broker cannot lose it. Without the cache the broker only starts more slowly, so nothing
here is allowed to stop a start.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from pathlib import Path

from . import ports
from .folder import BrokerFolder, locked
from .instance import Failed, PortTaken, Ready, bring_up
from .jars import exclusive, remove_unfinished
from .runtime import Runtime
from .storage import CHECKPOINT, format_with_tool

log = logging.getLogger(__name__)

AOT = "java.aot"
ASSEMBLY_S = 120.0  # about 6 s on a quiet machine
TRIES = 5  # practice runs that lost a port to another process


def aot_flags(runtime: Runtime) -> tuple[str, ...]:
    """The flags that use the cache, made now if it is not there; none if it cannot be made."""
    cache = runtime.derived / AOT
    if not runtime.derived.exists():
        with exclusive(runtime.derived.with_suffix(".lock")):
            if not runtime.derived.exists():
                practise(runtime)
    return (f"-XX:AOTCache={cache}",) if cache.exists() else ()


def discard(runtime: Runtime) -> None:
    """Forget a cache that Java could not start with; the next start makes another."""
    log.warning("Java does not start with its cache in %s: making it anew next time", runtime.derived)
    shutil.rmtree(runtime.derived, ignore_errors=True)


def practise(runtime: Runtime) -> None:
    """Start a broker in a folder of its own, stop it, and keep what Java and the format tool wrote.

    The result is kept without the cache if Java cannot write one here, so that not every start tries again.
    """
    log.info("making Java's start-up cache (about 10 s, once per machine) in %s", runtime.derived)
    prefix = f"making-{runtime.derived.name}-"
    remove_unfinished(runtime.derived.parent, prefix)
    building = Path(tempfile.mkdtemp(prefix=prefix, dir=runtime.derived.parent))
    try:
        made = building / "made"
        made.mkdir()
        fill(runtime, BrokerFolder(path=building / "folder"), made)
        made.rename(runtime.derived)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def fill(runtime: Runtime, folder: BrokerFolder, made: Path) -> None:
    try:
        with locked(folder) as lock_fd:
            shutil.copyfile(format_with_tool(runtime, folder), made / CHECKPOINT)
            record(runtime, folder, lock_fd, made / AOT)
    except Exception as error:  # noqa: BLE001 - whatever it is, the broker starts without
        (made / AOT).unlink(missing_ok=True)
        log.warning(
            "no start-up cache for Java, the broker starts some seconds slower (remove %s to try again): %s",
            runtime.derived, error,
        )


def record(runtime: Runtime, folder: BrokerFolder, lock_fd: int, cache: Path) -> None:
    rng = random.Random(os.urandom(8))
    flags = (f"-XX:AOTCacheOutput={cache}",)
    outcome: Ready | PortTaken | Failed = PortTaken()
    for _ in range(TRIES):
        where = ports.choose(client=None, rng=rng)
        outcome = bring_up(runtime, folder, where=where, overrides={}, lock_fd=lock_fd, flags=flags)
        if not isinstance(outcome, PortTaken):
            break
    if not isinstance(outcome, Ready):
        raise OSError(f"the practice run did not start: {outcome}\n{folder.last_lines()}")
    outcome.process.terminate()
    if outcome.process.wait(ASSEMBLY_S) is None:
        outcome.process.kill()
    if not cache.exists():
        raise OSError(f"Java wrote no cache\n{folder.last_lines()}")
