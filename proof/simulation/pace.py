"""How often waiting loops of processes look up in a simulation: less often than in production, so that an idle hour is cheap.

Each of these bounds only how late a loop notices something that nobody wakes it for. No time-out, lease or bound of the protocol
is touched, and every record still wakes the loop that waits for it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dueline.scheduler.kafka.watchdog import Watchdog
from dueline.workers.threads import Threads
from proof.simulation.substitution import KAFKA, Names

IDLE_WAIT_S: Final = 1.0
"""`SchedulerSettings.idle_wait_s`: how late a leader takes up a command or a job when no worker has anything to say."""
HEARTBEAT_S: Final = 3.0
"""`WorkerSettings.heartbeat_s`: a third of the worker time-out at most, as the settings demand."""


class PacedThreads(Threads):
    """The worker's shell, unchanged but for its pace."""

    FEED_WAIT_S = 2.0  # how late a stop or a seek is seen


PACE: Final[Names] = {
    ("dueline.scheduler.leader.scheduler", "FOLLOW_WAIT_S"): 1.0,  # a standby's look at the election
    ("dueline.workers.worker", "MAX_WAIT_S"): 2.0,  # how late a worker sees its stop event
    ("dueline.workers.worker", "SERVE_S"): 5.0,  # how late an idle producer hears what its client has to say
    ("dueline.workers.process", "Threads"): PacedThreads,
    (f"{KAFKA}.contact", "INTERVAL_S"): 2.0,  # between two probes; an answer is in time within the same 2 s
    (f"{KAFKA}.group", "SLICE_S"): 1.0,  # how late a rebalance inside a wait is reported
    (f"{KAFKA}.plain", "POLL_S"): 2.0,  # how late a stop is seen; delivery reports wake it
    (f"{KAFKA}.cluster", "Watchdog"): partial(Watchdog, tick_s=1.0),  # its bounds are tens of seconds
}
