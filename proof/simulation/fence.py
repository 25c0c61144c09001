"""Whether the group's generation fenced leaders: what the checker cannot know, since it takes any barrier for a rightful one.

Barriers stand in the order of their generations, and all of one generation are of one process, unless the group was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from dueline.schemas.codec import decode
from dueline.schemas.ledger import BARRIER_KEY, Barrier
from proof.checker.skew import Skew
from proof.history.history import History


def broken_fence(history: History) -> list[str]:
    """What breaks the rule, a line each."""
    return list(_broken(history))


def _broken(history: History) -> Iterator[str]:
    anew = [(f.began_ms, f.ended_ms) for f in history.noted.faults if f.kind == "group-deleted" and f.struck]
    skew = Skew(history)
    highest, leader, seen_ms = -1, "", 0
    for entry in history.log.get((f"{history.prefix}.runs", 0), ()):
        if entry.key != BARRIER_KEY.encode() or entry.value is None:
            continue
        barrier = decode(entry.value)
        assert isinstance(barrier, Barrier), "its key says so"
        where = f"the barrier at {entry.topic}@{entry.offset}, of {barrier.process}"
        skew_ms = skew.at(seen_ms, entry.append_ms)
        since_ms, until_ms = seen_ms - skew_ms, entry.append_ms + skew_ms
        if any(began_ms <= until_ms and ended_ms >= since_ms for began_ms, ended_ms in anew):
            highest = -1
        if barrier.generation < highest:
            yield f"unfenced: {where}, is of generation {barrier.generation}, after one of {highest}"
        elif barrier.generation == highest and barrier.process != leader:
            yield f"unfenced: {where}, is of generation {barrier.generation}, which is that of {leader}"
        if barrier.generation >= highest:
            highest, leader = barrier.generation, barrier.process
        seen_ms = entry.append_ms
