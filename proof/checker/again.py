"""Steps that were done again, and by which fault: the rule by which a second effect is explained.

**The rule.** An effect of a step after the one before it is explained if a fault of the history was active, or came, between
`worker_timeout_ms` or `call_ms` (the larger, and the skew) before the call of the earlier effect's step, and the later effect:
what was called under a lease is lost to what had kept its heartbeats, or the answer to a commit, away by then. It is put down to
the latest such fault on one of the two processes or its links, else to the latest on a broker (`blame.py`). A fault on other
processes explains nothing.
"""

from __future__ import annotations

from proof.checker.blame import Blame, latest
from proof.history.acts import Effect
from proof.history.history import History


def cause(history: History, blame: Blame, first: Effect, again: Effect) -> str:
    """The kind of the fault to which the second effect is put down; "" if none explains it."""
    bounds = history.bounds
    called_ms = first.began_ms if first.began_ms >= 0 else first.at_ms
    begin = called_ms - max(bounds.worker_timeout_ms, bounds.call_ms) - bounds.skew_ms
    end = again.at_ms + bounds.skew_ms
    return latest(blame.own({first.process, again.process}, begin, end)) or latest(blame.around(begin, end))
