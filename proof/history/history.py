"""A history: everything a checker is given, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proof.history.acts import Bounds, Noted
from proof.history.entry import Entry

Partition = tuple[str, int]
"""A topic's full name and a partition number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`log`: for each partition its committed records in offset order; nothing was compacted away or expired unless a fault
    says so.
    `judged_ms`: due times up to here are judged; whoever recorded it waited until all of them had time to be decided and to end.
    `seed` and `title` name it in a report. `prefix`: the namespace; topics are `<prefix>.jobs` and so on."""

    title: str
    seed: int
    prefix: str
    began_ms: int
    judged_ms: int
    log: Mapping[Partition, Sequence[Entry]]
    noted: Noted
    bounds: Bounds
