"""The ledger as the demo watches it while it goes on: take-overs, runs and fences, each with its append time."""

from __future__ import annotations

from dataclasses import dataclass, field

from dueline.scheduler.core.ports import LogReader, Partition
from dueline.schemas.codec import decode
from dueline.schemas.ledger import Barrier, Fence
from dueline.schemas.run import Run, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """A leader's barrier. Its offset is the term; `pid` is of the scheduler process."""

    term: int
    append_ms: int
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run's record as it stands in the ledger."""

    run: Run
    offset: int
    append_ms: int


@dataclass(slots=True)
class LedgerWatch:
    """Reads `runs` from its beginning; `poll` brings it up to date. Only committed records are seen."""

    reader: LogReader
    partition: Partition
    takeovers: list[TakeOver] = field(default_factory=list)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    fenced: dict[str, int] = field(default_factory=dict)  # worker -> append time of its last fence

    def start(self) -> None:
        """From the first record on."""
        self.reader.assign({self.partition: 0})

    def poll(self, wait_s: float) -> None:
        """Take what there is, after waiting so long for the first record."""
        for received in self.reader.poll(wait_s, 10_000):
            if received.value is None:
                continue
            record = decode(received.value)
            match record:
                case Barrier():
                    pid = int(record.process.rpartition(":")[2])
                    self.takeovers.append(TakeOver(term=received.offset, append_ms=received.append_ms, pid=pid))
                case Run():
                    entry = Entry(run=record, offset=received.offset, append_ms=received.append_ms)
                    self.entries.setdefault(record.key, []).append(entry)
                case Fence():
                    self.fenced[record.worker] = received.append_ms
                case _:
                    pass

    @property
    def leader(self) -> TakeOver:
        """The last take-over. Raises IndexError before the first."""
        return self.takeovers[-1]

    def taken_over_since(self, term: int) -> TakeOver | None:
        """The first take-over after that term."""
        return next((each for each in self.takeovers if each.term > term), None)

    def run(self, key: str) -> Run | None:
        """The run's last record."""
        entries = self.entries.get(key)
        return entries[-1].run if entries else None

    def state(self, key: str) -> str:
        """The run's state; "" while it has no record."""
        run = self.run(key)
        return run.state if run is not None else ""

    def succeeded(self, key: str) -> bool:
        """Whether it did."""
        return self.state(key) == RunState.SUCCEEDED

    def held_ahead(self, key: str) -> bool:
        """Whether a worker was granted the run before its due time, and holds it."""
        run = self.run(key)
        return run is not None and run.state == RunState.RUNNING and run.ahead
