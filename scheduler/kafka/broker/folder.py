"""The broker's folder: what lies where, and the lock that keeps a second broker out.

    FOLDER/lock               held by the broker's processes while they live
    FOLDER/server.properties  written at every start
    FOLDER/data/              Kafka's own
    FOLDER/broker.log         Kafka's log (rolling), FOLDER/jvm.log: whatever Java prints
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import FolderInUse

DYING_S = 10.0  # a broker whose parent was killed needs a moment to go (its watchdog kills it after 5 s at most)
TAIL_LINES = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerFolder:
    """Paths inside one broker's folder."""

    path: Path

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def meta(self) -> Path:
        return self.data / "meta.properties"

    @property
    def config(self) -> Path:
        return self.path / "server.properties"

    @property
    def log(self) -> Path:
        return self.path / "broker.log"

    @property
    def output(self) -> Path:
        return self.path / "jvm.log"

    @property
    def port(self) -> Path:
        return self.path / "port"

    def last_lines(self) -> str:
        """The ends of both logs, for an error message."""
        return "\n".join(f"--- {path} ---\n{tail(path)}" for path in (self.output, self.log) if path.exists())


def tail(path: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:])


@contextlib.contextmanager
def locked(folder: BrokerFolder) -> Iterator[int]:
    """Hold the folder's lock and yield its descriptor.

    The lock belongs to the open file, so the processes that inherit the descriptor go on holding it after this
    block: the folder is free when the last of them has ended. Raises FolderInUse.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + DYING_S
        while not try_lock(fd):
            owner = int(os.pread(fd, 32, 0) or b"0")
            if is_alive(owner) or time.monotonic() > deadline:
                raise FolderInUse(folder.path, f"process {owner}" if owner else "another broker")
            time.sleep(0.05)
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        yield fd
    finally:
        os.close(fd)


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
