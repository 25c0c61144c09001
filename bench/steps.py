"""A run of many steps, one after the other, beside a raw loop that commits the same records one by one.

    python -m bench steps [--steps 1000] [--json]

A step is a transaction in the worker's group-commit loop; nothing else runs, so nothing shares it. The figure is how
long `ctx.step` takes, as the handler measures it.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from statistics import median

from bench.raw import one_by_one, twin
from bench.world import QUEUE, World, machine, world
from dueline.scheduler.core.ports import Outgoing
from dueline.schemas.codec import decode, encode, headers
from dueline.schemas.job import Job
from dueline.schemas.run import Run, RunState

HANDLERS = {"steps": "bench.handlers:steps"}
LEAD_S = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Milliseconds of a step. `ratio`: dueline's mean over the raw loop's."""

    steps: int
    record_bytes: int  # key and value of one record
    mean_ms: float
    p50_ms: float
    p99_ms: float
    raw_mean_ms: float
    raw_p50_ms: float
    raw_p99_ms: float
    ratio: float
    machine: str


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench steps", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1_000, metavar="N", help="of the run (default 1,000)")
    parser.add_argument("--bootstrap-servers", default="", metavar="HOST:PORT", help="default: an embedded broker of its own")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    result = measure(options.steps, options.bootstrap_servers)
    if options.json:
        print(json.dumps({name: getattr(result, name) for name in result.__slots__}, indent=2))
        return 0
    print(f"{result.steps:,} sequential steps of {result.record_bytes} bytes, {result.machine}")
    print(f"  dueline    mean {result.mean_ms:6.2f} ms   p50 {result.p50_ms:6.2f}   p99 {result.p99_ms:6.2f}")
    print(f"  raw loop   mean {result.raw_mean_ms:6.2f} ms   p50 {result.raw_p50_ms:6.2f}   p99 {result.raw_p99_ms:6.2f}")
    print(f"  ratio      {result.ratio:.2f}")
    return 0


def measure(steps: int, bootstrap_servers: str = "") -> Steps:
    """One run of so many steps, then the raw loop on the same broker."""
    before = machine()
    with world(bootstrap_servers) as made:
        took_ms = sorted(each / 1000 for each in _run(made, steps))
        records = [record for record in made.records(made.namespace.steps) if record.value is not None]
        assert len(records) == steps, f"{len(records)} step records stand in the log, {steps} were made"
        made.crew.kill()
        raw_ms = sorted(one_by_one(made.bootstrap_servers, twin(records, made.namespace.name, made.twin.name)))
    size = sum(len(record.key or b"") + len(record.value or b"") for record in records) // steps
    mean, raw_mean = sum(took_ms) / steps, sum(raw_ms) / steps
    return Steps(
        steps=steps, record_bytes=size, machine=before, ratio=mean / raw_mean,
        mean_ms=mean, p50_ms=median(took_ms), p99_ms=took_ms[int(steps * 0.99)],
        raw_mean_ms=raw_mean, raw_p50_ms=median(raw_ms), raw_p99_ms=raw_ms[int(steps * 0.99)],
    )  # fmt: skip


def _run(made: World, steps: int) -> list[int]:
    """Microseconds of each step, as the handler returned them."""
    made.add_worker("worker", HANDLERS, slots=1)
    for child in made.crew.all:
        child.start()
    due_s = int(time.time()) + LEAD_S
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due_s))
    job = Job(
        id="steps", schedule=json.dumps({"at": at}), handler="steps", queue=QUEUE, payload=json.dumps({"steps": steps}),
        misfire="latest",
    )  # fmt: skip
    writer = made.cluster.plain_writer("jobs")
    writer.send(Outgoing(topic=made.namespace.jobs, key=job.id.encode(), value=encode(job), headers=headers(job), partition=0))
    writer.close()
    ended: list[Run] = []
    reader = made.cluster.log_reader("ledger")
    reader.assign({(made.namespace.runs, 0): 0})

    def done() -> bool:
        for received in reader.poll(0.0, 1_000):
            record = decode(received.value) if received.value is not None else None
            if isinstance(record, Run) and record.state in (RunState.SUCCEEDED, RunState.FAILED):
                ended.append(record)
        return bool(ended)

    made.until("the run to end", done, 120 + steps * 0.1)
    reader.close()
    if ended[0].state != RunState.SUCCEEDED:
        raise AssertionError(f"the run failed: {ended[0].error}")
    took: list[int] = json.loads(ended[0].result)
    return took
