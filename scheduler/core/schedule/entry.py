"""One compiled schedule of a job: its instants and what is needed to explain them."""

from __future__ import annotations

from typing import NamedTuple

from dueline.scheduler.core.schedule.filtered import Filtered
from dueline.scheduler.core.schedule.kinds import Core
from dueline.scheduler.core.schedule.spec import EntrySpec
from dueline.scheduler.core.schedule.timeline import Timeline


class Entry(NamedTuple):
    """`timeline` holds the due instants (s); `filtered` is what the calendar did, None without one; `jitter_ms` is 0
    without jitter."""

    spec: EntrySpec
    core: Core
    timeline: Timeline
    filtered: Filtered | None
    jitter_ms: int
