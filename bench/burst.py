"""Many jobs due at once, until the last one has started, beside a raw loop with the same bytes and partitions.

    python -m bench burst [--jobs 20000] [--workers 2] [--slots 64] [--prefetch 0] [--json]

Nothing is given out ahead of time (`dispatch_ahead: 0`), so all of the work falls behind the due time. The phases are
read from the log: the append time of what was decided, claimed and granted, and the start as the worker told it.
The raw loop writes what dueline wrote until the starts (run, dispatch; claim; run, grant), slice by slice, each stage's
transaction read back before the next one is written, as the protocol demands; it decides nothing and encodes nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.raw import Wave, pipeline, twin
from bench.stages import show
from bench.world import QUEUE, Failed, World, machine, world
from dueline.scheduler.core.ports import Outgoing, Received
from dueline.schemas.codec import Record, decode, encode, headers
from dueline.schemas.job import Job, JobVersion
from dueline.schemas.run import Run, RunState
from dueline.schemas.work import AttemptEvent, Dispatch, EventKind, Signal, SignalKind

HANDLERS = {"nothing": "bench.handlers:nothing"}
RAW_SLICE = 2_500
"""Runs in one slice of the raw loop: two records each in the leader's transaction, as many as the leader takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Milliseconds after the due time."""

    name: str
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """`last_start_ms` after the due time. `ratio`: that over the raw loop's time."""

    jobs: int
    workers: int
    slots: int
    prefetch: int
    last_start_ms: int
    starts_per_s: int
    p50_ms: int
    p99_ms: int
    attempts: int  # more than jobs where offers were declined and made again
    bytes_per_run: int
    raw_ms: int
    ratio: float
    phases: list[Phase]
    processor_ms: dict[str, int]  # of each process, from the due time until every run had ended
    machine: str


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench burst", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=20_000, metavar="N", help="due at the same instant (default 20,000)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default 2)")
    parser.add_argument("--slots", type=int, default=256, metavar="N", help="of each worker (default 256)")
    parser.add_argument("--prefetch", type=int, default=0, metavar="N", help="of each worker (default 0)")
    parser.add_argument("--lead", type=float, default=0.0, metavar="SECONDS", help="from the first definition to the due time")
    parser.add_argument("--bootstrap-servers", default="", metavar="HOST:PORT", help="default: an embedded broker of its own")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="run under cProfile (slower); leaves *.prof there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    lead_s = options.lead or 10 + options.jobs / 500
    result = measure(
        options.jobs, options.workers, options.slots, options.prefetch, lead_s, options.bootstrap_servers, options.profile
    )
    if options.json:
        print(json.dumps(asdict(result), indent=2))
        return 0
    print(f"{result.jobs:,} jobs due at once, {result.workers} workers of {result.slots} slots "
          f"(prefetch {result.prefetch}), {result.machine}")  # fmt: skip
    print(f"  last start {result.last_start_ms:,} ms after the due time: {result.starts_per_s:,} starts/s "
          f"(p50 {result.p50_ms:,}, p99 {result.p99_ms:,}), {result.attempts:,} attempts")  # fmt: skip
    for phase in result.phases:
        print(f"    {phase.name:34} first {phase.first_ms:7,} ms   last {phase.last_ms:7,} ms")
    used = ", ".join(f"{name} {ms:,} ms" for name, ms in result.processor_ms.items())
    print(f"  processor time until every run had ended: {used}")
    print(f"  raw loop   {result.raw_ms:,} ms for the same {result.bytes_per_run:,} bytes a run")
    print(f"  ratio      {result.ratio:.1f}")
    if options.profile:
        print("where the scheduler's time went, the definitions included, slowed by the profiler:")
        show(options.profile / "scheduler.prof")
    return 0


