"""Whether the group's generation fenced leaders: what the checker cannot know, since it takes any barrier for a rightful one.

Barriers stand in the order of their generations, and all of one generation are of one process, unless the group was deleted: by
hand, or by its coordinator, which forgets a group without members once its offsets have expired.
"""

from __future__ import annotations

from collections.abc import Iterator

from dueline.schemas.codec import decode
from dueline.schemas.ledger import BARRIER_KEY, Barrier
from proof.checker.disturbance import Interval, absences
from proof.checker.skew import Skew
from proof.history.acts import Role
from proof.history.history import History


def broken_fence(history: History) -> list[str]:
    """What breaks the rule, a line each."""
    return list(_broken(history))


def _broken(history: History) -> Iterator[str]:
    anew = list(_anew(history))
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


def _anew(history: History) -> Iterator[Interval]:
    """Times in which the group may have been deleted."""
    for fault in history.noted.struck:
        if fault.kind == "group-deleted":
            yield fault.began_ms, fault.ended_ms
        elif fault.kind == "offsets-expired":
            yield from _deserted(history, fault.ended_ms)


def _deserted(history: History, expired_ms: int) -> Iterator[Interval]:
    """Times without a scheduler after its offsets had expired; not if one had led meanwhile, since a leader commits offsets."""
    led_ms = [entry.append_ms for entry in history.log.get((f"{history.prefix}.runs", 0), ())]
    for began_ms, ended_ms in absences([life for life in history.noted.lives if life.role == Role.SCHEDULER]):
        if ended_ms > expired_ms and not any(expired_ms < at_ms < began_ms for at_ms in led_ms):
            yield max(began_ms, expired_ms), ended_ms
