"""What a run is asked to do: everything but chance comes from here, and chance from the seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NAMESPACE: Final = "proof"
QUEUE: Final = "default"
PARTITIONS: Final = 4
SESSION_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Times in seconds. `kinds`: names, all of them if empty. `pause_s`: between the beginnings of two faults, drawn from
    there; faults may overlap. `session_s` and `worker_timeout_s` are settings of the processes."""

    faults: int
    seed: int
    out: Path
    nodes: int = 1
    kinds: tuple[str, ...] = ()
    schedulers: int = 2
    workers: int = 3
    session_s: float = SESSION_S
    worker_timeout_s: float = 2.0
    heartbeat_s: float = 0.4
    pause_s: tuple[float, float] = (0.8, 2.8)
    at_once: int = 3
    apart_s: float = 0.0
    """Above 0, faults come one after the other: each that long after the one before is over, one leads and another stands by, so
    that every take-over is measured by itself."""
    quiet_s: float = 120.0
    """After the last fault, how long it may take until fewer of the runs due so far are left than ever before: a backlog that
    shrinks is waited for, since how fast it does is the machine's doing."""
    lateness_s: float = 20.0
    """How late a run may begin after the faults that stood in its way."""
    scheduler_fields: dict[str, object] = field(
        default_factory=lambda: {
            "transaction_timeout_s": 5.0, "doubt_bound_s": 3.0, "max_poll_interval_s": 6.0, "skew_patience_s": 8.0,
            "resign_pause_s": 4.0, "fresh_heartbeat_s": 1.5,
        }
    )  # fmt: skip
    worker_transaction_s: float = 4.0

    @property
    def moves_broker_clocks(self) -> bool:
        """Whether brokers must run under libfaketime."""
        return any(kind.startswith("clock-") and kind.endswith("-broker") for kind in self.kinds)

    @property
    def scheduler_names(self) -> list[str]:
        """s1, s2, ..."""
        return [f"s{number}" for number in range(1, self.schedulers + 1)]

    @property
    def worker_names(self) -> list[str]:
        """w1, w2, ..."""
        return [f"w{number}" for number in range(1, self.workers + 1)]
