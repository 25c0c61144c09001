"""A namespace with real schedulers and workers as processes, the user's side of it, and what the judge needs to know.

`until` is how a test waits: it reads the ledger on, looks for the named event, and fails with everybody's last words when
it does not come, or when a process ended that was not to.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from dueline.scheduler.cli.main import run as run_command
from dueline.scheduler.core.ports import Received
from dueline.schemas.codec import decode
from dueline.schemas.job import JobVersion
from dueline.schemas.ledger import Barrier
from dueline.schemas.registry import MARKER
from dueline.schemas.run import Run, RunState
from dueline.schemas.topics import home_partition
from dueline.schemas.work import AttemptEvent, Dispatch, Heartbeat, Step
from tests.fault.handlers import GATE_ENVIRONMENT
from tests.fault.judge import Placed, World, judge
from tests.fault.outbox import ENVIRONMENT as OUTBOX_ENVIRONMENT
from tests.fault.outbox import Effect, Outbox
from tests.fault.process import COMMAND, QUICK, Process
from tests.fault.raw import opened, read_uncommitted
from tests.integration.leader.rig import Rig, Watch

PATIENCE_S: Final = 40.0
"""For any one event: two busy cores, process starts and take-overs included."""
SESSION_S: Final = 2.0
WORKER_TIMEOUT_S: Final = 2.0
HEARTBEAT_S: Final = 0.4
PARTITIONS: Final = 4
HANDLERS: Final = ("tick", "many", "doomed", "bare")
SLOWEST_MS: Final = 2_000
"""The longest period of a fault test's job."""
YEARLY: Final = "0 0 1 1 *"
"""A schedule without a due time within a test: its runs are triggered."""
REFUSED: Final = ("refused this generation", "fenced by a newer producer", "the group moved on")
"""What a scheduler says of the end of its term when another one leads."""


