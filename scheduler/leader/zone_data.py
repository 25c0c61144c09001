"""Zone data only moves forward while a scheduler with the newer release is there to lead.

Versions name the release by whose rules their due times hold, so a leader with another one must make new versions: right
when the fleet was upgraded, or rolled back, but in a mixed fleet each take-over would make them back and forth. So one that
is elected with the older release first leaves the lead to the others for a moment. If it is elected again, nobody has newer
data: then its release is the one that counts.
"""

from __future__ import annotations

import logging

from dueline.scheduler.core.state import State

log = logging.getLogger(__name__)

YIELD_S = 5.0
"""How long it stays away: a standby with newer data leads within about a second."""


class NewerZoneData(Exception):
    """Jobs were decided with newer zone data than this scheduler has: another one should lead."""


class ZoneData:
    """This process's release against that of the ledger."""

    def __init__(self, present: str) -> None:
        self.present = present
        self._yielded = False
        self._said = ""

    def check(self, state: State) -> None:
        """Raise NewerZoneData if another scheduler should be given the lead; the second time in a row, lead."""
        newest = max((str(tzdata) for tzdata, _ in state.zones.between()), default="")
        if newest <= self.present or self._yielded:
            self._yielded = False
            return
        self._yielded = True
        if self._said != newest:
            self._said = newest
            log.warning(
                "this scheduler's zone data, %s, is older than %s, with which jobs were decided: upgrade it (package tzdata). It "
                "leaves the lead to another scheduler; if there is none with newer data, due times follow %s",
                self.present,
                newest,
                self.present,
                extra={"action": "older_zone_data"},
            )
        raise NewerZoneData(f"the ledger has zone data {newest}, newer than {self.present}")
