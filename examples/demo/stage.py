"""Where the story plays: a broker in a folder of its own, the processes, the ledger as it grows, and the waiting.

Whatever ends the demo, `close` leaves no process; the folder goes too, unless it is to be kept.
"""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Final

from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.schemas.run import run_key
from dueline.schemas.topics import Namespace
from examples.demo.children import ROOT, Child, Crew, environment
from examples.demo.ledger import LedgerWatch, TakeOver
from examples.demo.outbox import FOLDER_ENVIRONMENT, OutboxFile
from examples.demo.screen import Screen
from examples.demo.week import Day, Week

NAMESPACE: Final = Namespace("demo")
QUEUE: Final = "kitchen"
MENU: Final = "menu"
BREAD: Final = "bread"

SESSION_S: Final = 1.0
"""A scheduler silent for so long is replaced; the embedded broker allows it. Kafka's own least is 6 s."""
WORKER_TIMEOUT_S: Final = 3.0
"""A worker silent for so long is fenced; 10 s in real life."""
HEARTBEAT_S: Final = 0.5
AHEAD_S: Final = 2
"""How long before its due time a run goes to a worker; 10 s in real life."""

LOOK_S: Final = 0.01
"""Between two looks at what is waited for."""
USUAL_INIT_S: Final = 3.5
"""`dueline init` takes about so long on two idle cores: what it took tells how much slower this machine is now."""
APPLY_OF_INIT: Final = 1.2
"""`dueline jobs apply` takes at most so many times what `dueline init` took."""
USUAL_DAY_S: Final = 12
MAX_SLOWNESS: Final = 4.0


class StoryFailed(Exception):
    """What the story waited for did not happen in time, or a process ended that was not to. The message says which."""