class Cluster:
    """See the module's text."""

    def __init__(self, servers: str, namespace: str, folder: Path, queues: Sequence[str] = ("default",)) -> None:
        self.servers = servers
        self.rig = Rig(servers, namespace, queues)
        self.folder = folder
        self.processes: dict[str, Process] = {}
        self.outbox = Outbox(folder / "outbox")
        self.gate = folder / "gate"
        self.ledger: Watch = self.rig.watch(self.rig.namespace.runs)
        self._expected_dead: set[str] = set()

    # -- processes -----------------------------------------------------------------------------------------------------

    def scheduler(self, name: str, *options: str, quick: dict[str, object] | None = None, **environ: str) -> Process:
        """A scheduler, started. `quick`: fields of SchedulerSettings that have no option."""
        if quick is not None:
            environ["FAULT_SCHEDULER"] = json.dumps(quick)
        arguments = [
            "scheduler", "--development", "--replication-factor", "1", "--min-insync-replicas", "1",
            "--session-timeout", f"{SESSION_S:g}", "--worker-timeout", f"{WORKER_TIMEOUT_S:g}",
            "--log-level", "debug",  # a trouble that comes again within a minute is not said louder than that
            *options,
        ]  # fmt: skip
        return self._start(name, arguments, environ)

    def worker(
        self, name: str, *options: str, queue: str = "default", quick: dict[str, object] | None = None, **environ: str
    ) -> Process:
        """A worker with all handlers of the fault tests, started."""
        if quick is not None:
            environ["FAULT_WORKER"] = json.dumps(quick)
        handlers = [f"--handler={handler}=tests.fault.handlers:{handler}" for handler in HANDLERS]
        arguments = [
            "worker", "--queue", queue, "--worker-id", name, "--heartbeat", f"{HEARTBEAT_S:g}",
            "--worker-timeout", f"{WORKER_TIMEOUT_S:g}", *handlers, *options,
        ]  # fmt: skip
        return self._start(name, arguments, environ)

    def _start(self, name: str, arguments: Sequence[str], environ: dict[str, str]) -> Process:
        process = self.processes.get(name)
        if process is None:
            module = QUICK if environ else COMMAND
            process = Process(name, arguments, self.folder, {**self._environ(), **environ}, module=module)
            self.processes[name] = process
        assert not process.runs, f"{name} runs already"
        self._expected_dead.discard(name)
        process.start()
        return process

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DUELINE_", "FAULT_"))}
        return {
            **kept,
            "DUELINE_BOOTSTRAP_SERVERS": self.servers,
            "DUELINE_NAMESPACE": self.rig.namespace.name,
            "PYTHONUNBUFFERED": "1",
            OUTBOX_ENVIRONMENT: str(self.folder / "outbox"),
            GATE_ENVIRONMENT: str(self.gate),
        }

    def may_end(self, process: Process) -> None:
        """Its end is part of the test."""
        self._expected_dead.add(process.name)

    def kill(self, process: Process) -> None:
        """SIGKILL."""
        self.may_end(process)
        process.kill()

    def close(self) -> None:
        """End every process, stopped ones too, and release the clients."""
        for process in self.processes.values():
            process.signal(signal.SIGKILL)
        for process in self.processes.values():
            process.kill()
        self.rig.close()

    # -- waiting -------------------------------------------------------------------------------------------------------

    def until(self, what: str, happened: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        """Read the ledger on until it happened."""
        deadline_s = time.monotonic() + timeout_s
        while not happened():
            for process in self.processes.values():
                dead = process.exit_code is not None and process.name not in self._expected_dead
                assert not dead, f"{process.name} ended with {process.exit_code}, waiting for: {what}\n{self.last_words()}"
            assert time.monotonic() < deadline_s, f"not within {timeout_s:.0f} s: {what}\n{self.last_words()}"
            self.ledger.poll(0.02)

    def until_stopped(self, process: Process, point: str) -> None:
        """The process reached the failpoint and stands still."""
        self.until(f"{process.name} stops at {point}", lambda: process.stopped and f"failpoint {point}: stop" in process.log())

    def until_said(self, process: Process, *texts: str, since: int | None = None) -> None:
        """The process has said one of these."""
        self.until(f"{process.name} says {texts}", lambda: any(text in process.log(since) for text in texts))

    def last_words(self) -> str:
        """For a failure's message."""
        logs = [f"--- {p.name} (pid {p.pid}, {p.exit_code})\n{p.log()[-2500:]}" for p in self.processes.values()]
        return "\n".join([*logs, f"--- ledger: {self.ledger.records[-4:]}"])

    # -- who leads -----------------------------------------------------------------------------------------------------

    def barriers(self) -> list[Barrier]:
        """Those of `runs`, in order."""
        return self.ledger.barriers()

    def leader(self) -> Process:
        """Who wrote the last barrier and has led since."""
        self.until("a leader", lambda: self._leader() is not None)
        found = self._leader()
        assert found is not None
        return found

    def _leader(self) -> Process | None:
        if not self.barriers() or not self.ledger.terms():
            return None
        last = max(i for i, record in enumerate(self.ledger.records) if isinstance(record, Barrier))
        decided = any(not isinstance(record, Barrier) for record in self.ledger.records[last + 1 :])
        pid = int(self.barriers()[-1].process.rpartition(":")[2])
        return next((p for p in self.processes.values() if p.pid == pid and p.runs and decided), None)

    def until_led_by(self, process: Process) -> None:
        """The process has written the last barrier, and decided something."""
        self.until(f"{process.name} leads", lambda: self._leader() is process)

    def until_both(self, *schedulers: Process) -> Process:
        """All run and have joined the group, one leads: the leader."""
        for process in schedulers:
            self.until_said(process, f"{self.rig.namespace.scheduler_group} generation")
        leader = self.leader()
        self.until("the group has settled", lambda: self._settled(len(schedulers)))
        return self.leader() if leader.runs else leader

    def _settled(self, members: int) -> bool:
        group = self.rig.namespace.scheduler_group
        asked = self.rig.cluster.kafka_admin().client.describe_consumer_groups([group])
        described = asked[group].result(10)
        return len(described.members) == members and described.state.name == "STABLE"

    def until_goes_on(self, job: str, count: int = 3) -> None:
        """So many due times more."""
        have = len(self.ledger.due_times(job))
        self.until(f"{count} more due times of {job}", lambda: len(self.ledger.due_times(job)) >= have + count)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def publish(self, job: str, schedule: object, handler: str = "tick", **fields: object) -> None:
        """Publish a job whose due times all run, however late."""
        # A run that its lost worker began counts as a retry of nobody's fault: as many as a test likes.
        fixed = {"overlap": "allow", "misfire": "all", "misfire_grace": "10m", "max_worker_losses": 1000}
        self.rig.publish(job, schedule, **{**fixed, "handler": handler, "dispatch_ahead": "0s", **fields})

    def trigger(self, job: str) -> str:
        """Trigger it by command; the run's key. The job must stand in the ledger."""
        return f"{job}@!{self.rig.command('trigger', job=job)}"

    def define(self, job: str, handler: str, **fields: object) -> None:
        """A job without due times, taken up by the leader."""
        versions = self.rig.watch(self.rig.namespace.job_versions)
        self.publish(job, YEARLY, handler, **fields)

        def taken_up() -> bool:
            versions.poll(0.02)
            return bool(versions.versions(job))

        self.until(f"{job} is taken up", taken_up)

    def run(self, key: str) -> Run | None:
        """The run's last record."""
        return self.ledger.runs().get(key)

    def until_state(self, key: str, *states: RunState) -> Run:
        """The run is in one of these states; its record."""
        self.until(f"{key} is {states}", lambda: (run := self.run(key)) is not None and run.state in states)
        found = self.run(key)
        assert found is not None
        return found

    def until_effects(self, run: str, count: int) -> Effect:
        """So many different effects of the run have happened; the last one."""
        self.until(f"{count} effects of {run}", lambda: len({e.key for e in self.effects_of(run)}) >= count)
        return self.effects_of(run)[-1]

    def effects_of(self, run: str) -> list[Effect]:
        """Its effects so far."""
        return [effect for effect in self.outbox.look() if effect.run == run]

    # -- the log -------------------------------------------------------------------------------------------------------

    def read(self, topic: str, partitions: int = 1) -> list[Any]:
        """Everything committed in a topic now, decoded, with `None` for tombstones left out."""
        return [decode(received.value) for received in self._received(topic, partitions) if received.value is not None]

    def _received(self, topic: str, partitions: int) -> Iterator[Received]:
        admin = self.rig.cluster.admin()
        for number in range(partitions):
            end = admin.end_offset((topic, number))
            yield from admin.read_range((topic, number), admin.start_offset((topic, number)), end, timeout_s=PATIENCE_S)

    def uncommitted(self, topic: str, partitions: int = 1) -> list[Any]:
        """Every record that was ever written, those of aborted and open transactions too."""
        values = read_uncommitted(self.servers, topic, partitions)
        return [decode(value) for value in values if value is not None and value.startswith(MARKER)]

    def home(self, worker: str) -> int:
        """The home partition of a worker."""
        return home_partition(worker, PARTITIONS)

    @contextmanager
    def foreign_transaction(self, topic: str, partition: int, timeout_ms: int) -> Iterator[Producer]:
        """Somebody else's transaction with one record there, open until the block or the time-out ends it."""
        with opened(self.servers, topic, partition, timeout_ms) as producer:
            yield producer

    def heartbeats(self) -> list[Heartbeat]:
        """All in the topic."""
        return [beat for beat in self.read(self.rig.namespace.workers) if isinstance(beat, Heartbeat)]

    def attempts(self) -> list[AttemptEvent]:
        """All events."""
        return self.read(self.rig.namespace.attempts, PARTITIONS)

    def steps(self) -> list[Step]:
        """All completions."""
        return self.read(self.rig.namespace.steps, PARTITIONS)

    def dispatches(self, queue: str = "default") -> list[Dispatch]:
        """All offers."""
        return self.read(self.rig.namespace.dispatch(queue), PARTITIONS)

    # -- the judge -----------------------------------------------------------------------------------------------------

    def world(self, *, audit: bool = True) -> World:
        """Everything there is to know now. The effects are looked at first: what they are is recorded before."""
        effects = list(self.outbox.look())
        ledger = [
            Placed(record=decode(one.value), offset=one.offset, append_ms=one.append_ms)
            for one in self._received(self.rig.namespace.runs, 1)
            if one.value is not None
        ]
        versions = [one for one in self.read(self.rig.namespace.job_versions) if isinstance(one, JobVersion)]
        steps = self.steps()
        return World(
            ledger=ledger, versions=versions, steps=steps, effects=effects, audit=self.audit() if audit else {}
        )

    def audit(self) -> dict[str, object]:
        """What `dueline audit --json` says."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run_command(["-b", self.servers, "-n", self.rig.namespace.name, "audit", "--from", "-1h", "--json"])
        found: dict[str, object] = json.loads(out.getvalue())
        return found

    def judged(self, *jobs: str) -> World:
        """Let every active run end, judge all of it, fail with what is broken; the world that was judged."""
        until_ms = max((self._reached(job) for job in jobs), default=time.time_ns() // 1_000_000)
        self.until("due times of all jobs", lambda: all(self._reached(job) >= until_ms - SLOWEST_MS for job in jobs))

        def settled() -> bool:
            ends = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED)
            return all(run.state in ends for run in self.ledger.runs().values() if run.due_ms <= until_ms)

        self.until("every run due so far has ended", settled)
        world = self.world()
        broken = judge(world, until_ms=min([until_ms, *map(self._reached, jobs)]))
        assert broken == [], "\n".join(broken) + "\n" + self.last_words()
        return world

    def _reached(self, job: str) -> int:
        """The last due time that has a record; 0: none."""
        return max(self.ledger.due_times(job), default=0)


@contextmanager
def running(servers: str, namespace: str, folder: Path, queues: Sequence[str] = ("default",)) -> Iterator[Cluster]:
    """A cluster for as long as the block lasts; no process outlives it."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(servers, namespace, folder, queues)
    try:
        yield cluster
    finally:
        cluster.close()
