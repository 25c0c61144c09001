"""`python -m proof.faults`: real processes, real faults, and a verdict.

Exit codes: 0 the promise held, 1 it did not, 2 the run could not be done or not be judged, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import random
import sys
import time
from collections import Counter
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from proof.checker.check import check
from proof.checker.trouble import CannotJudge
from proof.faults.clock import now_ms
from proof.faults.kinds.table import TABLE, chosen
from proof.faults.plan import SESSION_S, Plan
from proof.faults.run import folder_of, run
from proof.faults.trouble import nothing_judged
from proof.history.acts import Fault
from proof.history.history import History
from proof.history.store import EFFECTS, LOG, PUBLISHED, REST, prepare, save
from proof.history.verdict import Verdict
from proof.interruption import INTERRUPTED, heed_interruptions
from proof.report.document import take_overs_of
from proof.report.figures import take_overs
from proof.report.markup import duration
from proof.report.setting import SEED, this_setting
from proof.report.writing import HTML, JSON, write_report

HELD, BROKEN, NOT_DONE = 0, 1, 2
SHOWN: Final = 30
LONGEST_SESSION_S: Final = 300.0  # a take-over after a kill waits for it
VERDICT: Final = "verdict.json"
PLACE: Final = Path(".make") / "faults"
"""Where runs go that nobody gave a folder."""


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, say where everything is."""
    plan, quiet = parse(arguments)
    heed_interruptions()
    log_file = plan.out / "harness.log"
    try:
        prepare(plan.out)
        forget_verdict(plan)
        logging.basicConfig(filename=log_file, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    except OSError as error:
        print(f"the run could not be done: --out {plan.out}: {error.strerror}", file=sys.stderr)
        return NOT_DONE
    try:
        return done(plan, Screen(plan, quiet=quiet))
    except KeyboardInterrupt:
        print("interrupted: every process was ended", file=sys.stderr)
        return INTERRUPTED
    except CannotJudge as error:
        print(f"the history cannot be judged: {error}", file=sys.stderr)
        return NOT_DONE
    except Exception as error:  # a bug of the harness must not pass for a broken promise, which has an exit code of its own
        logging.getLogger(__name__).exception("the run could not be done")
        print(f"the run could not be done: {str(error) or type(error).__name__} (more in {log_file})", file=sys.stderr)
        return NOT_DONE


def done(plan: Plan, screen: Screen) -> int:
    """The exit code of a run that was done. Raises what ends one."""
    history = run(plan, screen.fault, screen.say)
    save(history, folder_of(plan))
    verdict = check(history)
    verdict = replace(verdict, troubles=(*verdict.troubles, *nothing_judged(verdict)))
    write(plan.out / VERDICT, history, verdict)
    report(plan, history, verdict)
    screen.verdict(history, verdict)
    return HELD if verdict.holds else BROKEN


# --- the command line -------------------------------------------------------------------------------------------------


def parse(arguments: list[str] | None) -> tuple[Plan, bool]:
    """What was asked for, and whether only JSON is printed. Ends the process with NOT_DONE for what cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m proof.faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="how many (default 100)")
    parser.add_argument(
        "--seed", type=int, help="decides kinds, targets and workload, not the millisecond; default: a random one, printed"
    )
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1, help="brokers (default 1)")
    parser.add_argument(
        "--kinds", help=f"only these, with commas between: {', '.join(TABLE)}. Those of a broker's clock run only if named, and "
        "need libfaketime (DUELINE_FAKETIME)",
    )  # fmt: skip
    parser.add_argument(
        "--session", type=float, default=SESSION_S, help=f"session time-out of the schedulers, seconds (default {SESSION_S:g})"
    )
    parser.add_argument(
        "--apart", type=float, default=0.0, metavar="SECONDS",
        help="one fault at a time, that long after one leads again and another stands by: for take-over times",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help=f"folder for history, logs and verdict; default: {PLACE}/SEED, or SEED-2, ...")
    parser.add_argument("--again", action="store_true", help="run in a folder that holds a finished run, which is lost")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON, and nothing else")
    given = parser.parse_args(arguments)
    if given.faults < 1 or not 1 <= given.session <= LONGEST_SESSION_S or not 0 <= given.apart < math.inf:
        parser.error(f"--faults is at least 1, --session from 1 to {LONGEST_SESSION_S:g}, --apart not below 0")
    if given.kinds is not None and not given.kinds.strip(","):
        parser.error("--kinds names none: leave it out for all of them")
    plan = plan_of(given)
    if not given.again and holds_a_run(plan.out):
        parser.error(f"{plan.out} holds a finished run: give another --out, or --again to lose that run")
    try:
        chosen(plan.kinds, plan.nodes)
    except ValueError as error:
        parser.error(str(error))
    return plan, given.json


def plan_of(given: argparse.Namespace) -> Plan:
    """What was asked for."""
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    out = given.out or (PLACE / str(seed) if given.again else free_place(PLACE, seed))
    kinds = tuple(name for name in (given.kinds or "").split(",") if name)
    return Plan(
        faults=given.faults, seed=seed, nodes=given.nodes, kinds=kinds, out=out.absolute(), session_s=given.session,
        apart_s=given.apart, schedulers=3 if given.nodes == 3 else 2,
    )  # fmt: skip


def free_place(folder: Path, seed: int) -> Path:
    """A folder for this seed in which no finished run stands: the same seed shows another history on real processes."""
    names = (f"{seed}-{number}" if number > 1 else str(seed) for number in count(1))
    return next(folder / name for name in names if not holds_a_run(folder / name))


def holds_a_run(folder: Path) -> bool:
    """Whether a run left its history or verdict there."""
    return (folder / VERDICT).exists() or (folder / "history" / REST).exists()


def forget_verdict(plan: Plan) -> None:
    """Remove an earlier run's history, verdict and report: they must not stand beside the logs of this one if it does not end."""
    for name in (VERDICT, JSON, HTML, *(f"history/{name}" for name in (LOG, PUBLISHED, EFFECTS, REST))):
        (plan.out / name).unlink(missing_ok=True)


# --- what is left -----------------------------------------------------------------------------------------------------


def report(plan: Plan, history: History, verdict: Verdict) -> None:
    """The pages beside the verdict."""
    nodes = f" NODES={plan.nodes}" if plan.nodes > 1 else ""
    kinds = f" KINDS={','.join(plan.kinds)}" if plan.kinds else ""
    more = [f"--session {plan.session_s:g}"] if plan.session_s != SESSION_S else []
    more += [f"--apart {plan.apart_s:g}"] if plan.apart_s else []
    arguments = f" FAULTS_ARGS='{' '.join(more)}'" if more else ""
    replay = f"make faults N={plan.faults}{nodes}{kinds}{arguments} SEED={SEED}"
    write_report([(history, verdict)], plan.out, this_setting(replay), now_ms())


def write(path: Path, history: History, verdict: Verdict) -> None:
    """The verdict and what else there is to say, as JSON."""
    path.write_text(json.dumps(document(history, verdict), indent=1) + "\n", encoding="utf-8")


def document(history: History, verdict: Verdict) -> dict[str, Any]:
    """For machines."""
    faults = history.noted.faults
    return {
        "title": history.title,
        "seed": history.seed,
        "holds": verdict.holds,
        "faults": dict(Counter(fault.kind for fault in faults if fault.injected and fault.struck)),
        "not_struck": dict(Counter(fault.kind for fault in faults if fault.injected and not fault.struck)),
        "starved": sum(not fault.injected for fault in faults),
        "trouble": list(verdict.troubles),
        "notes": list(history.noted.notes),
        "take_overs": [take_overs_of(group) for group in take_overs([(history, verdict)])],
        "verdict": asdict(verdict),
    }


class Screen:
    """Progress: one line a fault."""

    def __init__(self, plan: Plan, *, quiet: bool) -> None:
        self._plan, self._quiet = plan, quiet
        self._began_s = time.monotonic()
        self._count = 0
        self._width = len(str(plan.faults))
        self.say(f"seed {plan.seed}, {plan.faults} faults, everything in {plan.out}")

    def say(self, text: str) -> None:
        """A line."""
        if not self._quiet:
            print(f"{time.monotonic() - self._began_s:7.1f} s  {text}", flush=True)

    def fault(self, fault: Fault) -> None:
        """One that begins, or that took no effect; how long it took is in the history."""
        if not fault.injected:
            self.say(f"the machine gave no process a turn for {fault.ended_ms - fault.began_ms} ms (no fault)")
        elif fault.ended_ms == -1:
            self._count += 1
            self._line(f"{self._count:{self._width}}/{self._plan.faults}", fault)
        elif not fault.struck:
            self._line("struck nothing:", fault)

    def _line(self, head: str, fault: Fault) -> None:
        self.say(f"{head} {fault.kind:32} {fault.target:12} {fault.detail}")

    def verdict(self, history: History, verdict: Verdict) -> None:
        """What came out."""
        if self._quiet:
            print(json.dumps(document(history, verdict), indent=1))
            return
        for line in verdict.troubles:
            self.say(f"TROUBLE {line}")
        for note in history.noted.notes:
            self.say(f"note: {note.splitlines()[0]}")
        self.say(f"history: {folder_of(self._plan)}")
        for violation in verdict.violations[:SHOWN]:
            self.say(f"VIOLATION {violation.kind} {violation.subject}: {violation.what} [{violation.evidence}]")
        if len(verdict.violations) > SHOWN:
            self.say(f"... {len(verdict.violations)} in all, see verdict.json")
        for group in take_overs([(history, verdict)]):
            one = group.spread
            self.say(
                f"take-overs after {group.cause}, session {duration(group.session_ms)}: {one.count}; p50 {duration(one.p50)}, "
                f"p95 {duration(one.p95)}, p99 {duration(one.p99)}, longest {duration(one.largest)}; {len(group.outliers)} above "
                f"{duration(group.aim_ms)}"
            )
        self.say(
            f"{verdict.due_times} due times, {verdict.runs} runs, {verdict.steps_executed} steps, "
            f"{len(verdict.take_overs)} take-overs: " + ("the promise held" if verdict.holds else self._broken(verdict))
        )

    def _broken(self, verdict: Verdict) -> str:
        wrong = f"{len(verdict.violations)} VIOLATIONS, {len(verdict.troubles)} TROUBLES"
        return f"{wrong}; replay: --seed {self._plan.seed}"


if __name__ == "__main__":
    sys.exit(main())
