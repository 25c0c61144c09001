"""Three long stories, told at the same time so that they take a minute together: leaders killed at random, workers killed at
random, a broker that goes away. Each is on a cluster of its own, driven by one thread, by the seed it is given."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field
from typing import Final

from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.schemas.run import RunState
from tests.fault.cluster import Cluster
from tests.fault.process import Process

JOB: Final = "plain"
LONG: Final = "long"
STEPS: Final = 200
KILLS: Final = 20
STORM_S: Final = 60.0
AWAY_S: Final = 60.0
AWAY_AT_START_S: Final = 4.0
LAST_S: Final = 200.0
"""For a run that is killed 20 times, with the other stories beside it; it takes a minute."""


@dataclass
class Told:
    """What a story did."""

    acts: list[str] = field(default_factory=list)


# --- leaders ----------------------------------------------------------------------------------------------------------


def leaders_killed_at_random(cluster: Cluster, seed: int) -> Told:
    """For a minute two schedulers contend, while one of them is killed, killed inside a transaction, or frozen."""
    chance, told = random.Random(seed), Told()
    cluster.publish(JOB, {"every": "1s"})
    cluster.worker("w1")
    pair = [cluster.scheduler(name) for name in ("s1", "s2")]
    cluster.leader()
    end_s = time.monotonic() + STORM_S
    while time.monotonic() < end_s:
        for process in pair:
            if not process.runs:
                cluster.scheduler(process.name)
        terms = len(cluster.barriers())
        leader = cluster.leader()
        act = chance.choice((kill, kill_inside, freeze, kill_standby))
        told.acts.append(f"{act.__name__} {leader.name}")
        act(cluster, leader, chance)
        pause_s = time.monotonic() + chance.uniform(0.5, 2.5)
        cluster.until("a moment of peace", lambda s=pause_s: time.monotonic() > s)  # type: ignore[misc]
        if act is not kill_standby:
            cluster.until("the next term", lambda n=terms: len(cluster.barriers()) > n)  # type: ignore[misc]
    for process in pair:
        if not process.runs:
            cluster.scheduler(process.name)
        process.arm("")
    cluster.until_goes_on(JOB)
    return told


def kill(cluster: Cluster, leader: Process, _: random.Random) -> None:
    """SIGKILL the leader, wherever it is."""
    cluster.kill(leader)


def kill_inside(cluster: Cluster, leader: Process, chance: random.Random) -> None:
    """SIGKILL it inside a transaction."""
    point = chance.choice(("before-offsets", "after-offsets", "before-commit", "after-commit"))
    cluster.may_end(leader)
    leader.arm(f"leader.{point}=kill@{chance.randint(1, 3)}")
    cluster.until("the leader is killed", lambda: not leader.runs)


def freeze(cluster: Cluster, leader: Process, chance: random.Random) -> None:
    """Stop it for longer than its session, and wake it."""
    terms = len(cluster.barriers())
    leader.signal(signal.SIGSTOP)
    wake_s = time.monotonic() + chance.uniform(2.5, 4.5)
    cluster.until("it was frozen long enough", lambda: time.monotonic() > wake_s)
    leader.signal(signal.SIGCONT)
    cluster.until("a term after the frozen one", lambda: len(cluster.barriers()) > terms)


def kill_standby(cluster: Cluster, leader: Process, _: random.Random) -> None:
    """SIGKILL the other one: a new generation for the leader."""
    for process in cluster.processes.values():
        if process.name.startswith("s") and process is not leader:
            cluster.kill(process)


# --- workers ----------------------------------------------------------------------------------------------------------


def workers_killed_at_random(cluster: Cluster, seed: int) -> Told:
    """A run of 200 steps, whose worker is killed at 20 of them: before or after the effect, on either side of the step's
    commit, or within the next 5 ms, wherever it is then."""
    chance, told = random.Random(seed), Told()
    stretch = STEPS // KILLS
    ways = ("before", "after", "worker.before-commit", "worker.after-commit", "soon")
    kills = {number * stretch + chance.randrange(stretch // 2): chance.choice(ways) for number in range(KILLS)}
    cluster.scheduler("s1")
    cluster.define(LONG, "doomed", payload={"steps": STEPS, "kills": {str(step): how for step, how in kills.items()}})
    crew = [cluster.worker(name) for name in ("w1", "w2", "w3")]
    for worker in crew:
        cluster.may_end(worker)
    run = cluster.trigger(LONG)

    def ended() -> bool:
        for worker in crew:
            if not worker.runs:
                told.acts.append(f"{worker.name} killed after {len(cluster.effects_of(run))} effects")
                cluster.worker(worker.name)
                cluster.may_end(worker)
        last = cluster.run(run)
        return last is not None and last.state in ENDS

    cluster.until(f"{run} ends", ended, LAST_S)
    return told


ENDS: Final = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED)


# --- the broker -------------------------------------------------------------------------------------------------------


@dataclass
class Away(Told):
    """The logs of scheduler and worker in each outage."""

    at_start: dict[str, str] = field(default_factory=dict)
    in_the_middle: dict[str, str] = field(default_factory=dict)
    back_after_s: float = 0.0


def broker_away(cluster: Cluster, broker: EmbeddedBroker) -> Away:
    """It is away when scheduler and worker start, and for a minute in the middle."""
    told = Away()
    cluster.publish(JOB, {"every": "1s"})
    broker.stop()
    processes = {"scheduler": cluster.scheduler("s1"), "worker": cluster.worker("w1")}
    cluster.until_said(processes["scheduler"], "waiting for Kafka", "no Kafka broker answers")
    cluster.until_said(processes["worker"], "does not answer", "no Kafka broker answers")
    _stay_away(cluster, AWAY_AT_START_S)
    told.at_start = {name: process.log() for name, process in processes.items()}
    broker.start()
    cluster.until_led_by(processes["scheduler"])
    cluster.until_goes_on(JOB)
    cluster.until("effects", lambda: len(cluster.outbox.look()) >= 3)
    since = {name: process.log_size() for name, process in processes.items()}
    broker.kill()
    _stay_away(cluster, AWAY_S)
    broker.start()
    back_s = time.monotonic()
    told.in_the_middle = {name: process.log(since[name]) for name, process in processes.items()}
    cluster.until_goes_on(JOB, 1)
    told.back_after_s = time.monotonic() - back_s
    done = len(cluster.outbox.look())
    cluster.until("effects", lambda: len(cluster.outbox.look()) > done + 3)
    cluster.until_goes_on(JOB)
    return told


def _stay_away(cluster: Cluster, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    cluster.until(f"{seconds:.0f} s without a broker", lambda: time.monotonic() > end_s, seconds + 5)
