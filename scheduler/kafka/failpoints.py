"""Named places where a test or the demo stops or kills this very process.

`DUELINE_FAILPOINTS="leader.before-offsets=stop,claim.after-commit=kill@3"` arms them at start;
`DUELINE_FAILPOINT_FILE` names a file with the same text (commas or lines), read again whenever it changes, so that a
harness arms a running process. An armed point fires once, at the n-th time it is reached after being armed (`@n`,
default 1). Actions: `stop` (SIGSTOP), `kill` (SIGKILL), `exit`, `block` (this thread stands still until the file
changes, while the client's own threads go on: what a stuck Python looks like from outside).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)

ENVIRONMENT: Final = "DUELINE_FAILPOINTS"
FILE_ENVIRONMENT: Final = "DUELINE_FAILPOINT_FILE"
EXIT_CODE: Final = 86  # tells a harness that a failpoint ended the process

BLOCK_LOOK_S: Final = 0.02

Stamp = tuple[int, int, int]
"""Of the file: when it was written, its size, its inode."""


def _block() -> None:
    before = _stamp()
    while _stamp() == before:
        time.sleep(BLOCK_LOOK_S)


ACTIONS: Final[dict[str, Callable[[], None]]] = {
    # To this thread, not to the process: the latter is taken by any thread, and this one would go on until that is awake.
    "stop": lambda: signal.pthread_kill(threading.get_ident(), signal.SIGSTOP),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(EXIT_CODE),
    "block": _block,
}


@dataclass(slots=True)
class _Point:
    action: str
    left: int


_armed: dict[str, _Point] = {}
_file: str | None = None
_seen: Stamp | None = None


def reach(name: str) -> None:
    """Fire the failpoint of this name if it is armed. Costs a look at an empty dict when nothing is."""
    if _file is not None:
        _follow_file()
    if not _armed:
        return
    point = _armed.get(name)
    if point is None:
        return
    point.left -= 1
    if point.left > 0:
        return
    del _armed[name]
    log.warning("failpoint %s: %s", name, point.action, extra={"action": "failpoint.reached", "failpoint": name})
    ACTIONS[point.action]()


def arm(text: str) -> None:
    """Arm exactly what `text` says. Raises ValueError naming the part that cannot be read."""
    points = {}
    for part in text.replace("\n", ",").split(","):
        if not part.strip():
            continue
        name, equals, rest = part.strip().partition("=")
        action, at, number = rest.partition("@")
        if not equals or action not in ACTIONS or (at and not (number.isdigit() and int(number) > 0)):
            raise ValueError(f"failpoint {part.strip()!r}: expected NAME=ACTION or NAME=ACTION@N, {', '.join(ACTIONS)}")
        points[name] = _Point(action, int(number) if at else 1)
    _armed.clear()
    _armed.update(points)


def load(environ: dict[str, str]) -> None:
    """Arm from the environment; called once, when this module is imported."""
    global _file, _seen  # noqa: PLW0603 - one process has one set of failpoints
    _file = environ.get(FILE_ENVIRONMENT)
    _seen = None
    arm(environ.get(ENVIRONMENT, ""))


def _follow_file() -> None:
    global _seen  # noqa: PLW0603
    now = _stamp()
    if now is None or now == _seen:
        return
    _seen = now
    assert _file is not None
    with open(_file, encoding="utf-8") as file:
        arm(file.read())


def _stamp() -> Stamp | None:
    """None without a file."""
    try:
        stat = os.stat(_file or "")
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


load(dict(os.environ))