class Stage:
    """See the module's text."""

    def __init__(self, screen: Screen, *, subscribers: int, day_s: int | None) -> None:
        self.screen = screen
        self.subscribers = subscribers
        self.folder = Path(tempfile.mkdtemp(prefix="dueline-demo-"))
        self.outbox_folder = self.folder / "outbox"
        self.outbox_folder.mkdir()
        self.broker = EmbeddedBroker(self.folder / "broker")
        self.crew = Crew(self.folder, {})
        self.slowness = 1.0
        self._init_s = USUAL_INIT_S
        self._day_s = day_s
        self._week: Week | None = None
        self._cluster: KafkaCluster | None = None
        self._ledger: LedgerWatch | None = None
        self._outboxes: dict[str, OutboxFile] = {}

    # -- before the first act ------------------------------------------------------------------------------------------

    def start_broker(self) -> None:
        """A real Kafka, one node; afterwards the processes can be started."""
        logging.basicConfig(filename=self.folder / "demo.log", level=logging.INFO)  # of this process's own Kafka clients
        self.broker.start()
        own = {FOLDER_ENVIRONMENT: str(self.outbox_folder)}
        self.crew = Crew(self.folder, environment(self.broker.bootstrap_servers, NAMESPACE.name, own))
        for number in (1, 2):
            self.crew.add_scheduler(
                f"scheduler-{number}", "--development", "--replication-factor", "1", "--min-insync-replicas", "1",
                "--session-timeout", f"{SESSION_S:g}", "--worker-timeout", f"{WORKER_TIMEOUT_S:g}",
            )  # fmt: skip
            self.crew.add_worker(
                f"worker-{number}", "--queue", QUEUE, "--slots", "2",
                "--handler", f"{MENU}=examples.demo.handlers:send_menu",
                "--handler", f"{BREAD}=examples.demo.handlers:order_bread",
                "--heartbeat", f"{HEARTBEAT_S:g}", "--worker-timeout", f"{WORKER_TIMEOUT_S:g}",
            )  # fmt: skip

    def create_topics(self) -> None:
        """`dueline init`. How long it takes says how busy this machine is."""
        began_s = time.monotonic()
        self.command("init", "--development", "--queue", QUEUE)
        self._init_s = time.monotonic() - began_s
        self.slowness = min(max(1.0, self._init_s / USUAL_INIT_S), MAX_SLOWNESS)

    def watch_ledger(self) -> None:
        """From now on `until` sees what the ledger says."""
        config = KafkaConfig(bootstrap_servers=self.broker.bootstrap_servers)
        self._cluster = KafkaCluster(config, client_name="demo.watch")
        self._ledger = LedgerWatch(self._cluster.log_reader("ledger"), (NAMESPACE.runs, 0))
        self._ledger.start()

    def apply_jobs(self) -> None:
        """`dueline jobs apply`, with a Sunday that is near, but not so near that it has passed when the jobs hold."""
        # Of an act half is work, which takes longer on a busy machine, and half is time-outs, which do not.
        day_s = self._day_s or math.ceil(USUAL_DAY_S * (1 + self.slowness) / 2)
        lead_s = AHEAD_S + 1 + self._init_s * APPLY_OF_INIT
        for attempt in (1, 2, 3):
            week = Week(sunday_ms=math.ceil(time.time() + lead_s * attempt) * 1000, day_s=day_s)
            self._apply(week)
            if time.time() * 1000 < week.sunday_ms - AHEAD_S * 1000:
                self._week = week
                return
        raise StoryFailed("this machine is too busy: applying two jobs took longer than the wait for Sunday, three times")

    def _apply(self, week: Week) -> None:
        text = Template((ROOT / "examples/demo/jobs.yaml").read_text(encoding="utf-8")).substitute(
            day=week.day_s,
            sunday=week.instant(Day.SUNDAY),
            tuesday=week.instant(Day.TUESDAY),
            subscribers=self.subscribers,
            ahead=AHEAD_S,
        )
        file = self.folder / "jobs.yaml"
        file.write_text(text, encoding="utf-8")
        self.command("jobs", "apply", str(file))

    # -- what the acts use ---------------------------------------------------------------------------------------------

    @property
    def week(self) -> Week:
        """Set by `apply_jobs`."""
        assert self._week is not None, "the jobs were not applied yet"
        return self._week

    @property
    def ledger(self) -> LedgerWatch:
        """Set by `watch_ledger`."""
        assert self._ledger is not None, "the ledger is not watched yet"
        return self._ledger

    @property
    def cluster(self) -> KafkaCluster:
        """The demo's own connection, for reading."""
        assert self._cluster is not None, "the ledger is not watched yet"
        return self._cluster

    @property
    def leader(self) -> Child:
        """The scheduler that wrote the last barrier."""
        return self.crew.with_pid(self.ledger.leader.pid)

    def next_leader(self, term: int) -> TakeOver:
        """The first take-over after that term. Raises LookupError while there is none."""
        found = self.ledger.taken_over_since(term)
        if found is None:
            raise LookupError(f"nobody has taken over since term {term}")
        return found

    def key(self, day: Day, job: str = MENU) -> str:
        """The id of the job's run of the day."""
        return run_key(job, self.week.due_ms(day))

    def outbox(self, day: Day, job: str = MENU) -> OutboxFile:
        """The mails of that run."""
        key = self.key(day, job)
        if key not in self._outboxes:
            self._outboxes[key] = OutboxFile(self.outbox_folder, job, self.week.due_ms(day))
        return self._outboxes[key]

    def command(self, *arguments: str) -> str:
        """Run a `dueline` command; its standard output. Raises StoryFailed when it fails."""
        done = self.crew.command(*arguments)
        if done.returncode:
            raise StoryFailed(f"`dueline {' '.join(arguments)}` ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def until(self, what: str, happened: Callable[[], bool], timeout_s: float) -> None:
        """Wait for it. Raises StoryFailed after `timeout_s` (more on a busy machine), or when a process has ended."""
        deadline_s = time.monotonic() + timeout_s * self.slowness
        while True:
            if self._ledger is not None and self.broker.is_running:
                self.ledger.poll(LOOK_S)
            else:
                time.sleep(LOOK_S)
            if happened():
                return
            self._check_children(what)
            if time.monotonic() > deadline_s:
                raise StoryFailed(f"waited {timeout_s * self.slowness:.0f} s in vain for this: {what}")

    def until_instant(self, what: str, instant_ms: float) -> None:
        """Wait for an instant, with a bar."""
        left_ms = instant_ms - time.time() * 1000
        if left_ms <= 0:
            return
        began_s = time.monotonic()
        with self.screen.bar(f"waiting: {what}", round(left_ms / 1000)) as advance:

            def come() -> bool:
                advance(int(time.monotonic() - began_s))
                return time.time() * 1000 >= instant_ms

            self.until(what, come, left_ms / 1000 + 5)

    def until_sent(self, day: Day, timeout_s: float) -> None:
        """Wait until the day's run has succeeded, with a bar of its mails."""
        outbox, key = self.outbox(day), self.key(day)
        with self.screen.bar(f"{day.title}'s mails", self.subscribers) as advance:

            def done() -> bool:
                advance(len(outbox.look()))
                return self.ledger.succeeded(key)

            self.until(f"{day.title}'s run to end well", done, timeout_s)

    def _check_children(self, what: str) -> None:
        for child in self.crew.all:
            code = child.ended_by_itself
            if code is not None:
                last = "\n".join(child.log_lines()[-5:])
                raise StoryFailed(f"{child.name} ended by itself with {code}, while waiting for this: {what}\n{last}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self, *, keep: bool) -> None:
        """End every process; remove the folder unless it is kept."""
        try:
            self.crew.kill()
            if self._ledger is not None:
                self._ledger.reader.close()
            if self._cluster is not None:
                self._cluster.close()
        finally:
            self.broker.stop()
            logging.shutdown()
            if not keep:
                shutil.rmtree(self.folder, ignore_errors=True)
