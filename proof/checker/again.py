"""Steps that were done again, and by which fault: the rule by which a second effect is explained.

**The rule.** An effect of a step after the one before it is explained if a fault of the history was active, or came, between
`worker_timeout_ms` (and the skew) before the call of the earlier effect's step and the later effect: what was called
under a lease is lost to what had kept its heartbeats away by then. If the earlier one's incarnation gave up (`giving_up.py`), a
fault on that process or on a broker may have come as long before as an answer was waited for. It is put down to the latest such
fault on one of the two processes or its links, else to the latest on a broker (`blame.py`). A fault on other processes explains
nothing.
"""

from __future__ import annotations

from proof.checker.blame import Blame, latest
from proof.history.acts import Effect
from proof.history.history import History


def cause(history: History, blame: Blame, first: Effect, again: Effect, *, waited_ms: int = 0) -> str:
    """The kind of the fault to which the second effect is put down; "" if none explains it. `waited_ms`: see `giving_up.py`."""
    bounds = history.bounds
    called_ms = first.began_ms if first.began_ms >= 0 else first.at_ms
    begin, end = called_ms - bounds.worker_timeout_ms - bounds.skew_ms, again.at_ms + bounds.skew_ms
    before = min(begin, called_ms - waited_ms - bounds.skew_ms)
    own = [*blame.own({first.process}, before, end), *blame.own({again.process}, begin, end)]
    return latest(own) or latest(blame.around(before, end))
