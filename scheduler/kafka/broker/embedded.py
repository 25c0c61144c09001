"""The embedded broker: a real Apache Kafka of one node in a folder of one's own, for tests and `dueline dev`."""

from __future__ import annotations

import atexit
import logging
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from . import ports, warmup
from .config import HOST, Ports, server_properties
from .errors import BrokerStartFailed
from .folder import BrokerFolder, locked
from .instance import Failed, Ready, bring_up
from .jars import ensure_jars
from .process import BrokerProcess
from .runtime import find_runtime
from .storage import ensure_formatted

log = logging.getLogger(__name__)

STOP_S = 15.0  # Kafka needs about 0.5 s; after this it is killed
TRIES = 8  # starts that lost a port to another process
PORT_WAIT_S = 5.0  # for a known port that something else, perhaps an outgoing connection, holds for a moment


class EmbeddedBroker:
    """A real Apache Kafka 4.3.1 (KRaft), one node, reachable on loopback only, all its data under `folder`.

    One node keeps every topic at replication factor 1. It gives the real protocol, transactions, group
    coordination and compaction; it does not give what replication is for: no loss of a disk or machine is survived,
    `acks=all` means this one node, writes are in the page cache and not forced to disk (a killed process loses
    nothing, a power cut may), there is no leader change of a partition, and `min.insync.replicas` above 1 cannot be
    met. Nothing is encrypted or authenticated.

    `port` is the client port; None: the one this folder had before, or a free one. `overrides` are broker settings
    that replace ours (for instance `group.min.session.timeout.ms`, 1000 here). Start after stop or kill keeps the
    data. The broker ends with this process, whatever ends it. Not for use from two threads at once.

    The first start on a machine downloads 45 MB of pinned jars and makes Java's start-up cache, both under
    `DUELINE_CACHE` (default `~/.cache/dueline`).
    """

    def __init__(self, folder: Path, *, port: int | None = None, overrides: Mapping[str, str] | None = None) -> None:
        self._folder = BrokerFolder(path=Path(folder).absolute())
        self._port = port
        self._overrides = dict(overrides or {})
        self._process: BrokerProcess | None = None
        self._started_by = 0
        server_properties(data=self._folder.data, ports=Ports(client=1, controller=2), overrides=self._overrides)

    def start(self) -> None:
        """Return when the broker answers requests.

        Raises BrokerUnavailable (packages, jars or network missing), FolderInUse, BrokerStartFailed (with the last
        lines of the log), RuntimeError if it runs already.
        """
        if self._process is not None and self._process.exit_code() is None:
            raise RuntimeError(f"the broker in {self._folder.path} runs already: stop it before starting it again")
        runtime = find_runtime(ensure_jars())
        flags = warmup.aot_flags(runtime)
        with locked(self._folder) as lock_fd:
            self._await_known_port()
            ensure_formatted(runtime, self._folder)
            rng = random.Random(os.urandom(8))
            for _ in range(TRIES):
                where = ports.choose(client=self._preferred_port(), rng=rng)
                outcome = bring_up(
                    runtime, self._folder, where=where, overrides=self._overrides, lock_fd=lock_fd, flags=flags
                )
                if isinstance(outcome, Ready):
                    self._adopt(outcome.process, where.client)
                    return
                if isinstance(outcome, Failed) and not (flags and not outcome.spoke):
                    raise BrokerStartFailed(f"Kafka did not start: {outcome.reason}\n{self._folder.last_lines()}")
                if isinstance(outcome, Failed):  # Java gave up before Kafka said a word
                    warmup.discard(runtime)
                    flags = ()
        raise BrokerStartFailed(f"{TRIES} times another process took a port on {HOST} before Kafka did")

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` for clients; stays the same over restarts of this object."""
        if self._port is None:
            raise RuntimeError("the broker has no address before its first start")
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """The process id of Java; raises RuntimeError when the broker does not run."""
        return self._running().pid

    @property
    def log_file(self) -> Path:
        """Kafka's own log."""
        return self._folder.log

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.exit_code() is None

    def stop(self) -> None:
        """End gracefully and wait for it; kill after 15 s. Does nothing when not running."""
        if self.is_running and self._started_by == os.getpid():  # not from a forked copy of the parent
            process = self._running()
            process.terminate()
            if process.wait(STOP_S) is None:
                log.warning("the broker in %s did not stop within %d s: killing it", self._folder.path, STOP_S)
                process.kill()
        self._forget()

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._running().kill()
        self._forget()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _await_known_port(self) -> None:
        deadline = time.monotonic() + PORT_WAIT_S
        while self._port is not None and not ports.is_free(self._port):
            if time.monotonic() > deadline:
                raise BrokerStartFailed(
                    f"port {self._port} on {HOST} is taken by another process: stop that, or choose another port"
                )
            time.sleep(0.05)

    def _preferred_port(self) -> int | None:
        """The given port, or this object's earlier one (clients know it), or the folder's earlier one if free."""
        if self._port is not None:
            return self._port
        try:
            earlier = int(self._folder.port.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return earlier if ports.is_free(earlier) else None

    def _adopt(self, process: BrokerProcess, port: int) -> None:
        self._process, self._port, self._started_by = process, port, os.getpid()
        self._folder.port.write_text(str(port), encoding="utf-8")
        atexit.register(self.stop)

    def _running(self) -> BrokerProcess:
        if self._process is None or self._process.exit_code() is not None:
            raise RuntimeError(f"the broker in {self._folder.path} does not run; its log: {self._folder.log}")
        return self._process

    def _forget(self) -> None:
        self._process = None
        atexit.unregister(self.stop)
