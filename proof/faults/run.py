"""One run: broker, topics, processes, jobs, faults, quiet, and the history of it all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from dueline.scheduler.kafka.admin import KafkaAdmin
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.topics import init_topics
from dueline.schemas.topics import Cleanup, TopicSpec, catalogue
from proof.faults.clock import now_ms
from proof.faults.driver import Driver
from proof.faults.effects import read_effects
from proof.faults.handlers import conducts
from proof.faults.kinds.table import chosen
from proof.faults.operator import end_forgotten
from proof.faults.plan import NAMESPACE, PARTITIONS, QUEUE, Plan
from proof.faults.recorder import partitions_of, read_log
from proof.faults.trouble import troubles
from proof.faults.workload import Workload
from proof.faults.world import SKEW_MS, World
from proof.history.acts import Bounds, Fault, Noted
from proof.history.history import History

log = logging.getLogger(__name__)

UP_S: Final = 60.0
"""For the first leader and the first workers."""
SETTLE_S: Final = 3.0
"""After the last fault, before what is due by then is judged."""
MARGIN_MS: Final = 3_000


class NotQuiet(Exception):
    """Something due did not end although every fault was over: the promise of liveness is broken, or the machine too slow."""


def run(plan: Plan, on_fault: Callable[[Fault], None] = lambda _: None, on_news: Callable[[str], None] = log.info) -> History:
    """Do it; `plan.out` holds logs and the broker's data. The history tells of troubles, too: what is wrong beside its records,
    and breaks the run. Whatever ends it, no process is left."""
    kinds = chosen(plan.kinds, plan.nodes)
    plan.out.mkdir(parents=True, exist_ok=True)
    world = World(plan, plan.out, on_fault)
    trouble: list[str] = []
    try:
        began_ms = now_ms()
        on_news(f"starting {plan.nodes} broker(s)")
        world.brokers.start()
        make_topics(world)
        world.connect()
        world.crew.start()
        chance = Random(f"{plan.seed}/workload")
        workload = Workload(chance, world.publisher, world.namespace, lambda: world.ledger.alive)
        workload.begin()
        await_leader(world)
        on_news(f"{world.crew.all[0].name} and the others are up: faults begin")
        driver = Driver(world, workload, kinds)
        driver.run()
        on_news("faults are over: waiting until everything due has ended")
        trouble += driver.trouble
        judged_ms = settle(driver)
        trouble += await_quiet(world, driver, workload, judged_ms)
        world.publisher.close()
        world.stop_crew()
        on_news("reading the log")
        servers, names = world.brokers.servers, world.namespace
        places = [*partitions_of(servers, f"{NAMESPACE}."), (world.posts, 0)]
        ended = end_forgotten(servers, places, names.workers, names.leader_ids)
        history = record(world, began_ms, judged_ms)
        logs = [*sorted({child.log_file for child in world.crew.all} | set(plan.out.glob("x*.log"))), plan.out / "nursery.log"]
        more, notes = troubles(history, world.crew.unexpected, logs)
        return replace(history, noted=replace(history.noted, troubles=(*trouble, *more), notes=(*ended, *notes)))
    finally:
        world.close()


def make_topics(world: World) -> None:
    """Those of the namespace, and the one that handlers produce to."""
    plan = world.plan
    copies, insync = (3, 2) if plan.nodes >= 3 else (1, 1)
    specs = catalogue(
        world.namespace, [QUEUE], partitions=PARTITIONS, replication_factor=copies, min_insync_replicas=insync,
        development=copies < 3,
    )  # fmt: skip
    posts = TopicSpec(
        name=world.posts, partitions=1, cleanup=Cleanup.DELETE, why="records of handlers", replication_factor=copies,
        config={"min.insync.replicas": str(insync), "message.timestamp.type": "LogAppendTime"}, development=copies < 3,
    )  # fmt: skip
    admin = KafkaAdmin(KafkaConfig(bootstrap_servers=world.brokers.servers), "proof", answer_s=30.0)
    report = init_topics(admin, world.namespace, [*specs, posts])
    if not report.fit:
        raise RuntimeError(f"the topics are not fit: {report.problems}")


def await_leader(world: World) -> None:
    """Somebody leads, and a run has ended: workers work. Raises TimeoutError."""
    end_s = time.monotonic() + UP_S
    while world.leader() is None or not read_effects(world.crew.effects_file):
        if time.monotonic() > end_s:
            words = "\n".join(f"--- {child.name}\n{child.last_words()}" for child in world.crew.all)
            raise TimeoutError(f"no leader, or no effect, within {UP_S:.0f} s\n{words}")
        world.pump()


def settle(driver: Driver) -> int:
    """A moment of peace; the instant up to which due times are judged."""
    end_s = time.monotonic() + SETTLE_S
    while time.monotonic() < end_s:
        driver.round()
    return now_ms()


def await_quiet(world: World, driver: Driver, workload: Workload, judged_ms: int) -> list[str]:
    """Everything due by then has been decided and has ended; what has not, in words."""
    fewest, end_s = -1, time.monotonic() + world.plan.quiet_s
    while world.ledger.reached_ms < judged_ms + MARGIN_MS or world.ledger.unended(judged_ms):
        left = world.ledger.unended(judged_ms)
        if fewest < 0 or len(left) < fewest:  # a backlog that shrinks is no trouble, however long it is
            fewest, end_s = len(left), time.monotonic() + world.plan.quiet_s
        if time.monotonic() > end_s:
            ahead_ms = world.ledger.reached_ms - judged_ms
            waited = f"for {world.plan.quiet_s:.0f} s after the faults none of"
            return [f"{waited} {len(left)} runs has ended ({left[:10]}); the leader is {ahead_ms} ms past what is judged"]
        workload.let_go()
        driver.round()
    return []


def record(world: World, began_ms: int, judged_ms: int) -> History:
    """The history, once every process has ended."""
    servers, plan = world.brokers.servers, world.plan
    entries = read_log(servers, [*partitions_of(servers, f"{NAMESPACE}."), (world.posts, 0)])
    for where, kept in world.kept_log.items():  # what a fault made Kafka drop
        known = {entry.offset for entry in entries[where]}
        entries[where] = sorted(
            [*entries[where], *(entry for entry in kept if entry.offset not in known)], key=lambda entry: entry.offset
        )
    noted = Noted(
        published=world.notes.sent,
        effects=read_effects(world.crew.effects_file),
        faults=world.notes.faults,
        lives=world.notes.lives,
        conducts=conducts(world.posts),
    )
    return History(
        title=f"{world.notes.injected} faults on {plan.nodes} broker(s), seed {plan.seed}",
        seed=plan.seed,
        prefix=NAMESPACE,
        began_ms=began_ms,
        judged_ms=judged_ms,
        log=entries,
        noted=noted,
        bounds=Bounds(
            lateness_ms=round(plan.lateness_s * 1000),
            skew_ms=SKEW_MS,
            worker_timeout_ms=round(plan.worker_timeout_s * 1000),
            session_ms=round(plan.session_s * 1000),
        ),
    )


def folder_of(plan: Plan) -> Path:
    """Where the history of a run is kept."""
    return plan.out / "history"
