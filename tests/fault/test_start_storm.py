"""T26: many standbys that start at once, while one leads and while the leader dies among them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dueline.schemas.ledger import Barrier
from tests.fault.cluster import SESSION_S, Cluster
from tests.fault.judge import World

JOB = "plain"
CROWD = 6
PERIOD_MS = 1_000
"""Of the job: so long a leader may lead and have nothing to write, which the log can't tell from none."""
TAKE_OVER_MS = 1_500
"""From the group's decision to the barrier, while six Pythons start on two cores."""


@pytest.mark.timeout(240)
def test_t26_a_start_storm_of_standbys_costs_at_most_a_session(cluster: Cluster) -> None:
    """Given a leader and six standbys that start at once, each of which moves the group to another generation, then no time
    without a leader is longer than the session time-out, and the first leader leads on. Given the leader killed while six more
    start, then the next one's barrier comes within the session time-out and what a take-over takes. Nothing is lost."""
    cluster.publish(JOB, {"every": "1s"})
    cluster.worker("w1")
    first = cluster.scheduler("s1")
    cluster.until_led_by(first)
    cluster.until_goes_on(JOB)
    quiet = len(cluster.barriers())

    crowd = [cluster.scheduler(f"x{number}") for number in range(CROWD)]
    cluster.until_both(first, *crowd)
    cluster.until_goes_on(JOB)
    assert cluster.leader() is first
    assert len(cluster.barriers()) > quiet, "no standby moved the group: the test proves nothing"
    storm = gaps(cluster.judged(JOB))
    assert max(storm) <= SESSION_S * 1000 + PERIOD_MS, f"times without a leader: {storm} ms"

    for process in crowd:
        cluster.kill(process)
    cluster.until("the leader is alone", lambda: cluster._settled(1))
    cluster.until_goes_on(JOB)
    for process in crowd:
        cluster.scheduler(process.name)
    cluster.until("one of them joins", lambda: any("generation" in process.log() for process in crowd))
    cluster.kill(first)
    cluster.until_goes_on(JOB)
    death = gaps(cluster.judged(JOB))[len(storm) :]
    assert max(death) <= SESSION_S * 1000 + PERIOD_MS + TAKE_OVER_MS, f"times without a leader: {death} ms"


def gaps(world: World) -> list[int]:
    """Times without a leader, milliseconds: from the last record of a term to the next barrier, so at most PERIOD_MS too long."""
    return [after.append_ms - before.append_ms for before, after in pairwise(world.ledger) if isinstance(after.record, Barrier)]
