"""A worker process: opens its clients, drives the worker's loop, and ends it in order.

Order of the start (W1): topics checked and the home partition known -> signals positioned -> an incarnation opened, all its
ids initialised -> its first heartbeat -> the group joined, offers claimed.
Order of the end (W10): nothing is claimed any more, what is held is declined -> the group is left, so that others take its
partitions at once -> what runs finishes or is handed back -> the last heartbeat -> clients closed.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Final

from dueline.scheduler.core.ports import Clock, Kafka, Unavailable
from dueline.workers.acts import Acts
from dueline.workers.claim import Claim, Claims
from dueline.workers.events import Event, Opened, StepsRead
from dueline.workers.executor import Executor
from dueline.workers.feeds import OfferFeed, SignalFeed
from dueline.workers.health import Health
from dueline.workers.incarnation import Opener
from dueline.workers.logclock import LogClock
from dueline.workers.logging import once
from dueline.workers.offers import Offers
from dueline.workers.records import Origin
from dueline.workers.registry import Registry
from dueline.workers.resume import StepsExpired, read_earlier
from dueline.workers.settings import WorkerSettings
from dueline.workers.setup import Home, find_home
from dueline.workers.spare import Spare
from dueline.workers.targets import Targets
from dueline.workers.threads import Inbox, Shell, Threads
from dueline.workers.worker import Worker

RETRY_S: Final = 2.0
"""Between two tries to reach the broker at the start."""
RESUMERS: Final = 4
"""Threads that read earlier steps. Each may wait for another worker's open transaction."""
GIVE_UP_S: Final = 15.0
"""After the drain's time: how long what is on its way may still take. With the broker away it would take for ever."""
CLOSE_S: Final = 5.0
"""How long clients may take to be released. A process that ends while one is in use may crash in the client's code."""

log = logging.getLogger(__name__)


def random_id() -> str:
    """Eight hexadecimal digits."""
    return secrets.token_hex(4)


