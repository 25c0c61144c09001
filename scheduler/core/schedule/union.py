"""Several timelines as one: an instant that is in two of them is one instant."""

from __future__ import annotations

from collections.abc import Iterator

from dueline.scheduler.core.schedule.timeline import Timeline


class Union:
    """All instants of the given timelines."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[Timeline, ...]) -> None:
        self._parts = parts

    def next_after(self, instant: int) -> int | None:
        """The first instant later than `instant`."""
        return min((found for part in self._parts if (found := part.next_after(instant)) is not None), default=None)

    def previous_before(self, instant: int) -> int | None:
        """The last instant earlier than `instant`."""
        return max(
            (found for part in self._parts if (found := part.previous_before(instant)) is not None), default=None
        )

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`. The fullest part is counted by arithmetic; the others are walked
        for what the fuller ones lack."""
        counted = sorted(((part.count_between(low, high), part) for part in self._parts), key=lambda pair: -pair[0])
        found, fuller = counted[0][0], [counted[0][1]]
        for count, part in counted[1:]:
            if count:
                found += sum(not any(holds(other, at) for other in fuller) for at in walk(part, low, high))
                fuller.append(part)
        return found


class Without:
    """The instants of `inner` that are not in `taken`."""

    __slots__ = ("_inner", "_taken")

    def __init__(self, inner: Timeline, taken: frozenset[int]) -> None:
        self._inner = inner
        self._taken = taken

    def next_after(self, instant: int) -> int | None:
        """The first instant later than `instant`."""
        found = self._inner.next_after(instant)
        while found in self._taken:
            found = self._inner.next_after(found)
        return found

    def previous_before(self, instant: int) -> int | None:
        """The last instant earlier than `instant`."""
        found = self._inner.previous_before(instant)
        while found in self._taken:
            found = self._inner.previous_before(found)
        return found

    def count_between(self, low: int, high: int) -> int:
        """How many lie in `low` <= instant < `high`."""
        taken = sum(low <= at < high and holds(self._inner, at) for at in self._taken)
        return self._inner.count_between(low, high) - taken


def holds(timeline: Timeline, instant: int) -> bool:
    """Whether an instant is in the timeline."""
    return timeline.next_after(instant - 1) == instant


def walk(timeline: Timeline, low: int, high: int) -> Iterator[int]:
    """The instants in `low` <= instant < `high`, one after the other."""
    found = timeline.next_after(low - 1)
    while found is not None and found < high:
        yield found
        found = timeline.next_after(found)
