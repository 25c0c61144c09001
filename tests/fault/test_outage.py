"""A broker that is killed and stays away for longer than it would keep a transaction open: when it comes back it may forget to
end the transactions that its death cut off (docs/kafka.md), and everything goes on all the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.schemas.run import RunState
from tests.fault.cluster import Cluster, running
from tests.fault.process import Process
from tests.integration.leader.rig import Watch

TRANSACTION_S = 3.0
QUICK: dict[str, object] = {"transaction_timeout_s": TRANSACTION_S}
QUICK_LEADER: dict[str, object] = {**QUICK, "doubt_bound_s": 1.0, "rejected_look_s": 1.0}
STEPS = 40
OUTAGES = 2
FORGOTTEN = "partitions are likely deleted already and hence can be skipped"


@pytest.fixture
def outlived(own_broker: EmbeddedBroker, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    """On a broker of its own."""
    with running(own_broker.bootstrap_servers, namespace, tmp_path / "cluster") as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_a_killed_broker_forgot_to_end_holds_nothing_up(
    outlived: Cluster, own_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Given a leader and a worker with open transactions, when the broker is killed and away for longer than their time-out, then
    due times go on, the run is resumed, and refusals are heard. The leader's transaction is one time the one, one time the
    other producer's; the broker does not forget every time, so it is killed more than once."""
    cluster = outlived
    leader = cluster.scheduler("s1", quick=QUICK_LEADER)
    worker = cluster.worker("w1", quick=QUICK)
    cluster.publish("plain", {"every": "1s"})
    cluster.define("long", "many", payload=STEPS)
    letters = cluster.rig.watch(cluster.rig.namespace.rejected)
    refused: set[tuple[str, int]] = set()
    for outage in range(OUTAGES):
        cluster.until_goes_on("plain", 2 + outage)
        run = cluster.trigger("long")
        cluster.until_effects(run, 3)
        at = worker.log_size()
        worker.arm("worker.before-commit=block")
        cluster.until_said(worker, "failpoint worker.before-commit: block", since=at)
        refused |= _blocked_with_a_letter(cluster, leader)
        own_broker.kill()
        time.sleep(TRANSACTION_S + 1.0)  # awaited: the end of the transactions' time
        own_broker.start()
        leader.arm("")
        worker.arm("")
        cluster.until_goes_on("plain")
        cluster.until_state(run, RunState.SUCCEEDED)
        letters.until(partial(_heard, refused), "letters of what was refused")
    sys.stdout.write(f"forgotten: {(tmp_path / 'own-broker' / 'broker.log').read_text().count(FORGOTTEN)}\n")
    cluster.judged("plain")


def _blocked_with_a_letter(cluster: Cluster, leader: Process) -> set[tuple[str, int]]:
    """The leader blocks before a commit, with a letter in what it has written; the inputs that were refused until it did."""
    rejected, sent = (cluster.rig.namespace.rejected, 0), set[tuple[str, int]]()
    while True:
        since = leader.log_size()
        leader.arm("leader.before-commit=block")
        place = cluster.rig.send(cluster.rig.namespace.control, None, b"no command")
        sent.add((place.topic, place.offset))
        cluster.until_said(leader, "failpoint leader.before-commit: block", since=since)
        if cluster.rig.cluster.admin().open_from(rejected) is not None:
            return sent
        leader.arm("")  # it blocks with something else: a due time came first


def _heard(refused: set[tuple[str, int]], letters: Watch) -> bool:
    return refused <= {(letter.topic, letter.offset) for letter in letters.rejected()}
