"""The schedulers and workers of a run: how each is started, and which of them leads."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from proof.faults import effects, entry, handlers
from proof.faults.child import Child, Home, how_ended
from proof.faults.clock import now_ms
from proof.faults.plan import NAMESPACE, QUEUE, Plan
from proof.faults.trouble import Ended
from proof.history.acts import Role, call_ms

log = logging.getLogger(__name__)

HANDLERS: Final = tuple(handlers.conducts(""))
DRAIN_S: Final = 3.0


class Crew:
    """All processes of dueline. `servers`: for each process the address at which it finds Kafka."""

    def __init__(self, plan: Plan, home: Home, servers: Mapping[str, str], posts: str) -> None:
        self._plan, self._home, self._servers, self._posts = plan, home, servers, posts
        self.effects_file = home.folder / "effects"
        self.schedulers = [self.new_scheduler(name) for name in plan.scheduler_names]
        self.workers = [self._new_worker(name) for name in plan.worker_names]
        self.extras: list[Child] = []
        self.expected_dead: set[str] = set()
        """Those that are down because a fault says so; any other that ended is started again."""
        self.unexpected: list[Ended] = []
        """Ends that no fault asked for."""

    @property
    def all(self) -> list[Child]:
        """Schedulers, then workers, then those that a fault added."""
        return [*self.schedulers, *self.workers, *self.extras]

    def named(self, name: str) -> Child:
        """Raises LookupError."""
        for child in self.all:
            if child.name == name:
                return child
        raise LookupError(f"no process is named {name}")

    def with_pid(self, pid: int) -> Child | None:
        """The one that has this process id and runs."""
        return next((child for child in self.all if child.pid == pid and child.runs), None)

    def start(self) -> None:
        """Start all of them."""
        for child in self.all:
            child.start()

    def clock_file(self, name: str) -> Path:
        """Where that process reads how wrong its wall clock is."""
        return self._home.folder / f"{name}.clock"

    def new_scheduler(self, name: str, door: str = "") -> Child:
        """A scheduler that was not started yet, with the servers of `door` (its own by default)."""
        plan = self._plan
        copies, insync = (3, 2) if plan.nodes >= 3 else (1, 1)
        arguments = [
            "scheduler", "--session-timeout", f"{plan.session_s:g}", "--worker-timeout", f"{plan.worker_timeout_s:g}",
            "--replication-factor", str(copies), "--min-insync-replicas", str(insync),
            *(["--development"] if copies < 3 else []),
        ]  # fmt: skip
        environ = {
            **self._environ(name, door or name),
            entry.SCHEDULER_ENVIRONMENT: json.dumps(plan.scheduler_fields),
            entry.CLOCK_ENVIRONMENT: str(self.clock_file(name)),
        }
        return Child(name, Role.SCHEDULER, self._home, arguments, environ)

    def _new_worker(self, name: str) -> Child:
        plan = self._plan
        arguments = [
            "worker", "--queue", QUEUE, "--worker-id", name, "--heartbeat", f"{plan.heartbeat_s:g}", "--slots", "12",
            "--worker-timeout", f"{plan.worker_timeout_s:g}", "--drain-timeout", f"{DRAIN_S:g}",
            *(f"--handler={handler}={handlers.MODULE}:{handler}" for handler in HANDLERS),
        ]  # fmt: skip
        fields = {"transaction_timeout_s": plan.worker_transaction_s}
        environ = {**self._environ(name, name), entry.WORKER_ENVIRONMENT: json.dumps(fields)}
        child = Child(name, Role.WORKER, self._home, arguments, environ)
        child.call_ms = call_ms(plan.worker_transaction_s)
        return child

    def _environ(self, name: str, door: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DUELINE_", "PROOF_"))}
        return {
            **kept,
            "DUELINE_BOOTSTRAP_SERVERS": self._servers[door],
            "DUELINE_NAMESPACE": NAMESPACE,
            "PYTHONUNBUFFERED": "1",
            effects.FILE_ENVIRONMENT: str(self.effects_file),
            effects.PROCESS_ENVIRONMENT: name,
            handlers.TOPIC_ENVIRONMENT: self._posts,
        }

    # -- while it runs -------------------------------------------------------------------------------------------------

    def look_after(self) -> None:
        """Note who ended, and start again whom no fault keeps down."""
        for child in self.all:
            code = child.noted_end()
            if child.runs or child.name in self.expected_dead or child.pid == -1:
                continue
            if code is not None:
                ended = Ended(process=child.name, at_ms=now_ms(), how=how_ended(code), last_words=child.last_words())
                self.unexpected.append(ended)
                log.warning("%s ended with %s by itself: started again", child.name, code)
            child.start()

    def kill(self, child: Child) -> None:
        """SIGKILL; it stays down until `back`."""
        self.expected_dead.add(child.name)
        child.kill()

    def back(self, child: Child) -> None:
        """Start it again."""
        self.expected_dead.discard(child.name)
        child.start()

    def remove(self, child: Child) -> None:
        """End one that a fault added, for good."""
        child.kill()
        self.extras.remove(child)

    def heal(self) -> None:
        """Everything of the first crew runs, nothing stands still, nothing is armed, every clock is right."""
        for child in list(self.extras):
            self.remove(child)
        self.expected_dead.clear()
        for child in self.all:
            child.arm("")
            child.signal(signal.SIGCONT)
            self.clock_file(child.name).unlink(missing_ok=True)
            child.start()

    def end(self) -> None:
        """End all at once, stopped ones too."""
        for child in self.all:
            self.expected_dead.add(child.name)
            child.signal(signal.SIGKILL)
        for child in self.all:
            child.kill()
