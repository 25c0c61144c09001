"""One node of an embedded cluster: its process, started on ports that never change."""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import ports as free_ports
from . import warmup
from .config import HOST, Place, Ports
from .errors import BrokerStartFailed
from .folder import BrokerFolder, locked
from .instance import Ready, bring_up
from .jars import ensure_jars
from .process import BrokerProcess
from .runtime import find_runtime
from .storage import ensure_formatted

log = logging.getLogger(__name__)

STOP_S = 15.0  # a node that hands its partitions over needs about a second; after this it is killed
PORT_WAIT_S = 5.0
LOOK_S = 0.05


class BrokerNode:
    """See the module's text. Not for use from two threads at once."""

    def __init__(
        self, folder: Path, *, cluster_id: str, ports: Ports, place: Place, overrides: Mapping[str, str], flags: Sequence[str]
    ) -> None:
        self.folder = BrokerFolder(path=folder)
        self.ports = ports
        self.doors = tuple(place.doors)
        self._cluster_id, self._place, self._overrides, self._flags = cluster_id, place, overrides, tuple(flags)
        self._process: BrokerProcess | None = None
        self._started_by = 0

    def start(self, *, environ: Mapping[str, str] | None = None, ready_s: float = 90.0) -> None:
        """Return when the node answers and its cluster counts it in, which takes a majority of controllers.

        `environ`: variables added to the process's environment. Raises BrokerUnavailable, FolderInUse,
        BrokerStartFailed; RuntimeError if it runs already.
        """
        if self.is_running:
            raise RuntimeError(f"the node in {self.folder.path} runs already")
        runtime = find_runtime(ensure_jars())
        flags = (*warmup.aot_flags(runtime), *self._flags)
        with locked(self.folder) as lock_fd:
            self._await_ports()
            ensure_formatted(runtime, self.folder, cluster_id=self._cluster_id, place=self._place)
            outcome = bring_up(
                runtime, self.folder, where=self.ports, overrides=self._overrides, lock_fd=lock_fd, flags=flags,
                ready_s=ready_s, place=self._place, environ=environ,
            )  # fmt: skip
        if not isinstance(outcome, Ready):
            raise BrokerStartFailed(f"node {self._place.node} did not start: {outcome}\n{self.folder.last_lines()}")
        self._process, self._started_by = outcome.process, os.getpid()
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a stopped (SIGSTOP) one does."""
        return self._process is not None and self._process.exit_code() is None

    @property
    def pid(self) -> int:
        """The process id of Java. Raises RuntimeError when it does not run."""
        if self._process is None or self._process.exit_code() is not None:
            raise RuntimeError(f"the node in {self.folder.path} does not run; its log: {self.folder.log}")
        return self._process.pid

    def stop(self) -> None:
        """End in order and wait for it; kill after 15 s. Does nothing when it does not run."""
        process = self._process
        if process is not None and self.is_running and self._started_by == os.getpid():  # not from a forked copy
            process.terminate()
            if process.wait(STOP_S) is None:
                log.warning("the node in %s did not stop within %d s: killing it", self.folder.path, STOP_S)
                process.kill()
        self._forget()

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self._process is not None:
            self._process.kill()
        self._forget()

    def _await_ports(self) -> None:
        deadline = time.monotonic() + PORT_WAIT_S
        mine = (self.ports.client, self.ports.controller, *(door.port for door in self.doors))
        while taken := [port for port in mine if not free_ports.is_free(port)]:
            if time.monotonic() > deadline:
                raise BrokerStartFailed(f"ports {taken} on {HOST} are taken by another process: stop that first")
            time.sleep(LOOK_S)

    def _forget(self) -> None:
        self._process = None
        atexit.unregister(self.stop)
