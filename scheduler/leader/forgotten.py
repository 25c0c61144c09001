"""Letters of an older leader whose transaction a killed broker forgot to end in `rejected` (docs/kafka.md): no reader passes it.

It ends when the producer that has its id commits something there, and either of the pair may have it. In the ledger a take-over's
barriers do that; `rejected` may see no other letter for weeks, so a barrier of each follows there when something stands open.
Never an abort: the ledger may hold that the letter was written. Offers and signals need none of this: they are made again until
somebody answers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from dueline.scheduler.core.ports import Clock, LogAdmin, Outgoing
from dueline.scheduler.leader.encode import outgoing
from dueline.scheduler.leader.unusable import Unusable
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0
"""How long after a broker that did not answer it is asked again: the leader's loop waits for its answer."""

STANDS_S = 1.0
"""What was committed just now ends a moment later; what stands open for so long does not end by itself."""


class ForgottenLetters:
    """Looks once in a term. All transactions of older leaders have ended by then, as far as the broker knows of them."""

    def __init__(self, admin: LogAdmin, clock: Clock, namespace: Namespace, unusable: Unusable, *, process: str) -> None:
        self._admin, self._clock, self._namespace, self._unusable = admin, clock, namespace, unusable
        self._process = process
        self._look_from_s = clock.monotonic_s()
        self._stood_open = False
        self._done = False

    def endings(self, term: int, generation: int) -> Iterator[list[list[Outgoing]]]:
        """The records of one transaction for each producer of the pair; none while nothing is known to stand open."""
        if self._done or self._clock.monotonic_s() < self._look_from_s or not self._unusable.takes_letters(self._namespace):
            return
        stands_open = self._admin.stands_open((self._namespace.rejected, 0))
        if stands_open is None or (stands_open and not self._stood_open):
            self._look_from_s = self._clock.monotonic_s() + (LOOK_AGAIN_S if stands_open is None else STANDS_S)
            self._stood_open = bool(stands_open)
            return
        self._done = True
        if not stands_open:
            return
        log.warning(
            "a transaction stands open in `rejected`, and nobody reads what stands behind it: barriers follow, in case it is "
            "an older leader's that a killed broker forgot",
            extra={"action": "rejected_open"},
        )
        for leader_id in self._namespace.leader_ids:
            barrier = Barrier(id=f"{term}:{leader_id}", process=self._process, generation=generation)
            yield [[outgoing(self._namespace.rejected, barrier.key, barrier, derived=True)]]
