"""What stood in the way, and until when: the rule by which lateness is explained.

**The rule.** A due time has `bounds.lateness_ms` for its first record. A disturbance that began before that deadline and had
not ended at the due time moves the deadline to `lateness_ms` after its own end; so does every further one that began before the
moved deadline, until nothing moves it. What began after the record stood kept it from nothing and does not count. The skew
(`skew.py`) is allowed on top where one clock is compared with another. What is later is late.

Disturbances are: every fault of the history but those that hit workers alone (a first record needs no worker); any time in
which no scheduler lived, or no broker; and, as instants, each beginning and end of a scheduler's or broker's life (a rebalance,
a move; the end of a scheduler whose session is longer than `bounds.session_ms` lasts that much longer). A fault hits workers
alone if a worker is among its targets ("w1", "w1,w2", an end of the link "w1>b2") and no scheduler.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from proof.checker.blame import ends_of
from proof.checker.skew import Skew
from proof.history.acts import Fault, Life, Role
from proof.history.history import History

Interval = tuple[int, int]
LONG_AGO = -(1 << 62)
NEVER = 1 << 62


class Disturbances:
    """The disturbances of a history that may delay a first record, ordered by their beginning. `workers`: those of workers too,
    which may delay work."""

    def __init__(self, history: History, *, workers: bool = False) -> None:
        self.lateness_ms = history.bounds.lateness_ms
        self._skew = Skew(history)
        lives = history.noted.lives
        roles = {life.process: life.role for life in lives}
        found = [(f.began_ms, f.ended_ms) for f in history.noted.struck if workers or not _of_workers(f, roles)]
        for role in (Role.SCHEDULER, Role.BROKER, *((Role.WORKER,) if workers else ())):
            mine = [life for life in lives if life.role == role]
            found += _instants(mine, history.bounds.session_ms)
            found += absences(mine)
        self._found = sorted(found)
        self._begins = [began for began, _ in self._found]
        self._latest_end: list[int] = []  # the latest end up to each place
        for _, ended in self._found:
            self._latest_end.append(max(ended, self._latest_end[-1] if self._latest_end else LONG_AGO))

    def deadline(self, due_ms: int, at_ms: int) -> int:
        """By when what was due must have happened, skew included, if it happened at `at_ms`: what began later kept nobody."""
        skew_ms = self._skew.at(due_ms)
        deadline = due_ms + self.lateness_ms + skew_ms
        while True:
            place = bisect_right(self._begins, min(deadline, at_ms + skew_ms)) - 1
            ended = self._latest_end[place] if place >= 0 else LONG_AGO
            moved = max(deadline, ended + self.lateness_ms + skew_ms)
            if ended < due_ms - skew_ms or moved == deadline:
                return deadline
            deadline = moved

    def quiet(self, begin_ms: int, end_ms: int) -> bool:
        """Whether nothing was active, or came, in [begin, end]."""
        place = bisect_right(self._begins, end_ms) - 1
        return place < 0 or self._latest_end[place] < begin_ms


def _of_workers(fault: Fault, roles: dict[str, Role]) -> bool:
    hit = {roles.get(part) for part in ends_of(fault.target)}
    return Role.WORKER in hit and Role.SCHEDULER not in hit


def _instants(lives: Iterable[Life], session_ms: int) -> Iterator[Interval]:
    """A longer session than the usual one is noticed to have ended that much later."""
    for life in lives:
        yield life.began_ms, life.began_ms
        if life.ended_ms >= 0:
            yield life.ended_ms, life.ended_ms + max(0, life.session_ms - session_ms)


def absences(lives: list[Life]) -> Iterator[Interval]:
    """Times in which none of them lived, from the beginning of time on; none if no life was noted at all."""
    reached = LONG_AGO
    for life in sorted(lives, key=lambda each: each.began_ms):
        if life.began_ms > reached:
            yield reached, life.began_ms
        reached = max(reached, life.ended_ms if life.ended_ms >= 0 else NEVER)
    if lives and reached < NEVER:
        yield reached, NEVER
