"""Where the time of one burst goes in the pure core: N jobs due at once, planned, applied, offered. No broker, no network.

    python -m bench.plan [--jobs 20000] [--workers 16] [--profile]

Prints milliseconds of processor time for each stage, and with --profile the hottest functions.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import TypeVar

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.fleet import Fleet
from dueline.scheduler.core.inputs import Inputs, Settings
from dueline.scheduler.core.plan import plan
from dueline.scheduler.core.state import State
from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.work import Heartbeat, WorkerState

DUE_MS = 1_800_000_000_000 - 1_800_000_000_000 % 3_600_000
PARTITIONS = 64

T = TypeVar("T")


def main() -> None:
    """Run the burst and print its stages."""
    options = _options()
    times: dict[str, float] = {}
    state = _measured(times, "fold the versions", lambda: folded(options.jobs))
    _measured(times, "first due times", state.settle)
    inputs = Inputs(fleet=fleet(options.workers, options.jobs))
    profile = cProfile.Profile()
    started = process_time()
    if options.profile:
        profile.enable()
    rounds = _burst(state, inputs, times)
    profile.disable()
    total = process_time() - started
    for stage, seconds in times.items():
        print(f"{stage:24} {seconds * 1000:9.0f} ms")
    print(f"{'burst, in all':24} {total * 1000:9.0f} ms   {rounds} rounds, {total / options.jobs * 1e6:.0f} µs a run")
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def folded(jobs: int) -> State:
    """A state with this many jobs, all due at the same instant, each once an hour."""
    state = State()
    state.apply_barrier(0)
    for number in range(jobs):
        name = f"job-{number:06}"
        job = Job(id=name, schedule='{"every": "1h"}', handler="h")
        state.apply(
            JobVersion(
                job=name,
                version=1,
                change=Change.DEFINED,
                effective_ms=DUE_MS - 60_000,
                paused=False,
                definition=job,
                source_topic="jobs",
                source_partition=0,
                source_offset=number,
                source_ms=DUE_MS - 60_000,
                term=0,
            )
        )
    return state


def fleet(workers: int, jobs: int) -> Fleet:
    """Workers with a slot for every job, in all."""
    slots = -(-jobs // workers)
    beats = [
        Heartbeat(
            incarnation=f"w{number}.0",
            worker=f"w{number}",
            queue="default",
            home=0,
            state=WorkerState.RUNNING,
            seq=1,
            slots=slots,
            handlers=["h"],
            partitions=[part for part in range(PARTITIONS) if part % workers == number],
        )
        for number in range(workers)
    ]
    return Fleet(workers={beat.incarnation: beat for beat in beats}, queues={"default": PARTITIONS})


def _burst(state: State, inputs: Inputs, times: dict[str, float]) -> int:
    rounds, more = 0, True
    while more:
        decision = _measured(times, "plan", lambda: plan(state, inputs, Settings(), DUE_MS))
        _measured(times, "apply", partial(_apply, state, decision))
        _measured(times, "settle", state.settle)
        rounds, more = rounds + 1, decision.more
    offered = sum(1 for _ in state.offered.between())
    print(f"{offered} runs offered")
    return rounds


def _apply(state: State, decision: Decision) -> None:
    for record in decision.ledger:
        state.apply(record)


def _measured(times: dict[str, float], stage: str, work: Callable[[], T]) -> T:
    started = process_time()
    result = work()
    times[stage] = times.get(stage, 0.0) + process_time() - started
    return result


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Where the time of one burst goes in the pure core.")
    parser.add_argument("--jobs", type=int, default=20_000, help="due at the same instant (default 20,000)")
    parser.add_argument("--workers", type=int, default=16, help="that share the load (default 16, at most 64)")
    parser.add_argument("--profile", action="store_true", help="print the hottest functions too (slower)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
