"""`python -m examples.demo`: the story of the daily menu, on real processes, in compressed time.

The menu goes to a thousand subscribers every morning. With cron on one server a reboot at 5:58 sent it to nobody; with a
second server and a heartbeat a split network sent it twice, and a death at 5:59 not at all. Here the same things happen
to dueline. Exit code 0: every promise was kept; 1: one was not, or the story could not be played; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from types import FrameType

from dueline.scheduler.kafka.broker import BrokerStartFailed, BrokerUnavailable
from examples.demo.acts import act_four, act_one, act_three, act_two
from examples.demo.promises import Outcome, Played, judge
from examples.demo.report import as_json, show
from examples.demo.screen import Screen
from examples.demo.stage import SESSION_S, WORKER_TIMEOUT_S, Stage, StoryFailed

TAIL_LINES = 15


def main() -> int:
    """Parse, play, report; the exit code."""
    options = _parser().parse_args()
    screen = Screen(to_stderr=options.json)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    stage = Stage(screen, subscribers=options.subscribers, day_s=options.day)
    keep = options.keep
    try:
        outcome = _play(stage)
        _report(stage, outcome, in_json=options.json)
        keep = keep or bool(outcome.broken)
        return 1 if outcome.broken else 0
    except (StoryFailed, BrokerUnavailable, BrokerStartFailed) as failure:
        keep = True
        screen.say(f"the demo failed: {failure}", "bold red")
        _tails(stage)
        return 1
    except KeyboardInterrupt:
        screen.say("interrupted", "red")
        return 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave processes behind
        stage.close(keep=keep)
        if keep:
            screen.say(f"outbox, job file and every process's log are kept in {stage.folder}")


def _play(stage: Stage) -> Outcome:
    """The story."""
    _set_up(stage)
    played = Played(sunday=act_one(stage), monday=act_two(stage), tuesday=act_three(stage), outage=act_four(stage))
    stage.screen.act("The audit: every due time recomputed, and compared with the log")
    return judge(stage, played)


def _set_up(stage: Stage) -> None:
    screen = stage.screen
    screen.act("A broker, two schedulers, two workers")
    screen.say("starting a real Kafka broker (the first time ever, its jars are downloaded: 45 MB)")
    stage.start_broker()
    stage.create_topics()
    stage.watch_ledger()
    for child in stage.crew.all:
        child.start()
    stage.until("all four processes to be ready", lambda: _ready(stage), 30)
    stage.apply_jobs()
    screen.say(f"{stage.leader.name} leads, the other stands by; jobs `menu` and `bread` are applied")
    screen.say(
        f"Compressed time: one day is {stage.week.day_s} real seconds. A silent leader is replaced after {SESSION_S:g} s, a "
        f"silent worker after {WORKER_TIMEOUT_S:g} s.", "yellow",
    )  # fmt: skip


def _ready(stage: Stage) -> bool:
    """One scheduler leads, the other stands by, both workers have opened their incarnations and share the partitions."""
    roles = sorted(_health(child.health_file.read_text(encoding="utf-8"), "role") for child in stage.crew.schedulers
                   if child.health_file.exists())  # fmt: skip
    shared = [_health(child.health_file.read_text(encoding="utf-8"), "partitions") for child in stage.crew.workers
              if child.health_file.exists()]  # fmt: skip
    return roles == ["leader", "standby"] and len(shared) == 2 and "[]" not in shared


def _health(text: str, name: str) -> str:
    return str(json.loads(text).get(name, "")) if text.strip() else ""


def _report(stage: Stage, outcome: Outcome, *, in_json: bool) -> None:
    day_s, elapsed_s = stage.week.day_s, stage.screen.elapsed_s
    show(stage.screen.console, outcome, day_s=day_s)
    if in_json:
        print(json.dumps(as_json(outcome, day_s=day_s, subscribers=stage.subscribers, elapsed_s=elapsed_s), indent=2))
    if outcome.broken:
        broken = "; ".join(each.text for each in outcome.broken)
        stage.screen.say(f"{len(outcome.broken)} of {len(outcome.promises)} promises were broken: {broken}", "bold red")
    else:
        stage.screen.say(f"all {len(outcome.promises)} promises were kept, in {elapsed_s:.0f} s", "bold green")


def _tails(stage: Stage) -> None:
    """The last words of each process, for whoever has to find out."""
    for child in stage.crew.all:
        stage.screen.say(f"-- the end of {child.log_file}:")
        for line in child.log_lines()[-TAIL_LINES:]:
            stage.screen.console.print(f"   {line}", markup=False)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the result as JSON; the story goes to standard error")
    parser.add_argument("--keep", action="store_true", help="keep the folder with outbox and logs")
    parser.add_argument("--day", type=int, metavar="SECONDS", help="real seconds of a day (default 12, more on a busy machine)")
    parser.add_argument("--subscribers", type=int, default=1000, metavar="N", help="mails a day (default 1000)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