def measure(
    jobs: int, workers: int, slots: int, prefetch: int, lead_s: float, bootstrap_servers: str = "",
    profiles: Path | None = None,
) -> Burst:  # fmt: skip
    """The burst, then the raw loop on the same broker."""
    before = machine()
    with world(bootstrap_servers, profiles) as made:
        for number in range(1, workers + 1):
            made.add_worker(f"worker-{number}", HANDLERS, slots=slots, prefetch=prefetch)
        for child in made.crew.all:
            child.start()
        due_ms = (int(time.time() + lead_s) + 1) * 1000
        _define(made, jobs, due_ms)
        _await_versions(made, jobs, due_ms)
        made.until("the due time", lambda: time.time() * 1000 >= due_ms, lead_s + 60)
        before_ms = made.processor_ms()
        _await_ends(made, jobs, due_ms)
        used = {name: after - before_ms.get(name, 0) for name, after in made.processor_ms().items()}
        made.stop()
        log = _Log.read(made)
        raw_s = pipeline(made.bootstrap_servers, log.stages(made), RAW_SLICE)
    starts = sorted(log.starts.values())
    if len(starts) != jobs:
        raise Failed(f"{len(starts)} of {jobs} runs have started")
    last_ms = starts[-1] - due_ms
    return Burst(
        jobs=jobs, workers=workers, slots=slots, prefetch=prefetch, machine=before, phases=log.phases(due_ms), processor_ms=used,
        last_start_ms=last_ms, starts_per_s=round(jobs * 1000 / max(last_ms, 1)),
        p50_ms=starts[jobs // 2] - due_ms, p99_ms=starts[int(jobs * 0.99)] - due_ms, attempts=log.attempts,
        bytes_per_run=log.size // jobs, raw_ms=round(raw_s * 1000), ratio=last_ms / (raw_s * 1000),
    )  # fmt: skip


# --- steps ------------------------------------------------------------------------------------------------------------


def _define(made: World, jobs: int, due_ms: int) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due_ms // 1000))
    writer = made.cluster.plain_writer("jobs")
    for number in range(jobs):
        job = Job(
            id=f"job-{number:06}", schedule=json.dumps({"at": at}), handler="nothing", queue=QUEUE, dispatch_ahead_ms=0
        )
        writer.send(
            Outgoing(topic=made.namespace.jobs, key=job.id.encode(), value=encode(job), headers=headers(job), partition=0)
        )
    if writer.flush(60):
        raise Failed("the definitions were not taken within a minute")
    writer.close()


def _await_versions(made: World, jobs: int, due_ms: int) -> None:
    count, last_ms = 0, 0
    reader = made.cluster.log_reader("versions")
    reader.assign({(made.namespace.job_versions, 0): 0})

    def all_there() -> bool:
        nonlocal count, last_ms
        for received in reader.poll(0.0, 10_000):
            if isinstance(decode(received.value or b""), JobVersion):
                count, last_ms = count + 1, received.append_ms
        return count >= jobs

    made.until(f"{jobs:,} job versions", all_there, 120 + jobs / 100)
    reader.close()
    if last_ms > due_ms - 1000:
        raise Failed(f"the last job version came {last_ms - due_ms} ms after the due time: use a longer --lead")


def _await_ends(made: World, jobs: int, due_ms: int) -> None:
    ended: set[str] = set()
    reader = made.cluster.log_reader("ends")
    reader.assign({(made.namespace.runs, 0): 0})

    def all_ended() -> bool:
        for received in reader.poll(0.0, 50_000):
            if dict(received.headers).get("state") == RunState.SUCCEEDED.encode():
                ended.add((received.key or b"").decode())
        return len(ended) >= jobs

    made.until(f"{jobs:,} runs to end", all_ended, due_ms / 1000 - time.time() + 60 + jobs / 50)
    reader.close()


@dataclass(slots=True, kw_only=True)
class _Log:
    """What the burst wrote: of each run its last dispatch, claim and grant, and its first start."""

    offers: dict[str, Received]
    dispatches: dict[str, Received]
    claims: dict[str, Received]
    granted: dict[str, Received]
    grants: dict[str, Received]
    starts: dict[str, int]
    attempts: int

    @classmethod
    def read(cls, made: World) -> _Log:
        """From the topics, by the records' types and states."""
        namespace = made.namespace
        ledger, claims = made.records(namespace.runs), made.records(namespace.attempts)
        starts: dict[str, int] = {}
        for event in map(_decoded, claims):
            if isinstance(event, AttemptEvent) and event.kind == EventKind.FINISHED:
                starts[event.run] = min(event.started_ms, starts.get(event.run, event.started_ms))
        dispatches = made.records(namespace.dispatch(QUEUE))
        return cls(
            offers=_by_key(ledger, lambda record: isinstance(record, Run) and record.state == RunState.DISPATCHED),
            dispatches=_by_key(dispatches, lambda record: isinstance(record, Dispatch)),
            claims=_by_key(claims, lambda record: isinstance(record, AttemptEvent) and record.kind == EventKind.CLAIMED),
            granted=_by_key(ledger, lambda record: isinstance(record, Run) and record.state == RunState.RUNNING),
            grants=_by_key(
                made.records(namespace.signals), lambda record: isinstance(record, Signal) and record.kind == SignalKind.GRANT
            ),
            starts=starts,
            attempts=len(dispatches),
        )

    def stages(self, made: World) -> list[list[Wave]]:
        """For the raw loop: what stands in one transaction, and what the next one waits for."""
        order = list(self.offers)

        def wave(records: dict[str, Received], *, awaited: bool) -> Wave:
            return Wave(
                records=twin([records[key] for key in order], made.namespace.name, made.twin.name), awaited=awaited
            )

        return [
            [wave(self.offers, awaited=False), wave(self.dispatches, awaited=True)],
            [wave(self.claims, awaited=True)],
            [wave(self.granted, awaited=False), wave(self.grants, awaited=True)],
        ]

    def phases(self, due_ms: int) -> list[Phase]:
        """When each kind of record was appended."""

        def phase(name: str, instants: Sequence[int]) -> Phase:
            return Phase(name=name, first_ms=min(instants) - due_ms, last_ms=max(instants) - due_ms)

        return [
            phase("decided and offered (runs)", [each.append_ms for each in self.offers.values()]),
            phase("claimed by a worker (attempts)", [each.append_ms for each in self.claims.values()]),
            phase("granted (runs)", [each.append_ms for each in self.granted.values()]),
            phase("grant sent (signals)", [each.append_ms for each in self.grants.values()]),
            phase("begun (as the worker tells)", list(self.starts.values())),
        ]

    @property
    def size(self) -> int:
        """Bytes of keys and values of what the raw loop writes."""
        parts = (self.offers, self.dispatches, self.claims, self.granted, self.grants)
        return sum(len(each.key or b"") + len(each.value or b"") for part in parts for each in part.values())


def _decoded(received: Received) -> Record | None:
    return decode(received.value) if received.value is not None else None


def _by_key(records: Sequence[Received], wanted: Callable[[Record | None], bool]) -> dict[str, Received]:
    """The last of each run."""
    return {(each.key or b"").decode(): each for each in records if wanted(_decoded(each))}
