"""Runs many worlds, each in a child process with a fixed hash seed, so that one seed always gives the same history."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import traceback
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import resource_tracker
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from proof.simulation.plan import FaultKind
from proof.simulation.setup import Setup

if TYPE_CHECKING:
    from proof.simulation.world import Sabotage

HASH_SEED: Final = "0"
LIMIT_S: Final = 200.0
"""Seconds of processor time a world may take for each virtual hour; one that takes longer hangs, and where is a finding."""
WORLDS_A_CHILD: Final = 20
PLANNED: Final = frozenset(kind.value for kind in FaultKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of one world, small enough to be sent between processes. `lines`: what was wrong."""

    setup: Setup
    lines: tuple[str, ...]
    digest: str = ""
    cpu_s: float = 0.0
    due_times: int = 0
    runs: int = 0
    states: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    take_overs: tuple[tuple[str, int], ...] = ()
    steps: int = 0
    steps_again: dict[str, int] = field(default_factory=dict)
    kills_in_flight: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing was wrong."""
        return not self.lines


class Hang(BaseException):
    """A world does not come to its end."""


def run_one(setup: Setup, rule: str = "") -> Report:
    """In this process. `rule`: what is taken out, by its name in `sabotage`."""
    from proof.simulation.world import World  # noqa: PLC0415 - a parent that only waits need not load all of it

    world = World(setup, sabotage=taken_out(rule))

    def give_up(_number: int, frame: FrameType | None) -> None:
        where = traceback.extract_stack(frame)[-6:]
        places = " < ".join(f"{one.filename.rpartition('/')[2]}:{one.lineno}" for one in reversed(where))
        world.diary.findings.append(f"the world hangs at {world.kernel.now_s:.3f} s: {places}")
        world.kernel.stop()
        raise Hang

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, max(60.0, LIMIT_S * setup.end_s / 3600))
    try:
        judgement = world.run()
    except (Exception, Hang) as error:  # noqa: BLE001 - a broken simulation is reported with its seed, and the others go on
        told = "".join(traceback.format_exception(error)[-3:])
        return Report(setup=setup, lines=(*world.diary.findings, f"the simulation broke: {told}"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    verdict = judgement.verdict
    return Report(
        setup=setup,
        lines=tuple(judgement.lines()),
        digest=judgement.digest,
        cpu_s=judgement.cpu_s,
        due_times=verdict.due_times,
        runs=verdict.runs,
        states=verdict.runs_by_state,
        faults=dict(sorted(Counter(one.kind for one in judgement.history.noted.faults if one.kind in PLANNED).items())),
        take_overs=tuple((one.cause, one.took_ms) for one in verdict.take_overs),
        steps=verdict.steps_executed,
        steps_again=dict(verdict.steps_again),
        kills_in_flight=verdict.kills_in_flight,
    )


def taken_out(rule: str) -> Sabotage:
    """By the rule's name; "" takes nothing out. Raises KeyError."""
    from proof.simulation.world import HONEST  # noqa: PLC0415 - as above

    if not rule:
        return HONEST
    from proof.simulation.sabotage import sabotage_of  # noqa: PLC0415 - an honest world needs none of them

    return sabotage_of(rule)


def run_many(setups: Iterable[Setup], *, jobs: int, rule: str = "") -> Generator[Report, None, None]:
    """As they end, on so many processors, at least one. Closed, it ends the others."""
    os.environ["PYTHONHASHSEED"] = HASH_SEED  # of the children, who read it when they start
    context = multiprocessing.get_context("spawn")
    with _deaf_to_ctrl_c():
        pool = context.Pool(jobs, maxtasksperchild=WORLDS_A_CHILD)
    with pool:
        yield from pool.imap_unordered(partial(run_one, rule=rule), setups, chunksize=1)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Ctrl-C reaches every process of the terminal; the parent alone answers, and ends the children. What a thread blocks its own
    threads and children block too: so all of the pool's, also those that it starts later."""
    resource_tracker.ensure_running()  # whoever starts it finds SIGINT unblocked afterwards
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def totals(reports: Iterable[Report]) -> dict[str, Any]:
    """Figures of all of them together, as JSON data."""
    found = list(reports)
    causes: dict[str, list[int]] = {}
    for report in found:
        for cause, took_ms in report.take_overs:
            causes.setdefault(cause, []).append(took_ms)
    return {
        "worlds": len(found),
        "virtual_hours": round(sum(report.setup.hours for report in found), 2),
        "cpu_s": round(sum(report.cpu_s for report in found), 1),
        "due_times": sum(report.due_times for report in found),
        "runs": sum(report.runs for report in found),
        "states": _sum(report.states for report in found),
        "faults": _sum(report.faults for report in found),
        "steps": sum(report.steps for report in found),
        "steps_again": _sum(report.steps_again for report in found),
        "kills_in_flight": sum(report.kills_in_flight for report in found),
        "take_overs_ms": {cause: _spread(sorted(took)) for cause, took in sorted(causes.items())},
        "failed": [
            {"setup": report.setup.to_json(), "lines": list(report.lines)} for report in found if not report.holds
        ],
    }


def replay_command(setup: Setup, rule: str = "") -> str:
    """What shows this world again, exactly; with the rule that was taken out."""
    without = f" --rule {rule}" if rule else ""
    if setup.plan is None:
        load = f" --load {setup.load:g}" if setup.load != 1.0 else ""
        world = f"--seeds {setup.seed} --hours {setup.hours!r} --profile {setup.profile.value}{load}"
    else:
        world = f"--setup '{json.dumps(setup.to_json())}'"
    return f"python -m proof.simulation {world}{without}"


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _spread(ordered: list[int]) -> dict[str, int]:
    return {
        "count": len(ordered), "p50": ordered[len(ordered) // 2], "p95": ordered[int(len(ordered) * 0.95)], "max": ordered[-1],
    }  # fmt: skip
