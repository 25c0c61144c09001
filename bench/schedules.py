"""The schedule engine beside cronsim and croniter, in one run: `python -m bench.schedules`.

Every figure is that of the fastest of many short rounds on the same expressions, the libraries taking turns: on a shared
machine load only ever adds. Compiling reads nothing from a cache: ours are cleared before each call.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from croniter import croniter
from cronsim import CronSim
from rich.console import Console
from rich.table import Table

from dueline.scheduler.core.schedule import compile_schedule, tzdata_version
from dueline.scheduler.core.schedule.compile import forget_compiled
from dueline.scheduler.core.schedule.cron_days import masks_of
from tests.property.schedule.strategies import zone_info

EXPRESSIONS = ("* * * * *", "*/15 * * * *", "0 2 * * *", "30 9 * * 1-5", "0 0 1 * *")
ZONES = ("UTC", "America/New_York")
START = datetime(2026, 6, 1, tzinfo=UTC)
START_MS = int(START.timestamp()) * 1_000
YEAR_MS = 365 * 86_400_000
ROUNDS = 40
CALLS = 50
MANY = 100_000


def microseconds(calls: list[Callable[[], object]]) -> list[float]:
    """The time of each call in µs, of its fastest round; the calls take turns."""
    rounds: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, times in zip(calls, rounds, strict=True):
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            times.append((time.perf_counter() - began) / CALLS * 1e6)
    return [min(times) for times in rounds]


def zone_of(name: str) -> tzinfo:
    """What cronsim and croniter are given: their fastest form of the zone."""
    return UTC if name == "UTC" else zone_info(name)


def next_calls(text: str, zone: str) -> list[Callable[[], object]]:
    """One more step on a kept object: ours, cronsim's, croniter's."""
    schedule = compile_schedule({"cron": text, "tz": zone}, job_id="bench")
    start = START.astimezone(zone_of(zone))
    simulated, iterated = CronSim(text, start), croniter(text, start)
    at = [START_MS]

    def ours() -> None:
        due = schedule.next_after(at[0])
        assert due is not None
        at[0] = due

    return [ours, lambda: next(simulated), lambda: iterated.get_next(float)]


def fresh_calls(text: str, zone: str) -> list[Callable[[], object]]:
    """Compile and the first step: ours, cronsim's; croniter's constructor alone."""
    start = START.astimezone(zone_of(zone))

    def ours() -> None:
        forget_compiled()
        masks_of.cache_clear()
        compile_schedule({"cron": text, "tz": zone}, job_id="bench").next_after(START_MS)

    return [ours, lambda: next(CronSim(text, start)), lambda: croniter(text, start)]


def compare(title: str, columns: tuple[str, str, str], make: Callable[[str, str], list[Callable[[], object]]]) -> Table:
    """A table of one kind of call for every expression and zone; ratios over 1 mean that ours is faster."""
    table = Table(title=title, title_justify="left", box=None)
    for name in ("zone", "expression", *columns, "cronsim / ours", "croniter / ours"):
        table.add_column(name, justify="left" if name in ("zone", "expression") else "right")
    for zone in ZONES:
        for text in EXPRESSIONS:
            ours, simulated, iterated = microseconds(make(text, zone))
            figures = (f"{ours:.2f}", f"{simulated:.2f}", f"{iterated:.2f}")
            table.add_row(zone, text, *figures, f"{simulated / ours:.1f}x", f"{iterated / ours:.1f}x")
    return table


def catch_up() -> Table:
    """The latest missed due time, and how many there were, after a year of a per-minute schedule in New York."""
    schedule = compile_schedule({"cron": "* * * * *", "tz": "America/New_York"}, job_id="bench")
    now = START_MS + YEAR_MS
    calls: list[Callable[[], object]] = [
        lambda: schedule.previous_before(now + 1),
        lambda: schedule.count_between(START_MS + 1, now + 1),
    ]
    latest, count = microseconds(calls)
    table = Table(title="* * * * * in New York, a year missed", title_justify="left", box=None)
    for name in ("latest missed µs", "how many, µs", "due times"):
        table.add_column(name, justify="right")
    table.add_row(f"{latest:.2f}", f"{count:.1f}", f"{schedule.count_between(START_MS + 1, now + 1):,}")
    return table


def memory() -> str:
    """What 100,000 distinct compiled schedules hold, kept by their owner (the cache of the engine keeps 4,096)."""
    specs = [
        {"cron": f"{n % 60} {n // 60 % 24} {n // 1_440 % 28 + 1} {n // 40_320 % 3 + 1}-12 *", "tz": ZONES[n % 2]}
        for n in range(MANY)
    ]
    compile_schedule(specs[0], job_id="bench").next_after(START_MS)
    forget_compiled()
    gc.collect()
    tracemalloc.start()
    kept = []
    for number, spec in enumerate(specs):
        schedule = compile_schedule(spec, job_id=f"job-{number}")
        schedule.next_after(START_MS)
        kept.append(schedule)
    forget_compiled()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return f"{len(kept):,} distinct compiled schedules: {held / 1e6:.0f} MB, {held / len(kept):.0f} bytes each"


def main() -> int:
    """Prints everything."""
    console = Console(width=130)
    console.print(f"Python {sys.version.split()[0]}, tzdata {tzdata_version()}")
    console.print(f"µs a call, fastest of {ROUNDS} rounds of {CALLS} calls\n")
    console.print(compare("next_after on a compiled schedule", ("ours", "cronsim", "croniter"), next_calls), "")
    title = "compile and first next (croniter: its constructor alone)"
    console.print(compare(title, ("ours", "cronsim", "croniter()"), fresh_calls), "")
    console.print(catch_up(), "")
    console.print(memory())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
