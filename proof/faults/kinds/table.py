"""All kinds of faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proof.faults.kinds import clocks, kills, network, outages, settings, stalls, transactions
from proof.faults.kinds.kind import Kind

FILES: Final = (kills, stalls, network, transactions, outages, clocks, settings)
TABLE: Final[dict[str, Kind]] = {kind.name: kind for file in FILES for kind in file.KINDS}


def chosen(names: Sequence[str], nodes: int) -> list[Kind]:
    """The kinds of these names, in the table's order; all that this many brokers allow if none is named. Raises ValueError."""
    unknown = sorted(set(names) - set(TABLE))
    if unknown:
        raise ValueError(f"no such kind: {', '.join(unknown)}; there are {', '.join(TABLE)}")
    found = [kind for kind in TABLE.values() if (kind.name in names if names else not kind.chosen) and kind.nodes <= nodes]
    if not found:
        raise ValueError(f"with {nodes} node(s) there is nothing to do: {', '.join(names)}")
    return found
