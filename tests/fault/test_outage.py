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

TRANSACTION_S = 3.0
QUICK: dict[str, object] = {"transaction_timeout_s": TRANSACTION_S}
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
    due times go on, the run is resumed, and refusals can be read. The leader's transaction is one time the one, one time the
    other producer's; the broker does not forget every time, so it is killed more than once."""
    cluster = outlived
    leader = cluster.scheduler("s1", quick={**QUICK, "doubt_bound_s": 1.0})
    worker = cluster.worker("w1", quick=QUICK)
    cluster.publish("plain", {"every": "1s"})
    cluster.define("long", "many", payload=STEPS)
    for outage in range(OUTAGES):
        cluster.until_goes_on("plain", 2 + outage)
        run = cluster.trigger("long")
        cluster.until_effects(run, 3)
        at = leader.log_size(), worker.log_size()
        worker.arm("worker.before-commit=block")
        cluster.until_said(worker, "failpoint worker.before-commit: block", since=at[1])
        leader.arm("leader.before-commit=block")
        cluster.rig.send(cluster.rig.namespace.control, None, b"no command")  # so that a letter is in what stands open
        cluster.until_said(leader, "failpoint leader.before-commit: block", since=at[0])
        own_broker.kill()
        time.sleep(TRANSACTION_S + 1.0)  # awaited: the end of the transactions' time
        own_broker.start()
        leader.arm("")
        worker.arm("")
        cluster.until_goes_on("plain")
        cluster.until_state(run, RunState.SUCCEEDED)
        cluster.until("everything in `rejected` can be read", partial(_can_be_read, cluster, cluster.rig.namespace.rejected))
    sys.stdout.write(f"forgotten: {(tmp_path / 'own-broker' / 'broker.log').read_text().count(FORGOTTEN)}\n")
    cluster.judged("plain")


def _can_be_read(cluster: Cluster, topic: str) -> bool:
    return cluster.rig.cluster.admin().stands_open((topic, 0)) is False
