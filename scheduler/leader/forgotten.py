"""Letters whose transaction a killed broker forgot to end in `rejected` (docs/kafka.md): no reader gets beyond them.

It ends when the producer that has its id commits something there, and either of the leader's pair may have it. In the ledger a
take-over's barriers do that, and later commits; `rejected` may see no other letter for weeks, so where something stands open a
barrier of each follows. Never an abort: the ledger may hold that the letter was written. Offers and signals need none of this:
they are written again until somebody answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from dueline.scheduler.core.ports import Clock, LogAdmin, Outgoing, Unavailable
from dueline.scheduler.leader.encode import outgoing
from dueline.scheduler.leader.unusable import Unusable
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

ASK_AGAIN_S = 60.0
"""How long after a broker that did not answer it is asked again."""

TRY_AGAIN_S = 600.0
"""How long after something was written to end what stands at one place, whether or not that could be written: what is still open
then may be a stranger's, and a failed write ends the term."""


class ForgottenLetters:
    """Whether something stands open in `rejected`. Outlives the term, which a failed try ends."""

    def __init__(
        self,
        admin: Callable[[], LogAdmin],
        clock: Clock,
        namespace: Namespace,
        unusable: Unusable,
        *,
        process: str,
        rejected_look_s: float,
    ) -> None:
        """`rejected_look_s`: how often it is looked at, and how long after a term begins, since the leader's loop waits for the
        answer and what came due in a gap goes first. What stands open at the same place for so long is none of this leader's
        letters."""
        self._admin, self._clock, self._namespace, self._unusable = admin, clock, namespace, unusable
        self._process, self._rejected_look_s = process, rejected_look_s
        self._next_s = float("-inf")
        self._open_from: int | None = None
        self._tried: int | None = None
        self._tried_s = float("-inf")

    def begin(self) -> None:
        """A term begins."""
        self._next_s = max(self._next_s, self._clock.monotonic_s() + self._rejected_look_s)

    def endings(self, term: int, generation: int) -> list[list[list[Outgoing]]]:
        """What to write now to end it: two transactions, one for each of the pair, which take turns (L11). Mostly nothing."""
        if self._clock.monotonic_s() < self._next_s or not self._unusable.takes_letters(self._namespace):
            return []
        found, now_s = self._look(), self._clock.monotonic_s()
        if found is None or (found == self._tried and now_s - self._tried_s < TRY_AGAIN_S):
            return []
        self._tried, self._tried_s = found, now_s
        log.warning(
            "a transaction stands open in `rejected` at offset %d, and nobody reads what stands behind it: barriers follow, in "
            "case it is a leader's that a killed broker forgot",
            found,
            extra={"action": "rejected_open"},
        )
        barriers = [
            Barrier(id=f"{term}:{found}.{number}", process=self._process, generation=generation) for number in (1, 2)
        ]
        return [[[outgoing(self._namespace.rejected, barrier.key, barrier, derived=True)]] for barrier in barriers]

    def _look(self) -> int | None:
        """Where something stands open, if it stood there at the look before."""
        before, self._open_from = self._open_from, None
        try:
            self._open_from = self._admin().open_from((self._namespace.rejected, 0))
        except Unavailable as error:
            log.debug("whether something stands open in `rejected` cannot be told now: %s", error)
            self._next_s = self._clock.monotonic_s() + ASK_AGAIN_S
            return None
        self._next_s = self._clock.monotonic_s() + self._rejected_look_s
        return self._open_from if self._open_from == before else None
