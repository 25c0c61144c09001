"""Take-overs, and time without a leader.

A term *led* if its leader wrote anything after its barrier; a barrier that another one followed at once opened a term that
never led (`unled`), and what came before it is still the leader's end for the next one. The *end of a leader* is looked for
between the last term that led and the barrier of the next. It is the first fault on the old leader's process or its links that
lasted beyond that leader's last record or came after it; else the last such fault that was over at most a session before that
record; else the first one on a broker, or that names no process, that lasted beyond it or came after. A process is told by the
pid in its barrier ("host:pid").

- `take_overs`: one for each change of the leading process, or for a fault on the leader after which it took over itself; from
  the beginning of the fault to the barrier, or from the old term's last record where the fault was on before that (but for the
  skew). Without a fault, cause "none", from the old term's last record. A process that only renews its term with no fault on it
  is no take-over.
- `leaderless_ms`: for each change of terms, from the fault (or the old term's last record, if that is later) to the barrier.

Where a broker's clock was moved, nothing is measured, only counted: the barriers are stamped by it. Causes are figures for the
report; no violation rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from proof.checker.blame import Blame
from proof.checker.skew import Skew
from proof.checker.terms import Term
from proof.history.acts import Fault, Life, Role
from proof.history.history import History
from proof.history.verdict import TakeOver


def take_overs(history: History, terms: Sequence[Term]) -> tuple[tuple[TakeOver, ...], int, int]:
    """The take-overs in order; the total time without a leader, milliseconds; how many changes of terms were not measured."""
    found: list[TakeOver] = []
    leaderless, unmeasured = 0, 0
    skew, blame = Skew(history), Blame(history)
    for old, new in pairwise(term for term in terms if term.records):
        last_ms = max(placed.entry.append_ms for placed in old.records)
        barrier_ms = new.barrier.entry.append_ms
        skew_ms = skew.at(last_ms, barrier_ms)
        if skew_ms > history.bounds.skew_ms:
            unmeasured += 1
            continue
        life = _life(history.noted.lives, old.barrier.record.process, last_ms)
        session_ms = max(history.bounds.session_ms, life.session_ms if life is not None else 0)
        fault, own = _end(blame, life, last_ms, barrier_ms, session_ms, skew_ms)
        since = last_ms
        if fault is not None and (fault.began_ms >= last_ms - skew_ms or fault.ended_ms <= last_ms):
            since = fault.began_ms
        leaderless += max(0, barrier_ms - max(since, last_ms))
        if old.barrier.record.process == new.barrier.record.process and not own:
            continue
        cause, told_ms = fault.kind if fault is not None else "none", life.session_ms if life is not None else 0
        found.append(TakeOver(cause=cause, at_ms=since, took_ms=max(0, barrier_ms - since), session_ms=told_ms))
    return tuple(found), leaderless, unmeasured


def unled(terms: Sequence[Term]) -> int:
    """Barriers of terms in which nothing was decided."""
    return sum(not term.records for term in terms)


def _end(
    blame: Blame, life: Life | None, last_ms: int, barrier_ms: int, session_ms: int, skew_ms: int
) -> tuple[Fault | None, bool]:
    """The fault that ended the old leader, and whether it hit that process itself."""
    begin, end = last_ms - skew_ms, barrier_ms + skew_ms
    names = {life.process} if life is not None else set()
    after, before = blame.own(names, begin, end), blame.own(names, begin - session_ms, begin)
    own = _first(after) or max(before, key=lambda fault: fault.began_ms, default=None)
    others = blame.around(begin, end) or blame.untargeted(begin, end)
    return own or _first(others), own is not None


def _first(faults: Iterable[Fault]) -> Fault | None:
    return min(faults, key=lambda fault: fault.began_ms, default=None)


def _life(lives: Sequence[Life], process: str, at_ms: int) -> Life | None:
    """The life of a scheduler by the pid that its barrier names, or by the whole text; the latest that had begun by then."""
    pid = process.rpartition(":")[2]
    mine = [life for life in lives if life.role == Role.SCHEDULER and (str(life.pid) == pid or life.process == process)]
    begun = [life for life in mine if life.began_ms <= at_ms]
    return max(begun or mine, key=lambda life: life.began_ms, default=None)
