"""One life of a worker process's producers (W1). Its three transactional ids are initialised here, once, before its first
heartbeat; when they are lost, another incarnation with other ids takes over.

States: running (claims) -> draining (a fresh one claims instead, or the worker stops) -> it holds nothing, and sees whether all
that it wrote can be read -> stopped (its last heartbeat says so); or at any moment -> lost (fenced, no producer left, or what it
wrote cannot be read: a last heartbeat says so, the leader fences it).
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.core.ports import Clock, Fenced, Kafka, PlainWriter, Unavailable
from dueline.schemas.work import WorkerState
from dueline.workers.claiming import Claiming
from dueline.workers.events import Event, Opened
from dueline.workers.heartbeat import Heart
from dueline.workers.lease import Lease
from dueline.workers.logging import once
from dueline.workers.loop import GroupCommit
from dueline.workers.records import Origin
from dueline.workers.settings import WorkerSettings
from dueline.workers.threads import Shell, Tasks

RETRY_S: Final = 2.0
"""Between two tries to open one while the broker does not answer."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Incarnation:
    """Owned by the worker's loop."""

    name: str
    state: WorkerState
    claiming: Claiming
    commits: GroupCommit
    heart: Heart
    lease: Lease
    looks: Tasks
    """Where its writers look whether what they wrote can be read."""
    lost: bool = False
    """What it left open is not known: it is to be fenced although it holds nothing (docs/kafka.md)."""
    signs: int | None = None
    """How many of its two writers have not said yet whether all that they wrote can be read; None: they were not asked."""

    @property
    def takes_work(self) -> bool:
        """Whether it claims."""
        return self.state == WorkerState.RUNNING

    @property
    def idle(self) -> bool:
        """Nothing of it is on its way to the log."""
        return self.commits.idle and not self.claiming.flying

    def signs_off(self) -> bool:
        """Whether it is known if all that it wrote can be read (`lost` if not); the first call asks, SignedOff answers twice."""
        if self.signs is None and not self.lost:
            self.signs = 2
            self.commits.sign_off()
            self.claiming.sign_off()
        return self.lost or self.signs == 0

    def signed_off(self, *, readable: bool) -> None:
        """The answer of one of its writers."""
        self.signs = (self.signs or 1) - 1
        self.lost = self.lost or not readable

    def serve(self) -> None:
        """Let its idle producers hear what their clients have to say."""
        self.commits.serve()
        self.claiming.serve()

    def close(self) -> None:
        """Abandon its producers."""
        self.commits.close()
        self.claiming.close()
        self.looks.close()


class Opener:
    """Opens incarnations, beside the loop: initialising takes from 10 ms to seconds."""

    def __init__(
        self,
        kafka: Kafka,
        clock: Clock,
        shell: Shell,
        settings: WorkerSettings,
        *,
        origin: Origin,
        plain: PlainWriter,
        new_id: Callable[[], str],
        post: Callable[[Event], None],
    ) -> None:
        self._kafka = kafka
        self._clock = clock
        self._shell = shell
        self._settings = settings
        self._origin = origin
        self._plain = plain
        self._new_id = new_id
        self._post = post
        self._stop = threading.Event()
        self._tasks = shell.tasks("dueline-open", 1)

    def open(self, pause_s: float = 0.0) -> None:
        """Open one, after a pause; it comes as Opened. Tries until it succeeds or `close` is called."""
        self._tasks.submit(lambda: self._open(pause_s))

    def close(self) -> None:
        """Stop trying."""
        self._stop.set()
        self._tasks.close()

    def _open(self, pause_s: float) -> None:
        self._stop.wait(pause_s)
        for tries in itertools.count():
            if self._stop.is_set():
                return
            try:
                self._post(Opened(incarnation=self._build()))
                return
            except (Unavailable, Fenced) as error:
                log.log(once(tries), "no incarnation yet, trying again every %.0f s: %s", RETRY_S, error,
                        extra={"action": "worker.open-waits"})  # fmt: skip
                self._stop.wait(RETRY_S)

    def _build(self) -> Incarnation:
        settings, origin, admin = self._settings, self._origin, self._kafka.admin()
        name = f"{settings.worker}.{self._new_id()}"
        ids = settings.namespace.worker_ids(name)
        homes = [(origin.namespace.attempts, origin.home), (origin.namespace.steps, origin.home)]
        starts = {home: admin.end_offset(home) for home in homes}
        writers, timeout_s = self._kafka.writers(), settings.transaction_timeout_s
        claim_writer = writers.open(ids[:1], survives_refusal=True, transaction_timeout_s=timeout_s)
        try:
            pair = writers.open(ids[1:], transaction_timeout_s=timeout_s)
        except BaseException:
            claim_writer.close()
            raise
        lease, looks = Lease(settings.lease_s), self._shell.tasks(f"dueline-look-{name}", 1)
        return Incarnation(
            name=name,
            state=WorkerState.RUNNING,
            lease=lease,
            looks=looks,
            claiming=Claiming(
                name, claim_writer, origin=origin, admin=admin, clock=self._clock, post=self._post,
                tasks=self._shell.tasks(f"dueline-claim-{name}", 1), looks=looks, pause=self._shell.pause,
                attempts_from=starts[homes[0]],
            ),
            commits=GroupCommit(
                name, pair, admin=admin, clock=self._clock, post=self._post,
                tasks=self._shell.tasks(f"dueline-commit-{name}", 1), looks=looks, pause=self._shell.pause,
                starts=starts,
            ),
            heart=Heart(
                name, origin=origin, transactional_ids=ids, plain=self._plain, clock=self._clock, post=self._post,
                every_s=settings.heartbeat_s, lease=lease,
            ),
        )  # fmt: skip
