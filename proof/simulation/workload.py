"""What users do to a simulated cluster: publish jobs, change, pause, delete and trigger them, all at times that a seed decides.

The acts are worked out before the world begins and do not depend on what happens in it: a fault left out changes nothing
here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dueline.schemas.codec import encode
from dueline.schemas.command_definition import command_from
from dueline.schemas.definition import job_from
from dueline.schemas.duration import parse_duration
from dueline.schemas.run import run_key
from dueline.schemas.topics import Namespace

QUEUE: Final = "work"
BEGIN_S: Final = 20.0
"""When jobs are published: the processes have started."""

Definition = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One record that a user sends."""

    at_s: float
    topic: str
    key: bytes
    value: bytes | None


def base_jobs() -> list[Definition]:
    """Jobs that stand from the beginning: about 500 runs an hour."""
    return [
        {"id": "tick", "schedule": {"every": "60s"}, "handler": "ping"},
        {"id": "steps", "schedule": {"every": "60s"}, "handler": "steps"},
        {"id": "orders", "schedule": {"every": "45s"}, "handler": "orders", "dispatch_ahead": "30s"},
        {"id": "cron", "schedule": {"cron": "*/2 * * * *", "tz": "Europe/Berlin"}, "handler": "ping", "dispatch_ahead": "0s"},
        {"id": "slow", "schedule": {"every": "90s"}, "handler": "slow"},
        {"id": "crowd", "schedule": {"every": "50s"}, "handler": "slow", "overlap": "allow", "max_concurrent": 2},
        {
            "id": "all", "schedule": {"every": "80s"}, "handler": "steps", "misfire": "all", "misfire_grace": "10s",
            "catch_up_max": 5, "overlap": "allow",
        },
        {"id": "skip", "schedule": {"every": "100s"}, "handler": "ping", "misfire": "skip", "misfire_grace": "5s"},
        {"id": "fails", "schedule": {"every": "5m"}, "handler": "fails", "retry": {"max": 2, "backoff": "5s"}},
        {"id": "fragile", "schedule": {"every": "4m"}, "handler": "orders", "max_worker_losses": 0, "retry": {"max": 0}},
    ]  # fmt: skip


class Workload:
    """Acts of one world. `epoch_ms`: the wall-clock time of virtual second 0. `load`: 1 for about 500 runs an hour."""

    def __init__(self, seed: int, namespace: Namespace, *, epoch_ms: int, until_s: float, load: float = 1.0) -> None:
        self._dice = random.Random(f"workload of {seed}")
        self._namespace = namespace
        self._epoch_ms, self._until_s, self._load = epoch_ms, until_s, load
        self._jobs = {job["id"]: self._slower(job) for job in base_jobs()}
        self._commands = 0

    def acts(self) -> list[Act]:
        """All of them, in order."""
        acts = [self._publish(BEGIN_S + 0.1 * number, job) for number, job in enumerate(self._jobs.values())]
        at_s = BEGIN_S + 15.0
        while at_s < self._until_s:
            acts += self._some_act(at_s)
            at_s += self._dice.uniform(20.0, 90.0) / self._load
        return sorted(acts, key=lambda act: act.at_s)

    def _some_act(self, at_s: float) -> Iterator[Act]:
        """One thing a user may do, or a few close together."""
        job = self._dice.choice(sorted(self._jobs))
        soon = at_s + self._dice.choice((0.05, 2.0, 15.0, 70.0))
        match self._dice.choice(
            ("update", "update", "pause", "delete", "tombstone", "trigger", "trigger", "once", "once", "cancel", "bad", "twice")
        ):
            case "update":
                yield self._publish(at_s, self._changed(job))
            case "pause":
                yield self._command(at_s, kind="pause", job=job)
                yield self._command(soon, kind="resume", job=job)
            case "delete":
                yield self._command(at_s, kind="delete", job=job)
                yield self._publish(soon, self._changed(job))
            case "tombstone":
                yield Act(at_s=at_s, topic=self._namespace.jobs, key=job.encode(), value=None)
                yield self._publish(soon, self._changed(job))
            case "trigger":
                yield self._command(at_s, kind="trigger", job=job, payload={"by": "hand"})
            case "once":
                yield self._publish(at_s, self._one_shot(at_s))
            case "cancel":
                yield self._cancel(at_s)
            case "bad":
                yield Act(at_s=at_s, topic=self._namespace.jobs, key=b"bad", value=b'{"id": "bad", "schedule": {"every": "-1s"}}')
                yield self._command(at_s, kind="trigger", job="nobody")
            case "twice":
                act = self._command(at_s, kind="trigger", job=job)
                yield act
                yield Act(at_s=soon, topic=act.topic, key=act.key, value=act.value)

    def _changed(self, name: str) -> Definition:
        """The job with something else in it, from now on."""
        job = self._jobs[name] = dict(self._jobs[name])
        every = job["schedule"].get("every")
        if every is not None and self._dice.random() < 0.5:
            job = self._slower({**job, "schedule": {"every": f"{self._dice.choice((40, 55, 70, 90, 120))}s"}})
            self._jobs[name] = job
        else:
            job["payload"] = {"version": self._dice.randrange(1000)}
        return job

    def _slower(self, job: Definition) -> Definition:
        """The job as often as the load says."""
        every = job["schedule"].get("every")
        if every is None:
            return job
        return {**job, "schedule": {"every": f"{round(parse_duration(every) / 1000 / self._load)}s"}}

    def _one_shot(self, at_s: float) -> Definition:
        """Due in a while, now, or a little ago."""
        ahead_s = self._dice.choice((-20.0, 0.0, 3.0, 12.0, 60.0))
        due = datetime.fromtimestamp(self._epoch_ms / 1000, UTC) + timedelta(seconds=round(at_s + ahead_s))
        self._commands += 1
        handler = self._dice.choice(("ping", "steps", "orders"))
        return {"id": f"at-{self._commands}", "schedule": {"at": due.isoformat()}, "handler": handler}

    def _cancel(self, at_s: float) -> Act:
        """Of the run of `slow` that is about to begin or runs."""
        every_ms = int(self._jobs["slow"]["schedule"]["every"].removesuffix("s")) * 1000
        now_ms = self._epoch_ms + round(at_s * 1000)
        due_ms = (now_ms + self._dice.choice((0, 5_000))) // every_ms * every_ms
        return self._command(at_s, kind="cancel", run=run_key("slow", due_ms))

    def _publish(self, at_s: float, job: Definition) -> Act:
        """As JSON or as Avro."""
        definition = {**job, "queue": QUEUE}
        avro = self._dice.random() < 0.3
        value = encode(job_from(definition)) if avro else json.dumps(definition).encode()
        return Act(at_s=at_s, topic=self._namespace.jobs, key=job["id"].encode(), value=value)

    def _command(self, at_s: float, **fields: object) -> Act:
        self._commands += 1
        command = {"id": f"c{self._commands}", "by": "the workload", **fields}
        avro = self._dice.random() < 0.5
        value = encode(command_from(command)) if avro else json.dumps(command).encode()
        return Act(at_s=at_s, topic=self._namespace.control, key=str(command["id"]).encode(), value=value)