class WorkerProcess:
    """See the module's text. Raises SetupError when a person must change something first."""

    def __init__(
        self,
        kafka: Kafka,
        clock: Clock,
        registry: Registry,
        settings: WorkerSettings,
        *,
        new_id: Callable[[], str] = random_id,
        shell: Shell | None = None,
    ) -> None:
        self._kafka = kafka
        self._clock = clock
        self._registry = registry
        self._settings = settings
        self._new_id = new_id
        self._shell = shell or Threads(self._broken)
        self._inbox: Inbox[Event] = Inbox()
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then drain."""
        home = self._find_home(stop)
        if home is None:
            return
        parts = Parts(
            home,
            kafka=self._kafka,
            clock=self._clock,
            registry=self._registry,
            settings=self._settings,
            new_id=self._new_id,
            shell=self._shell,
            inbox=self._inbox,
        )
        try:
            self._drive(parts, stop)
        finally:
            parts.close()

    def _find_home(self, stop: threading.Event) -> Home | None:
        for tries in itertools.count():
            if stop.is_set():
                return None
            try:
                return find_home(self._kafka.admin(), self._settings)
            except Unavailable as error:
                log.log(once(tries), "the broker does not answer, trying again every %.0f s: %s", RETRY_S, error,
                        extra={"action": "worker.start-waits"})  # fmt: skip
                stop.wait(RETRY_S)
        return None

    def _drive(self, parts: Parts, stop: threading.Event) -> None:
        worker = parts.worker
        parts.start()
        give_up_s = float("inf")
        wait_s = 0.0
        while not worker.over:
            wait_s = worker.tick(self._inbox.wait(wait_s))
            now_s = self._clock.monotonic_s()
            if self._failure is not None:
                raise self._failure
            if stop.is_set() and not worker.draining:
                log.info("draining", extra={"action": "worker.drain"})
                give_up_s = now_s + self._settings.drain_timeout_s + GIVE_UP_S
                parts.drain()
                wait_s = 0.0
            if now_s > give_up_s:
                log.error("the log takes nothing more; what is left comes back after the worker timeout",
                          extra={"action": "worker.drain-given-up"})  # fmt: skip
                return
            parts.tell(now_s)
        log.info("drained", extra={"action": "worker.drained"})

    def _broken(self, error: BaseException) -> None:
        """A reader failed for good; the loop, which looks at least every MAX_WAIT_S, raises it."""
        self._failure = error


class Parts:
    """What a running process consists of, wired."""

    def __init__(
        self,
        home: Home,
        *,
        kafka: Kafka,
        clock: Clock,
        registry: Registry,
        settings: WorkerSettings,
        new_id: Callable[[], str],
        shell: Shell,
        inbox: Inbox[Event],
    ) -> None:
        namespace, post, topic = settings.namespace, inbox.post, settings.namespace.dispatch(settings.queue)
        self._clock = clock
        self._settings = settings
        self._inbox = inbox
        self._shell = shell
        self._admin = kafka.admin()
        self._plain = kafka.plain_writer("heartbeats")
        self._targets = Targets(self._admin, namespace)
        self._resumers = shell.tasks("dueline-resume", RESUMERS, awaited=False)
        self._executor = Executor(shell, slots=settings.slots, post=post)
        self._health = Health(settings.health_file)
        self._spare = Spare(topic, home.dispatch_partitions, settings.queue)
        self._signals = SignalFeed(kafka.log_reader("signals"), home.signals, home.signals_from, post=post)
        self._offers = OfferFeed(kafka.group_reader(namespace.worker_group(settings.queue), topic), post=post)
        origin = Origin(namespace=namespace, worker=settings.worker, queue=settings.queue, home=home.partition)
        self._opener = Opener(
            kafka, clock, shell, settings, origin=origin, plain=self._plain, new_id=new_id, post=post
        )
        self._claims = Claims(slots=settings.slots, start_bound_s=settings.start_bound_s)
        log_clock = LogClock()
        acts = Acts(
            origin=origin,
            registry=registry,
            executor=self._executor,
            log_clock=log_clock,
            monotonic_s=clock.monotonic_s,
            read_steps=self._read_steps,
            lease_holds=lambda incarnation: self.worker.lease_holds(incarnation),
            unwritable=self._targets.unwritable,
            post=post,
        )
        self.worker = Worker(
            clock=clock,
            registry=registry,
            settings=settings,
            claims=self._claims,
            offers=Offers(),
            acts=acts,
            log_clock=log_clock,
            open_incarnation=self._opener.open,
            seek=self._offers.seek,
        )

    def start(self) -> None:
        """Open the first incarnation and begin to read."""
        self.worker.start()
        self._signals.start(self._shell)
        self._offers.start(self._shell)

    def drain(self) -> None:
        """Begin to end."""
        self.worker.drain()
        self._offers.stop()

    def tell(self, now_s: float) -> None:
        """Health and warnings."""
        worker = self.worker
        joined = worker.offers.assignment is not None and not worker.draining
        self._spare.look(now_s, joined=joined, owned=len(worker.offers.partitions))
        if self._health.due(now_s):
            self._health.tell(now_s, self._facts())

    def _facts(self) -> dict[str, object]:
        worker = self.worker
        return {
            "time_ms": self._clock.wall_ms(),
            "worker": self._settings.worker,
            "queue": self._settings.queue,
            "state": "draining" if worker.draining else "running",
            "incarnations": {name: worker.lease_holds(name) for name in worker.incarnations},
            "partitions": sorted(number for _, number in worker.offers.partitions),
            "claims": sum(len(self._claims.of(name)) for name in worker.incarnations),
            "free_slots": self._claims.free_slots,
        }

    def close(self) -> None:
        """Close everything; the last heartbeat goes out first."""
        self._opener.close()
        self._offers.stop()
        self._signals.stop()
        for event in self._inbox.wait(0):
            if isinstance(event, Opened):
                event.incarnation.close()
        for incarnation in self.worker.incarnations.values():
            incarnation.close()
        self._resumers.close()
        self._executor.close()
        self._plain.flush(CLOSE_S)
        self._plain.close()
        self._shell.join(CLOSE_S)
        self._health.remove()

    def _read_steps(self, claim: Claim) -> None:
        topic = self._settings.namespace.steps

        def read() -> None:
            try:
                recorded = read_earlier(
                    self._admin,
                    topic,
                    claim.dispatch,
                    wanted=lambda: self._claims.get(claim.id) is not None,
                    pause=self._shell.pause,
                )
            except StepsExpired as error:
                self._inbox.post(StepsRead(id=claim.id, gone=str(error)))
            else:
                self._inbox.post(StepsRead(id=claim.id, recorded=recorded))

        self._resumers.submit(read)
