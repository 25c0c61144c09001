"""All scenarios: each module registers its own when it is imported."""

from __future__ import annotations

from typing import Final

from tests.simulation.conformance import delivery, endings, fence, membership, outage, owners, stalls, visibility
from tests.simulation.conformance.scenario import SCENARIOS, Scenario

MODULES: Final = (fence, owners, visibility, delivery, membership, stalls, outage, endings)
CALM: Final[dict[str, Scenario]] = {name: one for name, one in SCENARIOS.items() if not (one.restarts or one.meddles)}
MEDDLING: Final[dict[str, Scenario]] = {name: one for name, one in SCENARIOS.items() if one.meddles}
RESTARTING: Final[dict[str, Scenario]] = {name: one for name, one in SCENARIOS.items() if one.restarts}
