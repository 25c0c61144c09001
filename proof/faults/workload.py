"""The jobs of a run, and what their user does to them while the faults go on."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Final

from dueline.schemas.codec import encode
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.topics import Namespace
from proof.faults.clock import now_ms
from proof.faults.publisher import Publisher

YEARLY: Final = "0 0 1 1 *"
"""No due time within a run: triggered only."""
STURDY: Final = {"misfire": "all", "misfire_grace": "10m", "max_worker_losses": 1000}
"""Every due time runs, however late, and however often its workers die."""
ACT_EVERY_S: Final = (0.6, 2.4)
MANY: Final = 4
"""Jobs that are changed all the time."""
NOBODY: Final = "nobody"
"""A handler that no worker has: its runs wait until somebody cancels them."""
CANCELLED: Final = ("alone", "pair", "walk", "trek", "moody", "sleepy", "stuck", "by-hand-trek", NOBODY)
"""How the names of jobs begin whose runs are cancelled now and then."""
PATIENCE_S: Final = 5.0
"""After a cancel that may have been lost, before the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A job that nobody touches."""

    id: str
    schedule: object
    handler: str
    fields: dict[str, object]


def fixed_jobs() -> list[Fixed]:
    """Jobs of each kind of schedule and policy that stay as they are."""

    def job(name: str, schedule: object, handler: str, **fields: object) -> Fixed:
        return Fixed(id=name, schedule=schedule, handler=handler, fields={**STURDY, "dispatch_ahead": "0s", **fields})

    return [
        job("every-2", {"every": "2s"}, "tick", overlap="allow"),
        job("every-3-ahead", {"every": "3s"}, "tick", overlap="allow", dispatch_ahead="2s"),
        job("cron-5", {"cron": "*/5 * * * * *", "dialect": "seconds"}, "tick", overlap="allow"),
        job("cron-minute", "* * * * *", "tick", overlap="allow", dispatch_ahead="4s"),
        job("latest", {"every": "3s"}, "tick", misfire="latest", misfire_grace="3s", overlap="allow"),
        job("skipper", {"every": "4s"}, "tick", misfire="skip", misfire_grace="2s", overlap="allow"),
        job("alone", {"every": "3s"}, "nap", overlap="skip"),
        job("pair", {"every": "6s"}, "nap", overlap="allow", max_concurrent=2),
        job("walk", {"every": "7s"}, "walk", overlap="allow"),
        job("trek", {"every": "10s"}, "trek", overlap="allow"),
        job("post", {"every": "4s"}, "post", overlap="allow"),
        job("flop", {"every": "7s"}, "flop", overlap="allow"),
        job("few", {"every": "4s"}, "tick", misfire_grace="2s", catch_up_max=3, overlap="allow"),
        job("paced", {"every": "6s"}, "tick", misfire_grace="2s", catch_up_every="1s", overlap="allow"),
        job("jittered", {"every": "9s", "jitter": "2s"}, "tick", overlap="allow"),
        job("moody", {"every": "12s"}, "moody", overlap="allow", retry={"max": 5, "backoff": "1s", "factor": 1.5}),
        job("moody-weak", {"every": "20s"}, "moody", overlap="allow", retry={"max": 1, "backoff": "1s"}),
        job("sleepy", {"every": "12s"}, "sleepy", overlap="allow"),
        job("stuck", {"every": "20s"}, "stuck", overlap="allow", timeout="2s", retry={"max": 1, "backoff": "1s"}),
        job("fragile", {"every": "10s"}, "walk", overlap="allow", max_worker_losses=0),
        job("frail", {"every": "14s"}, "trek", overlap="allow", max_worker_losses=1),
        job("by-hand", YEARLY, "tick"),
        job("by-hand-trek", YEARLY, "trek", overlap="allow"),
    ]


def absurd_definitions() -> list[tuple[bytes, bytes]]:
    """Key and value of records on `jobs` that must be refused."""

    def definition(**fields: object) -> bytes:
        return json.dumps({"id": "absurd", "schedule": {"every": "2s"}, "handler": "tick", **fields}).encode()

    return [
        (b"absurd", b"neither JSON nor Avro"),
        (b"absurd", b'"a text"'),
        (b"another", definition()),
        (b"absurd", definition(schedule={"every": "-1s"})),
        (b"absurd", definition(schedule="99 * * * *")),
        (b"absurd", definition(schedule={"every": "2s", "tz": "Atlantis/Centre"})),
        (b"absurd", definition(timeout="for ever")),
        (b"absurd", definition(max_concurrent=-1)),
        (b"absurd", definition(surprise=1)),
    ]


def absurd_commands(ident: str) -> list[bytes]:
    """Records on `control` that must be refused."""

    def command(**fields: object) -> bytes:
        return json.dumps({"id": ident, "by": "proof", **fields}).encode()

    return [
        b"neither JSON nor Avro",
        command(kind="dance", job="by-hand"),
        command(kind="trigger", job="no-such-job"),
        command(kind="pause", job="no-such-job"),
        command(kind="cancel", run="by-hand@1999-01-01T00:00:00Z"),
    ]


class Workload:
    """One thread. The order of acts comes from the seed. `alive`: the keys of runs that have not ended."""

    def __init__(
        self, chance: Random, publisher: Publisher, namespace: Namespace, alive: Callable[[], Collection[str]]
    ) -> None:
        self._chance, self._publisher, self._namespace, self._alive = chance, publisher, namespace, alive
        self._count = 0
        self._last_trigger = b""
        self._let_go: dict[str, float] = {}  # of runs that nobody can do: when a cancel was sent last

    def begin(self) -> None:
        """Publish the jobs."""
        for job in fixed_jobs():
            self._define(job.id, job.schedule, job.handler, **job.fields)
        for number in range(MANY):
            self._change(f"changed-{number}")

    def next_pause_s(self) -> float:
        """Until the next act."""
        return self._chance.uniform(*ACT_EVERY_S)

    def act(self) -> None:
        """One thing that a user does."""
        job = f"changed-{self._chance.randrange(MANY)}"
        acts = {
            self._update: 4, self._pause: 2, self._resume: 3, self._delete: 1, self._once: 2, self._trigger: 3,
            self._trigger_trek: 1, self._twice: 1, self._cancel: 4, self._for_nobody: 1, self._absurd: 2,
        }  # fmt: skip
        self._chance.choices(list(acts), weights=list(acts.values()))[0](job)

    def let_go(self) -> None:
        """At the end: cancel every run that no worker can do, again and again until it is gone."""
        now_s = time.monotonic()
        for run in [run for run in self._alive() if run.startswith(NOBODY)]:
            if now_s - self._let_go.get(run, -PATIENCE_S) >= PATIENCE_S:
                self._let_go[run] = now_s
                self._command(CommandKind.CANCEL, run=run)

    # -- acts ----------------------------------------------------------------------------------------------------------

    def _update(self, job: str) -> None:
        self._change(job)

    def _pause(self, job: str) -> None:
        self._command(CommandKind.PAUSE, job=job)

    def _resume(self, job: str) -> None:
        self._command(CommandKind.RESUME, job=job)

    def _delete(self, job: str) -> None:
        if self._chance.random() < 0.5:
            self._publisher.send(self._namespace.jobs, job.encode(), None)
        else:
            self._command(CommandKind.DELETE, job=job)

    def _once(self, _: str) -> None:
        self._at("once", "tick")

    def _for_nobody(self, _: str) -> None:
        self._at(NOBODY, NOBODY)

    def _at(self, name: str, handler: str) -> None:
        self._count += 1
        at_s = now_ms() // 1000 + self._chance.randint(2, 15)
        moment = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ahead = self._chance.choice(("0s", "3s"))
        self._define(f"{name}-{self._count}", {"at": moment}, handler, **STURDY, dispatch_ahead=ahead)

    def _trigger(self, _: str) -> None:
        self._last_trigger = self._command(CommandKind.TRIGGER, job="by-hand")

    def _twice(self, _: str) -> None:
        """The same command once more: its id makes it harmless."""
        if self._last_trigger:
            self._publisher.send(self._namespace.control, None, self._last_trigger)

    def _cancel(self, _: str) -> None:
        """One of the runs that have not ended as far as is known; it may end meanwhile."""
        place, runs = self._chance.random(), sorted(run for run in self._alive() if run.startswith(CANCELLED))
        if runs:
            self._command(CommandKind.CANCEL, run=runs[int(place * len(runs))])

    def _absurd(self, _: str) -> None:
        ident = self._ident()
        if self._chance.random() < 0.6:
            key, value = self._chance.choice(absurd_definitions())
            self._publisher.send(self._namespace.jobs, key, value)
        else:
            self._publisher.send(self._namespace.control, None, self._chance.choice(absurd_commands(ident)))

    def _trigger_trek(self, _: str) -> None:
        self._command(CommandKind.TRIGGER, job="by-hand-trek")

    # -- records -------------------------------------------------------------------------------------------------------

    def _change(self, job: str) -> None:
        every = self._chance.choice((3, 4, 6, 8))
        ahead, overlap = self._chance.choice(("0s", "2s")), self._chance.choice(("skip", "allow"))
        handler = self._chance.choice(("tick", "tick", "nap"))
        self._define(job, {"every": f"{every}s"}, handler, **STURDY, dispatch_ahead=ahead, overlap=overlap)

    def _define(self, job: str, schedule: object, handler: str, **fields: object) -> None:
        value = {"id": job, "schedule": schedule, "handler": handler, **fields}
        self._publisher.send(self._namespace.jobs, job.encode(), json.dumps(value).encode())

    def _command(self, kind: CommandKind, *, job: str = "", run: str = "") -> bytes:
        value = encode(Command(id=self._ident(), kind=kind, by="proof", job=job, run=run))
        self._publisher.send(self._namespace.control, None, value)
        return value

    def _ident(self) -> str:
        return uuid.UUID(int=self._chance.getrandbits(128), version=4).hex
