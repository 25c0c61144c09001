"""`python -m proof.simulation --seeds A..B`: simulated worlds, one a seed.

Exit codes: 0 the promise held, 1 a world broke it, 2 there was nothing to do or to judge, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from proof.history.store import prepare
from proof.interruption import INTERRUPTED, SIGNALS, exit_code, heed_interruptions
from proof.simulation.plan import Profile
from proof.simulation.plan_check import wrong_with
from proof.simulation.runner import HASH_SEED, Report, replay_command, run_many, taken_out, totals
from proof.simulation.setup import Setup
from proof.simulation.shrink import shrunk

HELD, BROKEN, NOTHING = 0, 1, 2
EPILOG: Final = """exit codes: 0 every world held; 1 one broke the promise; 2 there was nothing to do or to judge; 130 interrupted

  python -m proof.simulation --seeds 1..100 --profile brutal         a hundred hours, a fault every 20 s
  python -m proof.simulation --seeds 7 --log info --save /tmp/seven  one world, watched; judge it with proof.checker
  python -m proof.simulation --setup "$(cat FILE)" --rule L7         a kept plan, with a rule taken out"""
MOST: Final = 1_000
"""Hours of one world, and times the usual load: beyond that it is a slip of the pen."""
LEVELS: Final = ("debug", "info", "warning", "error")


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    options = _options(arguments)
    setups = [options.setup] if options.setup else _setups(options)
    if options.log or options.save:
        return _look(setups[0], options.rule, options.log, options.save)
    reports: list[Report] = []
    began_s = time.monotonic()
    with closing(run_many(setups, jobs=options.jobs, rule=options.rule)) as worlds:
        for report in worlds:
            reports.append(report)
            if not options.json:
                _tell(report, len(reports), len(setups), options.rule)
    failed = sorted((report for report in reports if not report.holds), key=lambda report: report.setup.seed)
    if options.json:
        print(json.dumps(totals(reports), indent=1))
    else:
        found = totals(reports)
        faults = sum(found["faults"].values())
        print(f"{found['worlds']} worlds, {found['virtual_hours']} h, {found['runs']} runs, {faults} faults, "
              f"{len(failed)} failed; {found['cpu_s']} s of processor, {time.monotonic() - began_s:.0f} s of clock")  # fmt: skip
    for report in failed if options.shrink else ():
        _shrink(report, options)
    return _code(bool(failed), sum(report.due_times for report in reports))


def _code(failed: bool, due_times: int) -> int:
    if not failed and not due_times:
        print("nothing to judge: no due time", file=sys.stderr)
        return NOTHING
    return BROKEN if failed else HELD


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m proof.simulation", description="Simulated worlds, one a seed.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seeds", type=_seeds, default="1..10", metavar="A..B", help="seeds, or one of them (default 1..10)")
    what.add_argument("--setup", type=_setup, metavar="JSON", help="one world as a failing run prints it, instead of seeds")
    parser.add_argument("--hours", type=_bounded, default=1.0, help="virtual hours of faults in each (default 1)")
    parser.add_argument(
        "--profile", type=Profile, choices=list(Profile), default=Profile.ROUGH,
        help="no fault, one every 300, 75 (default) or 20 s",
    )  # fmt: skip
    parser.add_argument("--load", type=_bounded, default=1.0, help="1: about 500 runs an hour (default)")
    parser.add_argument("--rule", type=_rule, default="", help="a rule of the design to take out, as a control: L7, W3, ...")
    parser.add_argument("--jobs", type=_jobs, default=os.cpu_count() or 1, help="worlds at a time (default: one a processor)")
    parser.add_argument("--json", action="store_true", help="the figures of all as JSON, and nothing else")
    parser.add_argument("--shrink", metavar="FOLDER", type=Path, help="write each failing plan there, as small as it gets")
    parser.add_argument(
        "--log", type=_level, metavar="LEVEL", help=f"print the processes' log lines of the first world: {', '.join(LEVELS)}"
    )
    parser.add_argument("--save", metavar="FOLDER", type=Path, help="write the first world's history there")
    options = parser.parse_args(arguments)
    for name in ("shrink", "save"):
        folder = getattr(options, name)
        try:
            if folder is not None:
                prepare(folder)
        except OSError as error:
            parser.error(f"--{name} {folder}: {error.strerror}")
    return options


def _setups(options: argparse.Namespace) -> list[Setup]:
    return [Setup(seed=seed, hours=options.hours, profile=options.profile, load=options.load) for seed in options.seeds]


# --- arguments: what is none ends with 2, and a line that says why ----------------------------------------------------


@contextmanager
def _refused(why: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(why) from error


def _seeds(text: str) -> range:
    first, to, last = text.partition("..")
    with _refused(f"{text!r} is neither a number nor A..B"):
        seeds = range(int(first), int(last if to else first) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} has no seed: nothing to prove")
    return seeds


def _bounded(text: str) -> float:
    with _refused(f"{text!r} is no number"):
        value = float(text)
    if not 0 < value <= MOST:
        raise argparse.ArgumentTypeError(f"{text} is not more than 0 (nothing to prove) and at most {MOST}")
    return value


def _jobs(text: str) -> int:
    with _refused(f"{text!r} is no number"):
        value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def _setup(text: str) -> Setup:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from error
    try:
        setup = Setup.from_json(content)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise argparse.ArgumentTypeError(f"not the setup of a world: {why}") from error
    _bounded(str(setup.hours))
    _bounded(str(setup.load))
    if wrong := wrong_with(setup):
        raise argparse.ArgumentTypeError(f"not the setup of a world: {wrong}")
    return setup


def _rule(text: str) -> str:
    try:
        if text:
            taken_out(text)
    except KeyError as error:
        from proof.simulation.sabotage import SABOTAGES  # noqa: PLC0415 - an honest world needs none of them

        raise argparse.ArgumentTypeError(f"no rule {text!r}; there are {', '.join(SABOTAGES)}") from error
    return text


def _level(text: str) -> str:
    if text.upper() not in logging.getLevelNamesMapping():
        raise argparse.ArgumentTypeError(f"no level {text!r}; there are {', '.join(LEVELS)}")
    return text.upper()


# --- worlds -----------------------------------------------------------------------------------------------------------


def _tell(report: Report, count: int, of: int, rule: str) -> None:
    setup = report.setup
    print(f"[{count}/{of}] seed {setup.seed}: {'holds' if report.holds else 'FAILED'}, {report.runs} runs, "
          f"{sum(report.faults.values())} faults, {report.cpu_s:.1f} s", flush=True)  # fmt: skip
    if not report.holds:
        print("".join(f"    {line}\n" for line in report.lines), end="")
        print(f"    replay: {replay_command(setup, rule)}", flush=True)


def _shrink(report: Report, options: argparse.Namespace) -> None:
    """Looks for the same kind of trouble only, or it would end in another one."""
    kind = report.lines[0].partition(":")[0]

    def fails(setup: Setup) -> bool:
        [again] = run_many([setup], jobs=1, rule=options.rule)
        return any(line.startswith(kind) for line in again.lines)

    small = shrunk(report.setup, fails)
    [again] = run_many([small], jobs=1, rule=options.rule)
    name = f"{options.rule or 'seed'}-{small.seed}.json"
    (options.shrink / name).write_text(json.dumps({**small.to_json(), "found": list(again.lines)}, indent=1) + "\n")
    print(f"seed {small.seed}: shrunk to {len(small.faults())} faults in {small.hours:g} h: {options.shrink / name}", flush=True)


def _look(setup: Setup, rule: str, level: str | None, folder: Path | None) -> int:
    """One world, in this process, watched."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", "proof.simulation", *sys.argv[1:]])
    # In a world every exception is its processes' own: none would end it. It has no children, and nothing half written.
    for number in SIGNALS:
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))
    from proof.history.store import save  # noqa: PLC0415 - only here
    from proof.simulation.world import World  # noqa: PLC0415 - the other ways run it in children

    def watch(now_s: float, who: str, record: logging.LogRecord) -> None:
        print(f"{now_s:10.3f} {who:6} {record.levelname:8} {record.getMessage()}")

    least = logging.getLevelNamesMapping()[level or "CRITICAL"]
    judgement = World(setup, sabotage=taken_out(rule), watch=watch if level else None, level=least).run()
    if folder is not None:
        save(judgement.history, folder)
    for line in judgement.lines():
        print(line)
    for fault in judgement.history.noted.faults if level else ():
        began_s, ended_s = ((at_ms - judgement.history.began_ms) / 1000 for at_ms in (fault.began_ms, fault.ended_ms))
        print(f"fault {began_s:10.3f} to {ended_s:10.3f}: {fault.kind} {fault.target} {fault.detail}")
    said = "holds" if judgement.holds else "FAILED"
    print(f"{said}: {judgement.verdict.runs} runs, {judgement.cpu_s:.1f} s, {judgement.digest}")
    return _code(not judgement.holds, judgement.verdict.due_times)


def command() -> int:
    """As `main`, and in order if it is interrupted."""
    heed_interruptions()
    try:
        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(exit_code(command))
