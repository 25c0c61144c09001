"""The long stories of `storms`: what must be true after each."""

from __future__ import annotations

import os
import random
import re
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.schemas.run import RunState
from tests.broker import BrokerKind, TestBroker
from tests.fault import storms
from tests.fault.cluster import Cluster, running
from tests.fault.judge import repeated

OF_A_RUN = "dueline.workers.acts: run "
SEED = "FAULT_SEED"
"""Names the environment variable that repeats a storm's choices; the timing stays the machine's."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass
class Told:
    """A story under way or told, and its cluster."""

    cluster: Cluster
    story: Future[Any]
    seed: int

    def end(self) -> Any:
        """What it did; raises what it raised."""
        sys.stdout.write(f"to tell it again: {SEED}={self.seed}\n")
        told = self.story.result()
        sys.stdout.write(f"{told.acts}\n")
        return told


@pytest.fixture(scope="module")
def stories(
    broker: TestBroker, broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Told]]:
    """All three at the same time."""
    folder = tmp_path_factory.mktemp("storms")
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        told: dict[str, Told] = {}

        def tell(name: str, servers: str, story: Any, given: Any) -> None:
            made = stack.enter_context(running(servers, f"{name}-{uuid.uuid4().hex[:8]}", folder / name))
            told[name] = Told(cluster=made, story=pool.submit(story, made, given), seed=seed)

        if broker_kind is BrokerKind.EMBEDDED:
            own = stack.enter_context(EmbeddedBroker(folder / "own-broker"))
            tell("away", own.bootstrap_servers, storms.broker_away, own)
        tell("leaders", broker.bootstrap_servers, storms.leaders_killed_at_random, seed)
        tell("workers", broker.bootstrap_servers, storms.workers_killed_at_random, seed)
        yield told
        pool.shutdown()


def test_two_leaders_under_random_kills_leave_one_record_for_each_due_time(stories: dict[str, Told]) -> None:
    """Given two schedulers that contend for 60 s while leaders are killed, killed inside transactions and frozen at random,
    then every due time has exactly one run record, and the audit finds nothing."""
    cluster, told = stories["leaders"].cluster, stories["leaders"].end()
    cluster.judged(storms.JOB)
    assert len({barrier.id for barrier in cluster.barriers()}) > len(told.acts) / 2
    assert len(cluster.ledger.due_times(storms.JOB)) >= storms.STORM_S * 0.9


def test_a_worker_killed_twenty_times_repeats_at_most_the_step_in_flight(stories: dict[str, Told]) -> None:
    """Given a run of 200 steps whose worker is killed 20 times at random, then each step's effect happened once or, for the one
    in flight at a kill, twice with the same key; and the run ends well."""
    cluster, told = stories["workers"].cluster, stories["workers"].end()
    world = cluster.judged()
    [run] = cluster.ledger.runs().values()
    assert run.state == RunState.SUCCEEDED
    assert len(told.acts) == storms.KILLS <= run.losses
    counts = Counter(effect.key for effect in world.effects)
    assert len(counts) == storms.STEPS
    assert len(repeated(world.effects)) <= run.losses


def test_a_broker_away_at_the_start_and_for_a_minute_costs_time_and_nothing_else(stories: dict[str, Told]) -> None:
    """Given a broker that is away when scheduler and worker start, and for 60 s later, then both wait, say so without flooding
    their logs, come back by themselves, and every due time has run once."""
    if "away" not in stories:
        pytest.skip("kills its broker, which only --broker embedded can")
    cluster, told = stories["away"].cluster, stories["away"].end()
    cluster.judged(storms.JOB)
    for outage, logs in (("at the start", told.at_start), ("in the middle", told.in_the_middle)):
        for who, log in logs.items():
            assert "Traceback" not in log, f"{who} {outage}:\n{log}"
            assert "no Kafka broker answers" in log or "waiting for Kafka" in log, f"{who} {outage} said nothing:\n{log}"
            repeats = {line: count for line, count in spoken(log).items() if count > 3}
            assert repeats == {}, f"{who} {outage} says the same again and again:\n{log}"


def spoken(log: str) -> Counter[str]:
    """How often each thing was said, whatever the numbers in it, but for what is said to those who look for bugs, and of each run
    once: a backlog begins all at once when the broker is back."""
    told = [line for line in log.splitlines() if re.match(r"\d{4}-\S+ \S+ [^D]", line) and OF_A_RUN not in line]
    lines = [re.sub(r"^\S+ \S+ ", "", line) for line in told]
    return Counter(re.sub(r"\d+(\.\d+)?", "#", line) for line in lines)
