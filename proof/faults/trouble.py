"""What is wrong beside the history: processes that ended by themselves, bugs that their logs tell of, a fence that let two lead.

An end that no fault asked for is a trouble unless one explains it: a watchdog may end a process whose calls a fault held up, a
broker whose disk was full may halt a little late, who waits for a broker does not end in time, and an assertion of the Kafka
client is told as a note. A traceback or a job set aside is always one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proof.checker.blame import ends_of
from proof.history.acts import Fault, Life, Role
from proof.history.history import History
from proof.history.verdict import Verdict
from proof.simulation.fence import broken_fence

WATCHDOG: Final = "exit 70"
ABORT: Final = "SIGABRT"
LIBRARY: Final = ": rdkafka_"
"""In the last words of a process whose Kafka client met an assertion of its own. It is started again; a note tells of it."""
LATE: Final = "did not end on SIGTERM"
EXPECTED: Final = frozenset({"SIGKILL", "exit 0", "halted", "runs"})
"""How a life may end. Whether somebody asked for it, the harness knows; see `Ended`."""
YOUNG_MS: Final = 5_000
"""A process that is told to end so soon after its birth may not know yet how to end in order."""
HELD_UP_MS: Final = 60_000
"""A call is given up that long after a fault held it up, at the latest."""
HALT_MS: Final = 30_000
BUG: Final = re.compile(r"Traceback \(most recent call last\)|\ba bug\b|\bset aside\b|\bquarantine")
SHOWN: Final = 3
"""Lines of one log that are told; the log has the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that ended though nobody asked for it, or did not end though somebody did. `how`: as in a life, or LATE."""

    process: str
    at_ms: int
    how: str
    last_words: str = ""

    def __str__(self) -> str:
        words = f":\n{self.last_words}" if self.last_words else ""
        return f"{self.process}: {self.how}{words}"


def troubles(history: History, ended: Sequence[Ended], logs: Iterable[Path]) -> tuple[list[str], list[str]]:
    """What breaks a run, a line each; and the ends that a fault explains."""
    faults = [fault for fault in history.noted.faults if fault.injected and fault.struck]
    brokers = {life.process for life in history.noted.lives if life.role == Role.BROKER}
    told = [*ended, *_others(history.noted.lives, ended)]
    bad = [one for one in told if not _explained(one, faults, brokers)]
    said = [line for log in logs for line in bugs(log)]
    return [*map(str, bad), *said, *broken_fence(history)], [str(one) for one in told if one not in bad]


def nothing_judged(verdict: Verdict) -> list[str]:
    """A run without a due time shows nothing."""
    return [] if verdict.due_times else ["no due time was judged: this run shows nothing"]


def bugs(log: Path) -> Iterator[str]:
    """Where a log tells of a bug."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    found = [number for number, line in enumerate(lines) if BUG.search(line)]
    for number in found[:SHOWN]:
        yield f"{log.name}, line {number + 1}: {lines[number].strip()[:300]}"
    if len(found) > SHOWN:
        yield f"{log.name}: {len(found) - SHOWN} more lines like these"


def _others(lives: Iterable[Life], ended: Sequence[Ended]) -> Iterator[Ended]:
    """Ends in the time of a fault that asked for another end, such as a crash while a kill was on its way."""
    known = {(one.process, one.how) for one in ended}
    for life in lives:
        young = life.how == "SIGTERM" and life.ended_ms - life.began_ms < YOUNG_MS
        if life.how not in EXPECTED and not young and (life.process, life.how) not in known:
            yield Ended(process=life.process, at_ms=life.ended_ms, how=life.how)


def _explained(one: Ended, faults: Sequence[Fault], brokers: set[str]) -> bool:
    if one.process in brokers:
        return any(f.kind == "disk-full" and f.target == one.process and _near(f, one.at_ms, HALT_MS) for f in faults)
    if one.how == ABORT and LIBRARY in one.last_words:
        return True
    if one.how not in (WATCHDOG, LATE):
        return False
    near = [set(ends_of(fault.target)) for fault in faults if _near(fault, one.at_ms, HELD_UP_MS)]
    return any(brokers & ends or (one.how == WATCHDOG and one.process in ends) for ends in near)


def _near(fault: Fault, at_ms: int, before_ms: int) -> bool:
    return fault.began_ms <= at_ms and max(fault.began_ms, fault.ended_ms) >= at_ms - before_ms
