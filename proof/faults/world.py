"""Everything a fault can lay hands on, and the one loop in which all of it moves.

Nothing but the loop's own thread touches processes, clients and notes; what blocks (a broker's start) is done by `aside`.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from dueline.scheduler.kafka.client import ClientLog
from dueline.scheduler.kafka.vocabulary import AdminClient
from dueline.schemas.topics import Namespace
from proof.faults.brokers import Brokers
from proof.faults.child import Child, Home
from proof.faults.clock import now_ms
from proof.faults.crew import Crew
from proof.faults.ledger import Ledger
from proof.faults.links import Links
from proof.faults.notes import Notebook
from proof.faults.nursery import Nursery
from proof.faults.plan import NAMESPACE, Plan
from proof.faults.publisher import Publisher
from proof.history.acts import Fault
from proof.history.entry import Entry
from proof.history.history import Partition

log = logging.getLogger(__name__)

LOOK_S: Final = 0.02
SKEW_MS: Final = 50
"""All processes read one clock; a worker carries the broker's forward by its own. What a fault moves is in the fault."""
POSTS: Final = "user-posts"
"""Outside of the namespace, whose topics only dueline writes."""
STARVED_MS: Final = 1_000
PULSE_S: Final = 0.1
A = TypeVar("A")
Acts = Generator[float, None, None]
"""What a fault does: yields the seconds until it goes on."""


class World:
    """See the module's text."""

    def __init__(self, plan: Plan, folder: Path, on_fault: Callable[[Fault], None]) -> None:
        forget(folder)
        self.plan = plan
        self.folder = folder
        self.namespace = Namespace(NAMESPACE)
        self.posts = POSTS
        self.notes = Notebook(on_fault)
        self.chance = Random(plan.seed)
        self.healing = False
        """Whether faults are to end now."""
        self.user_waits = False
        """Whether the workload's user keeps still: while a broker's clock is wrong, an instant means nothing to a person."""
        self.kept_log: dict[Partition, list[Entry]] = {}
        """Records that a fault made Kafka drop, read before."""
        self.held: set[str] = set()
        """Processes, brokers and links that a fault works on; another one leaves them alone."""
        self._aside = ThreadPoolExecutor(8)
        self._closed = threading.Event()
        threading.Thread(target=self._feel_pulse, name="pulse", daemon=True).start()
        self.links = Links()
        self.brokers = Brokers(plan, folder / "broker", self.notes, self.links)
        self._nursery = Nursery(folder / "nursery.log")
        home = Home(nursery=self._nursery, folder=folder, notes=self.notes)
        self.crew = Crew(plan, home, self.brokers.servers_by_client, self.posts)
        self._ledger: Ledger | None = None
        self._publisher: Publisher | None = None

    # -- parts that need a broker --------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the harness's own clients."""
        self._ledger = Ledger(self.brokers.servers, self.namespace.runs)
        self._publisher = Publisher(self.brokers.servers, self.notes)

    @property
    def ledger(self) -> Ledger:
        """As the harness reads it."""
        assert self._ledger is not None, "connect first"
        return self._ledger

    @property
    def publisher(self) -> Publisher:
        """The user's producer."""
        assert self._publisher is not None, "connect first"
        return self._publisher

    def admin(self) -> AdminClient:
        """For questions and settings."""
        return AdminClient({"bootstrap.servers": self.brokers.servers}, logger=ClientLog())

    # -- the loop ------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """One round: read the ledger on, take answers, look after the processes."""
        self.ledger.poll(LOOK_S)
        self.publisher.poll()
        self.crew.look_after()

    def _feel_pulse(self) -> None:
        """A machine that gives this thread no turn for long gives nobody one: that is noted, since it is none of the system's
        doing, and counts as no fault of the run."""
        before = now_ms()
        while not self._closed.wait(PULSE_S):
            now = now_ms()
            if now - before > STARVED_MS:
                self.notes.starved(before, now)
            before = now

    def leader(self) -> Child | None:
        """The scheduler that wrote the last barrier, if it runs and has decided something since."""
        child = self.crew.with_pid(self.ledger.leader_pid)
        return child if child is not None and self.ledger.decided and not child.stopped else None

    def stands_by(self) -> bool:
        """Whether every scheduler is in the group: one leads, another is there to take over."""
        joined = f"group {self.namespace.scheduler_group} generation"
        return all(child.runs and child.has_said(joined) for child in self.crew.schedulers)

    # -- for faults ----------------------------------------------------------------------------------------------------

    def hold(self, seconds: float) -> Acts:
        """Let that time pass, or less if all is to be healed."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not self.healing:
            yield min(0.1, max(0.0, end_s - time.monotonic()))

    def until(self, happened: Callable[[], object], timeout_s: float) -> Generator[float, None, bool]:
        """Wait for it; whether it happened in time."""
        end_s = time.monotonic() + timeout_s
        while not happened():
            if time.monotonic() > end_s:
                return False
            yield LOOK_S
        return True

    def aside(self, work: Callable[[], A]) -> Generator[float, None, A]:
        """Do what blocks in a thread of its own, while everything else goes on. Raises what it raises."""
        future = self._aside.submit(work)
        while not future.done():
            yield LOOK_S
        return future.result()

    # -- the end -------------------------------------------------------------------------------------------------------

    def stop_crew(self, timeout_s: float = 25.0) -> None:
        """Every process ends in order, workers first; what does not within the time is killed."""
        for group in (self.crew.workers, self.crew.schedulers):
            for child in group:
                self.crew.expected_dead.add(child.name)
                child.signal(signal.SIGTERM)
            end_s = time.monotonic() + timeout_s
            while any(child.runs for child in group) and time.monotonic() < end_s:
                self.pump()
            for child in group:
                child.kill()

    def close(self) -> None:
        """Leave nothing behind, whatever happened before."""
        self._closed.set()
        self.crew.end()
        if self._publisher is not None:
            self._publisher.close(0.1)
        if self._ledger is not None:
            self._ledger.close()
        self._nursery.close()
        self.brokers.end()
        self.links.close()
        self._aside.shutdown(wait=False, cancel_futures=True)


def forget(folder: Path) -> None:
    """Remove what an earlier run left in the folder, which would be taken for this one's."""
    for pattern in ("[swx][0-9]*.*", "nursery.log", "effects"):
        for file in folder.glob(pattern):
            file.unlink()
